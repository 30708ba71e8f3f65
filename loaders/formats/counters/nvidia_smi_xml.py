"""``nvidia-smi -q -x``: full reports as XML, schema versions 11 to 13 alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.counters.smi.xmlreport import read_xml
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.textblocks import decode_head


class NvidiaSmiXml(Loader):
    """`nvidia-smi -q -x`, one XML report or several one after the other."""

    format = "nvidia-smi-xml"
    family = "counters"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # content says it
        """XML with the root element of a report."""
        text = decode_head(head).lstrip("\ufeff\0 \r\n\t")
        return text.startswith("<") and "<nvidia_smi_log" in text

    def load(self, source: Source) -> Iterator[Batch]:
        """Samples of each device in each report; no entity is expanded, nothing outside the file is read."""
        yield from read_xml(source.path)
