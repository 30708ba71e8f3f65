"""Why a rank is late: what it does more of than the others, outside the collectives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from afterrun.analyzer.trace.collectives import Collectives

if TYPE_CHECKING:
    from afterrun.analyzer.trace.trace import Trace

NAMED_SHARE = 0.8
"""A reason is named when it covers this much of the excess (TraceML)."""

_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "compute": "Its kernels take longer.",
        "copies": "Its copies take longer.",
        "dataloader": "It waits for data longer.",
        "checkpoint": "It writes checkpoints.",
        "eval": "It evaluates.",
        "mixed": "No single reason explains it.",
    }
)


@dataclass(frozen=True, kw_only=True)
class Reason:
    """What the late rank does more of; ``share`` of its excess over the median of the others."""

    name: str
    share: float
    excess_ns: dict[str, int]
    words: str


def reasons(trace: Trace, matched: Collectives, late: int) -> Reason:
    """Compare computing, copying and idle time by cause of one rank with the median of the others."""
    rows = [_profile(trace, matched, r) for r in range(len(matched.devices))]
    names = sorted({name for row in rows for name in row})
    table = np.array([[row.get(name, 0) for name in names] for row in rows], np.float64)
    others = np.median(np.delete(table, late, axis=0), axis=0)
    excess = np.maximum(table[late] - others, 0)
    by_name = {name: int(x) for name, x in zip(names, excess, strict=True)}
    total = float(excess.sum())
    best = max(by_name, key=lambda name: by_name[name])
    share = by_name[best] / total if total else 0.0
    name = best if share >= NAMED_SHARE else "mixed"
    words = _WORDS.get(name, f"It is held up longer by: {name}.")
    return Reason(name=name, share=share, excess_ns=by_name, words=words)


def _profile(trace: Trace, matched: Collectives, r: int) -> dict[str, int]:
    device = matched.devices[r]
    idle = {k: v for k, v in trace.idle(device).by_cause_ns.items() if k != "kernel_gap"}
    kernels, copies = device.union_of("kernel"), device.union_of("memcpy", "memset")
    return {"compute": kernels.total_ns, "copies": (copies - kernels).total_ns, **idle}
