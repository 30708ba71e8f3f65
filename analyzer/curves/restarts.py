"""Restarts of a run, measured on one curve: where it resumed, what was done twice, how long it stood still."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from afterrun.analyzer.series import Series
from afterrun.analyzer.view import RunView

COMPARED = 10
"""Rows on each side of a resume whose median levels are compared where no step was done twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """From one attempt to the next. Steps are those of the reference curve; null where not recorded."""

    attempt: int
    """The attempt that begins here."""
    start_step: int | None
    """First step that the new attempt recorded."""
    reached_step: int | None
    """Highest step reached before."""
    steps_redone: int
    """Distance from the state resumed from to the highest step reached: the work done twice."""
    rows_redone: int
    """Rows of the reference curve that the new attempt replaced."""
    steps_unrecorded: int
    """Steps between the attempts of which no record exists."""
    from_the_beginning: bool
    """The new attempt starts where the first one did."""
    stopped_ns: int | None
    started_ns: int | None
    lost_s: float | None
    """Wall clock of the rows that were replaced."""
    curve_shift_pct: float | None
    """The curve after the resume over the curve before it, at the same steps where there are any."""

    @property
    def downtime_s(self) -> float | None:
        """From the last record before to the first after; null where no clock is recorded."""
        if self.stopped_ns is None or self.started_ns is None:
            return None
        return max(0.0, (self.started_ns - self.stopped_ns) / 1e9)


def reference(view: RunView) -> Series | None:
    """The curve the restarts are read from: the one with the most attempts, the training loss among equals."""
    found = [s for s in view.curves if not s.frame.is_empty()]
    if not found:
        return None
    main = view.train_loss
    return max(found, key=lambda s: (s.frame["attempt"].n_unique(), s is main, len(s.frame)))


def restarts(view: RunView, s: Series) -> list[Restart]:
    """All restarts of the run as this curve shows them, in order."""
    rows = _one_format(view, s.frame.filter(pl.col("value").is_not_null()))
    rows = rows.select("attempt", "step", "wall_ns", "value")
    if rows["step"].null_count():
        rows = rows.with_columns(step=pl.lit(None, dtype=pl.Int64))
    else:  # a value logged twice is one record
        rows = rows.unique(["attempt", "step"], keep="last", maintain_order=True)
    parts = {int(k[0]): p for k, p in rows.partition_by("attempt", as_dict=True, maintain_order=True).items()}
    order = sorted(parts)
    found: list[Restart] = []
    alive = parts[order[0]]
    for before, now in pairwise(order):
        one = _restart(now, alive, parts[now], parts[before], parts[order[0]])
        kept = alive if one.start_step is None else alive.filter(pl.col("step") < one.start_step)
        alive = pl.concat([kept, parts[now]])
        found.append(one)
    return found


def _one_format(view: RunView, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of one format: a curve that stands in two files of different formats was not trained twice.

    Of several formats the one that saw the most attempts, then the one with the most rows.
    """
    known = view.tables.sources.select(pl.col("source").cast(pl.String), pl.col("format").cast(pl.String))
    if known["format"].n_unique() < 2:
        return rows
    told = rows.join(known.unique("source"), on="source", how="left", maintain_order="left")
    parts = told.partition_by("format", maintain_order=True)
    return max(parts, key=lambda p: (p["attempt"].n_unique(), len(p)))


def _restart(
    number: int, alive: pl.DataFrame, new: pl.DataFrame, last: pl.DataFrame, first: pl.DataFrame
) -> Restart:
    start, reached = _bound(new, "min"), _bound(alive, "max")
    stride = _stride(pl.concat([last, new]))
    redone = start is not None and reached is not None and start <= reached
    lost = alive.filter(pl.col("step") >= start) if redone else alive.clear()
    distance = 0 if start is None or reached is None else start - reached - stride
    stopped, started = last["wall_ns"].max(), new["wall_ns"].min()
    begin = _bound(first, "min")
    return Restart(
        attempt=number,
        start_step=start,
        reached_step=reached,
        steps_redone=-distance if redone else 0,
        rows_redone=len(lost),
        steps_unrecorded=max(distance, 0),
        from_the_beginning=redone and begin is not None and start is not None and start <= begin,
        stopped_ns=int(stopped) if isinstance(stopped, int) else None,
        started_ns=int(started) if isinstance(started, int) else None,
        lost_s=_lost_s(alive, lost),
        curve_shift_pct=_shift(alive, new, lost),
    )


def _bound(rows: pl.DataFrame, which: str) -> int | None:
    value = rows["step"].min() if which == "min" else rows["step"].max()
    return value if isinstance(value, int) else None


def _stride(rows: pl.DataFrame) -> int:
    """Usual distance of two recorded steps."""
    apart = rows["step"].drop_nulls().diff().drop_nulls().to_numpy()
    ahead = apart[apart > 0]
    return int(np.median(ahead)) if len(ahead) else 1


def _lost_s(alive: pl.DataFrame, lost: pl.DataFrame) -> float | None:
    """Wall clock spent on the lost rows: for each attempt, from the last row that stayed to its end."""
    if lost.is_empty():
        return 0.0
    if lost["wall_ns"].null_count():
        return None
    total = 0
    for (attempt,), rows in lost.partition_by("attempt", as_dict=True).items():
        kept = alive.filter((pl.col("attempt") == attempt) & (pl.col("step") < rows["step"].min()))
        begin = (kept if len(kept) else rows)["wall_ns"]
        total += int(rows["wall_ns"].max()) - int(begin.max() if len(kept) else begin.min())  # type: ignore[arg-type]  # integers, not empty
    return max(0.0, total / 1e9)


def _shift(alive: pl.DataFrame, new: pl.DataFrame, lost: pl.DataFrame) -> float | None:
    """Median change of the curve by the resume, in percent; None where it is no ratio or nothing compares."""
    both = lost.join(new.unique("step", keep="last"), on="step", suffix="_new").select("value", "value_new")
    before, after = both["value"].to_numpy(), both["value_new"].to_numpy()
    if len(both) >= COMPARED:
        ok = np.isfinite(before) & np.isfinite(after) & (before > 0) & (after > 0)
        ratio = np.log(after[ok] / before[ok])
        return 100.0 * math.expm1(float(np.median(ratio))) if len(ratio) else None
    kept = alive.filter(pl.col("step") < new["step"].min()) if len(lost) else alive
    a, b = kept["value"].tail(COMPARED).to_numpy(), new["value"].head(COMPARED).to_numpy()
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    if not len(a) or not len(b) or min(a.min(), b.min()) <= 0.0:
        return None
    return 100.0 * float(np.median(b) / np.median(a) - 1.0)
