"""``run-<id>.wandb``: everything a W&B run logged, as the client wrote it to disk, synchronised or not.

History rows become ``metrics``, system metrics ``samples``, configuration and summary ``params``, start and exit
``marks``. Entity, host, command line and e-mail addresses are not taken over. Damage costs its block of 32 KiB;
what was lost is counted by the running number of the records, where they have one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.wandb.log import FILE_MAGIC, BlockLog
from afterrun.loaders.wandb.run import RunRecords

_LOOKED_AFTER = 256
"""Records between two looks at how much is held."""

_LFS = b"version https://git-lfs"


class Wandb(Loader):
    """`run-ID.wandb`, the local record of a W&B run."""

    format = "wandb"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:
        """The file header `:W&B`, or the suffix `.wandb`."""
        return head.startswith(FILE_MAGIC) or path.suffix == ".wandb"

    def load(self, source: Source) -> Iterator[Batch]:
        """All records in order. Raises ``UnreadableError`` if the file holds no intact one."""
        with source.path.open("rb") as file:
            head = file.read(len(_LFS))
            if not head:
                yield Batch(status="empty", notes=("0 bytes: nothing was written",))
                return
            if head == _LFS:
                raise UnreadableError("a git-lfs pointer stands in place of the file; run `git lfs pull`")
            file.seek(0)
            log, run = BlockLog(file), RunRecords()
            for number, payload in enumerate(log.records()):
                run.add(payload)
                if number % _LOOKED_AFTER == 0 and run.full:
                    yield Batch(frames=run.take())
        if not log.good_records and (log.damaged_blocks or log.false_header):
            raise UnreadableError(
                f"no intact record in {source.size_bytes:,} bytes; no .wandb file, or damaged"
            )
        yield run.last(log)
