"""Text logs: what a training printed, whatever printed it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch


class TextLog(Loader):
    """Console output and log files: metric lines of many trainers, generic `key=value` lines, failure messages."""

    format = "text-log"
    family = "text"
    generic = True

    def sniff(self, path: Path, head: bytes) -> bool:
        """Several metric lines of one grammar, or the message of a failure; never source, settings or tables."""
        from afterrun.loaders.textlog.sniffing import is_text_log  # noqa: PLC0415  # the engine only where text is

        return is_text_log(path, head)

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the lines; each is read by the first grammar that knows it, those of Megatron's straggler detector as samples."""
        from afterrun.loaders.counters.straggler import Stragglers  # noqa: PLC0415  # as above
        from afterrun.loaders.textlog.clean import Damage, clean_blocks  # noqa: PLC0415  # as above
        from afterrun.loaders.textlog.reader import TextLogReader  # noqa: PLC0415  # as above

        damage, stragglers = Damage(), Stragglers()
        yield from TextLogReader(stragglers.watch(clean_blocks(source.path, damage)), damage).batches()
        yield stragglers.batch()
