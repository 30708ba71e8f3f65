"""Reports of Megatron-LM's straggler detector in a file of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.counters.straggler import Stragglers, sniff
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.textlog.clean import Damage, clean_blocks


class MegatronStraggler(Loader):
    """Lines of Megatron-LM's straggler detector (`--log-straggler`) where no metrics stand beside them; among the lines of a training log the text engine reads them."""

    format = "megatron-straggler"
    family = "counters"
    generic = True

    def sniff(self, path: Path, head: bytes) -> bool:
        """Such lines, and no text log around them."""
        if not sniff(head):
            return False
        from afterrun.loaders.textlog.sniffing import is_text_log  # noqa: PLC0415  # the engine only where such lines are

        return not is_text_log(path, head)

    def load(self, source: Source) -> Iterator[Batch]:
        """A sample for every extreme of every report, with the rank it was measured on."""
        damage, found = Damage(), Stragglers()
        for _ in found.watch(clean_blocks(source.path, damage)):
            pass
        yield Batch(damaged=damage.lines, notes=tuple(damage.notes()))
        yield found.batch(alone=True)
