"""What the same curve in two sources says about the axes of both: steps for lines without, clocks and epochs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from afterrun.loaders.joining.matching import Curve, Ints, Match

_LENT = ("epoch", "tokens", "wall_ns")


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Link:
    """A curve that stays and a view of it; ``match`` is None where one tag was joined without looking at values."""

    keeper: Curve
    view: Curve
    match: Match | None
    format: str
    """The format of the curve that stays."""


def fill_axes(
    rows: pl.DataFrame, links: Sequence[Link], names: Sequence[str]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Rows with epoch, tokens and clock of the views where the curve that stays has none, and steps the other way.

    A record without a step takes that of the one point it can be. All values of the record take it too.
    """
    pairs = [_pairs(link) for link in links if link.match is not None]
    if not pairs:
        return rows, ()
    kept, seen = (np.concatenate(side) for side in zip(*pairs, strict=True))
    lent = [_lend(rows[name], kept, seen) for name in _LENT]
    rows = rows.with_columns(lent)
    stepless = rows["step"].is_null().to_numpy()
    known = stepless[seen] & ~stepless[kept]
    if not known.any():
        return rows, ()
    steps = rows["step"].to_numpy(allow_copy=True)[kept[known]].astype(np.int64)
    return _place_records(rows, seen[known], steps, links, names)


def _pairs(link: Link) -> tuple[Ints, Ints]:
    """(rows that stay, rows of the view) that are one observation beyond doubt."""
    assert link.match is not None
    sure = link.match.agree & link.match.certain
    return link.keeper.rows[link.match.b[sure]], link.view.rows[link.match.a[sure]]


def _lend(column: pl.Series, to: Ints, of: Ints) -> pl.Series:
    missing = column.is_null().to_numpy()
    wanted = missing[to] & ~missing[of]
    return column.scatter(to[wanted], column.gather(of[wanted])) if wanted.any() else column


def _place_records(
    rows: pl.DataFrame, at: Ints, steps: Ints, links: Sequence[Link], names: Sequence[str]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Give every record the step that its known rows agree on."""
    sources = rows["_source"].to_numpy()
    column = rows["step"].clone()
    givers = ", ".join(sorted({link.format for link in links if link.view.step is None}))
    notes = []
    for source in np.unique(sources[at]).tolist():
        mine = np.flatnonzero(sources == source)
        record = _records(rows[mine].select("tag", "epoch"))
        given: dict[int, set[int]] = {}
        here = sources[at] == source
        for row, step in zip(np.searchsorted(mine, at[here]).tolist(), steps[here].tolist(), strict=True):
            given.setdefault(int(record[row]), set()).add(step)
        sure = {r: found.pop() for r, found in given.items() if len(found) == 1}
        missing = column[mine].is_null().to_numpy()
        free = missing & np.isin(record, list(sure))
        if free.any():
            values = pl.Series([sure[r] for r in record[free].tolist()], dtype=pl.Int64)
            column = column.scatter(mine[free], values)
        notes.append(
            f"{names[source]}: steps of {int(free.sum()):,} of {int(missing.sum()):,} values taken from {givers}"
        )
    return rows.with_columns(column), tuple(notes)


def _records(part: pl.DataFrame) -> Ints:
    """The number of the record that each row of one source belongs to.

    A record ends where a tag comes again or the epoch moves on: what was evaluated at the end of a record is at
    its step.
    """
    return np.fromiter(_numbered(part.iter_rows()), np.int64, len(part))


def _numbered(rows: Iterable[tuple[str, float | None]]) -> Iterator[int]:
    number, last, seen = 0, None, set[str]()
    for tag, epoch in rows:
        if tag in seen or (seen and epoch != last):
            number += 1
            seen.clear()
        seen.add(tag)
        last = epoch
        yield number
