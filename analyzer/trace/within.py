"""What a trace shows inside a stretch of wall clock: the way from a slow step to the gap that made it slow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from afterrun.analyzer.trace.idle import IDLE_CAUSES

if TYPE_CHECKING:
    from afterrun.analyzer.trace.trace import Trace


def largest_gap(trace: Trace, low_ns: int, high_ns: int) -> dict[str, Any] | None:
    """The gap with the most time inside ``[low_ns, high_ns)``: device, cause, start and length; None where no device was traced then."""
    best: dict[str, Any] | None = None
    for device in trace.devices:
        gaps = device.gaps
        if not len(gaps) or device.high_ns <= low_ns or device.low_ns >= high_ns:
            continue
        inside = np.minimum(gaps.end, high_ns) - np.maximum(gaps.start, low_ns)
        at = int(inside.argmax())
        if inside[at] > 0 and (best is None or inside[at] > best["inside_ns"]):
            cause = IDLE_CAUSES[int(trace.idle(device).cause[at])]
            best = {
                "rank": device.rank,
                "device": device.device,
                "cause": cause,
                "start_ns": int(gaps.start[at]),
                "dur_ns": int(gaps.durations[at]),
                "inside_ns": int(inside[at]),
            }
    return best
