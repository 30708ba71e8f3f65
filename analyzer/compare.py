"""Two runs side by side: what their traces, counters and step times say in the same units.

A run that holds nothing of a kind cannot be compared in it, and that is said; it is never zero. Shares stand beside
absolute times, because captures rarely last equally long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from afterrun.analyzer.counters.series import device_series, steady
from afterrun.analyzer.finding import jsonable
from afterrun.analyzer.steps.times import step_times
from afterrun.analyzer.trace.idle import IDLE_CAUSES
from afterrun.analyzer.trace.kernels import kernel_table
from afterrun.analyzer.trace.words import CAUSE_WORDS
from afterrun.analyzer.view import RunView

VERSION = 1
TOP_KERNELS = 10


@dataclass(frozen=True, kw_only=True)
class Row:
    """One quantity of both runs. ``None`` is not recorded; ``worse`` is the direction of a worse value (+1 more, -1 less, 0 none)."""

    group: str
    name: str
    unit: str
    base: float | None
    candidate: float | None
    worse: int = 0

    @property
    def change_pct(self) -> float | None:
        """Change of the candidate against the base, %; None where it has no meaning."""
        if self.base is None or self.candidate is None or not self.base:
            return None
        return 100.0 * (self.candidate - self.base) / abs(self.base)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Rows of both runs, and a sentence for each kind of record that one of them lacks."""

    base: str
    candidate: str
    rows: tuple[Row, ...]
    missing: tuple[str, ...]

    @property
    def comparable(self) -> bool:
        """Whether both hold at least one kind of record that can be set side by side, and neither lacks GPU activity that the other has."""
        both = any(r.base is not None and r.candidate is not None for r in self.rows)
        return both and not any(text.startswith(NO_ACTIVITY) for text in self.missing)

    def document(self) -> dict[str, Any]:
        """The ``compare --json`` document (version 1)."""
        rows = [
            {
                "group": r.group,
                "name": r.name,
                "unit": r.unit,
                "base": r.base,
                "candidate": r.candidate,
                "change_pct": r.change_pct,
            }
            for r in self.rows
        ]
        document: dict[str, Any] = jsonable(
            {
                "version": VERSION,
                "base": self.base,
                "candidate": self.candidate,
                "comparable": self.comparable,
                "missing": list(self.missing),
                "rows": rows,
            }
        )
        return document


NO_ACTIVITY = "no GPU activity"


def compare(base: RunView, candidate: RunView) -> Comparison:
    """Set two runs side by side."""
    sides = (_measured(base), _measured(candidate))
    groups = [{key[0] for key in side} for side in sides]
    keys = sorted(dict.fromkeys(key for side in sides for key in side), key=lambda key: _GROUPS.index(key[0]))

    def value(i: int, key: Key) -> float | None:
        # shares of a trace that has kernels: what is not there took none of the time
        return sides[i].get(key, 0.0 if key[0] == "kernels" and "kernels" in groups[i] else None)

    rows = [
        Row(group=key[0], name=key[1], unit=key[2], base=value(0, key), candidate=value(1, key), worse=key[3])
        for key in keys
    ]
    largest = sorted(
        (max(r.base or 0.0, r.candidate or 0.0) for r in rows if r.group == "kernels"), reverse=True
    )
    return Comparison(
        base=base.name,
        candidate=candidate.name,
        rows=tuple(r for r in rows if _shown(r, largest)),
        missing=tuple(_missing(base, candidate) + _unsteady(base, candidate)),
    )


Key = tuple[str, str, str, int]
_GROUPS = ("GPU time", "idle by cause", "steps", "kernels", "counters")


def _measured(view: RunView) -> dict[Key, float]:
    return {**_gpu(view), **_steps(view), **_kernels(view), **_counters(view)}


def _gpu(view: RunView) -> dict[Key, float]:
    """Means over the devices, so that captures of a different number of devices compare."""
    devices = view.trace.devices
    if not devices:
        return {}
    span = sum(d.span_ns for d in devices) or 1
    busy = sum(d.busy.total_ns for d in devices)
    out: dict[Key, float] = {
        ("GPU time", "devices", "", 0): float(len(devices)),
        ("GPU time", "span of a device", "ms", 0): span / len(devices) / 1e6,
        ("GPU time", "busy", "%", -1): 100.0 * busy / span,
        ("GPU time", "idle", "%", 1): 100.0 * (span - busy) / span,
    }
    causes = {name: sum(view.trace.idle(d).by_cause_ns.get(name, 0) for d in devices) for name in IDLE_CAUSES}
    return out | {
        ("idle by cause", CAUSE_WORDS[name], "% of span", 1): 100.0 * ns / span for name, ns in causes.items()
    }


def _steps(view: RunView) -> dict[Key, float]:
    times = step_times(view)
    if times is None or times.relative:
        marks = [s for d in view.trace.devices if (s := view.trace.paced_steps(d)) is not None and len(s) > 1]
        if not marks:
            return {}
        return {("steps", "median step", "ms", 1): float(np.median(marks[0].durations)) / 1e6}
    return {
        ("steps", "median step", "ms", 1): 1e3 * float(np.median(times.seconds)),
        ("steps", "95 % quantile of steps", "ms", 1): 1e3 * float(np.quantile(times.seconds, 0.95)),
    }


def _kernels(view: RunView) -> dict[Key, float]:
    """All kernels of the first device: one that the other run lacks took no time there, which is a value."""
    if not view.trace.devices:
        return {}
    table = kernel_table(view.trace.devices[0])
    if table.is_empty():
        return {}
    shares = table.group_by("short", maintain_order=True).agg(pl.col("share_pct").sum())
    return {("kernels", str(n), "% of kernel time", 0): float(x) for n, x in shares.iter_rows()}


def _shown(row: Row, shares: list[float]) -> bool:
    """Kernels among the largest of either run; causes that cost anything in either."""
    most = max(row.base or 0.0, row.candidate or 0.0)
    if row.group == "kernels":
        return most >= shares[:TOP_KERNELS][-1]
    return row.group != "idle by cause" or most > 0


def _counters(view: RunView) -> dict[Key, float]:
    out: dict[Key, float] = {}
    for counter, name, worse in (("gpu_util_pct", "sampled utilisation", -1), ("power_w", "power", 0)):
        parts = [w for s in device_series(view.tables.samples, counter) if (w := steady(s, 1.0)) is not None]
        if parts:
            out[("counters", name, "W" if counter == "power_w" else "%", worse)] = float(
                np.mean([p.mean for p in parts])
            )
    memory = device_series(view.tables.samples, "mem_used_bytes")
    if memory:
        out[("counters", "peak memory", "GiB", 1)] = max(float(s.value.max()) for s in memory) / 2**30
    return out


def _missing(base: RunView, candidate: RunView) -> list[str]:
    said = []
    for view, other in ((base, candidate), (candidate, base)):
        if not view.trace.devices and other.trace.devices:
            said.append(f"{NO_ACTIVITY} is recorded in {view.name}")
        if step_times(view) is None and step_times(other) is not None:
            said.append(f"no step times are recorded in {view.name}")
        if view.tables.samples.is_empty() and not other.tables.samples.is_empty():
            said.append(f"no counters are recorded in {view.name}")
    return said


def _unsteady(base: RunView, candidate: RunView) -> list[str]:
    """What makes two captures hard to compare, though both hold activity."""
    counts = [len(v.trace.devices) for v in (base, candidate)]
    return (
        [f"captures of {counts[0]} and {counts[1]} devices: shares are means over devices"]
        if counts[0] != counts[1] and all(counts)
        else []
    )
