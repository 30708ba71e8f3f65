"""Printouts of DeepSpeed's flops profiler."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.settings.tree import Settings
from afterrun.loaders.tables.textblocks import decode, decode_head, split_lines, text_blocks

TITLE = "DeepSpeed Flops Profiler"
_STEP = re.compile(r"Profile Summary at step (\d+)")
_LINE = re.compile(r"^([A-Za-z][\w /+]*?)(?: = [^:]+)?:\s+(-?\d+(?:\.\d+)?)\s*([A-Za-z/]*)\s*$")
_SCALE = {
    "": ("", 1.0),
    "K": ("", 1e3),
    "M": ("", 1e6),
    "G": ("", 1e9),
    "B": ("", 1e9),
    "T": ("", 1e12),
    "us": ("_ns", 1e3),
    "ms": ("_ns", 1e6),
    "s": ("_ns", 1e9),
    "KFLOPS": ("_per_s", 1e3),
    "MFLOPS": ("_per_s", 1e6),
    "GFLOPS": ("_per_s", 1e9),
    "TFLOPS": ("_per_s", 1e12),
    "PFLOPS": ("_per_s", 1e15),
    "MACs": ("", 1.0),
    "KMACs": ("", 1e3),
    "MMACs": ("", 1e6),
    "GMACs": ("", 1e9),
    "TMACs": ("", 1e12),
}


class DeepSpeedFlops(Loader):
    """DeepSpeed's flops profiler: parameters, operations and latencies of one step, as parameters of the run."""

    format = "deepspeed-flops"
    family = "traces"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # content says it
        """Its title with a rule of dashes, in the first lines."""
        return f"- {TITLE} -" in decode_head(head)

    def load(self, source: Source) -> Iterator[Batch]:
        """The figures above the tree of modules, in base units; a number in the key where a file holds several printouts."""
        settings, printout, inside, step = Settings(), 0, False, ""
        for block in text_blocks(source.path):
            for line in split_lines(decode(block.data)[0]):
                if f"- {TITLE} -" in line:
                    printout, inside, step = printout + 1, True, ""
                elif "Aggregated Profile" in line or "Detailed Profile" in line:
                    inside = False
                elif inside and (found := _STEP.search(line)):
                    step = found[1]
                elif inside and (found := _LINE.match(line.strip())) and found[3] in _SCALE:
                    ending, factor = _SCALE[found[3]]
                    name = re.sub(r"\W+", "_", found[1].strip().lower()).strip("_")
                    number = f".{printout}" if printout > 1 else ""
                    settings.add(f"trace.deepspeed{number}.{name}{ending}", float(found[2]) * factor)
                    if step:
                        settings.add(f"trace.deepspeed{number}.step", int(step))
        yield Batch(frames=settings.frames())
