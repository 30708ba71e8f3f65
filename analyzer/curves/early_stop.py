"""Early stopping replayed on one run: where each rule would have stopped, what it gives up and saves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from afterrun.analyzer.curves.matching import Matched
from afterrun.analyzer.curves.patience import patience_stops, prechelt
from afterrun.analyzer.series import Series
from afterrun.analyzer.stats import Array
from afterrun.analyzer.view import RunView


@dataclass(frozen=True, eq=False)
class Replay:
    """The evaluations of one run with the price of going on after each of them."""

    view: RunView
    matched: Matched

    def gpu_s_after(self, i: int) -> float | None:
        """GPU-seconds from the i-th evaluation to the end; None where clock or devices are not recorded."""
        m = self.matched
        if m.axis == "step":
            return self.view.gpu_s_between(float(m.x[i]), self._end)
        start, end = m.wall_at(i), m.wall_at(len(m.val) - 1)
        if start is None or end is None or self.view.devices is None:
            return None
        return (end - start) / 1e9 * self.view.devices

    @property
    def _end(self) -> float:
        return max(float(self.matched.x[-1]), float(self.matched.pair.train.x[-1]))

    def _saved_pct(self, i: int) -> float:
        """Share of the axis that lies after the i-th evaluation."""
        x = self.matched.x
        if self.matched.axis != "step":
            return 100.0 * float(x[-1] - x[i]) / max(float(x[-1] - x[0]), 1e-12)
        start = min(float(x[0]), float(self.matched.pair.train.x[0]))
        return 100.0 * (self._end - float(x[i])) / max(self._end - start, 1e-12)

    def patience_table(self) -> list[dict[str, Any]]:
        """One row for each patience and min_delta: stop step, metric given up, share and GPU time saved."""
        m = self.matched
        error = -m.val if m.pair.val.better == "max" else m.val
        best = float(error.min())
        rows = []
        for stop in patience_stops(error):
            at = stop.stop
            rows.append(
                {
                    "patience": stop.patience,
                    "min_delta_pct": stop.min_delta_pct,
                    "stop_step": None if at is None else m.step_at(at),
                    "stops": at is not None,
                    "kept_step": m.step_at(stop.kept),
                    "kept_value": float(m.val[stop.kept]),
                    "given_up_pct": 100.0 * (float(error[stop.kept]) - best) / abs(best) if best else None,
                    "saved_pct": 0.0 if at is None else self._saved_pct(at),
                    "gpu_s_saved": 0.0 if at is None else self.gpu_s_after(at),
                }
            )
        return rows

    def criteria(self) -> dict[str, int | None]:
        """Step at which each of Prechelt's criteria first stops; empty where the metric has no error > 0."""
        m = self.matched
        val, train = _error(m.pair.val, m.val), _error(m.pair.train, m.train)
        if val is None or train is None:
            return {}
        return {
            name: None if i is None else (i if (step := m.step_at(i)) is None else step)
            for name, i in prechelt(val, train).items()
        }


def _error(series: Series, values: Array) -> Array | None:
    """An error > 0: the loss itself, or one minus an accuracy."""
    if series.scale == "log" and series.better == "min":
        return values
    return np.maximum(1.0 - values, 1e-9) if series.scale == "logit" else None
