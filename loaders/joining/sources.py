"""One run seen through several sources: which curves are the same, which of them stays, what the others add.

See docs/decisions/0008-one-run-many-sources.md for the rule. Works on the metric rows of one run with ``_source``,
the index of the file each row comes from, after attempts and ranks are known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from afterrun.loaders.joining.axes import Link, fill_axes
from afterrun.loaders.joining.conflicts import Conflict
from afterrun.loaders.joining.contest import Contest, contests, exceptions
from afterrun.loaders.joining.matching import MIN_DIGITS_ORDER, Curve, Match, by_order, by_step
from afterrun.loaders.joining.told import Told, groups, pairs
from afterrun.loaders.names import Name
from afterrun.loaders.runs.attempts import mark_superseded
from afterrun.loaders.runs.placing import Loaded, few

MIN_PROOF_VALUES = 3
"""Two files are of one training where so many different values of a loss or score agree."""

_TELLING = frozenset({"loss", "quality"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The rows with ``superseded`` and ``view`` (told by another source too), and what was decided."""

    rows: pl.DataFrame
    notes: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    proven: frozenset[int] = frozenset()
    """Indices of the files that are of one training beyond doubt: they hold the same loss or score."""


@dataclass(slots=True)
class _Findings:
    """What was decided, curve by curve."""

    links: list[Link] = field(default_factory=list)
    proofs: list[Link] = field(default_factory=list)
    same: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    renamed: dict[tuple[str, str], list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    further: list[str] = field(default_factory=list)
    contests: list[Contest] = field(default_factory=list)


def join_sources(
    rows: pl.DataFrame, files: Sequence[Loaded], repeated: pl.Series, overrides: Mapping[str, Name]
) -> Joined:
    """Mark every row that a later one replaced or that another source tells too, and join the axes of both.

    ``repeated`` masks the rows of files that stand in another file as a whole.
    """
    formats = sorted({files[i].member.format for i in rows["_source"].unique()})
    if len(formats) < 2:
        gone = mark_superseded(rows, ~repeated) | repeated
        return Joined(rows=rows.with_columns(gone.alias("superseded"), view=repeated))
    code = {name: i for i, name in enumerate(formats)}
    codes = pl.Series("_format", [code.get(f.member.format, -1) for f in files], dtype=pl.Int64)
    codes = codes.gather(rows["_source"])
    # each format has restarts of its own
    apart = rows["tag"].to_physical().cast(pl.Int64) * len(formats) + codes
    gone = mark_superseded(rows.with_columns(tag=apart), ~repeated) | repeated
    rows = rows.with_columns(gone.alias("superseded"), view=repeated)
    found = _Findings()
    for group in groups(rows.with_columns(codes), formats, overrides):
        _join(group, found)
    names = [f.name for f in files]
    filled: tuple[str, ...] = ()
    if found.links:
        copies = np.zeros(len(rows), np.bool_)
        copies[np.concatenate([link.view.rows for link in found.links])] = True
        mask = pl.Series(copies)
        rows = rows.with_columns(pl.col("superseded") | mask, view=pl.col("view") | mask)
        rows, filled = fill_axes(rows, found.links, names)
    conflicts = tuple(c.conflict(rows["_source"], names) for c in found.contests)
    sources = rows["_source"].to_numpy()
    proven = {int(i) for link in found.proofs for c in (link.keeper, link.view) for i in set(sources[c.rows])}
    return Joined(
        rows=rows,
        notes=(*_notes(found), *filled, *(c.sentence() for c in conflicts)),
        conflicts=conflicts,
        proven=frozenset(proven),
    )


def _join(group: list[Told], found: _Findings) -> None:
    """Decide within one group: the same tag is one curve in any case, other tags where their values agree."""
    for first, second in pairs(group):
        if not (first.kept and second.kept) or second.format in first.linked or first.format in second.linked:
            continue
        keeper, view, match = _related(first, second)
        if match is not None and match.enough:
            first.linked.add(second.format)
            second.linked.add(first.format)
            _keep(keeper, view, match, found)
            found.contests += exceptions(keeper, view, match)
        elif first.same_tag(second):
            _keep(first, second, None, found)
    found.contests += contests(group)


def _related(first: Told, second: Told) -> tuple[Told, Told, Match | None]:
    """(the curve that stays, the one it makes superfluous, the points of the second beside the first).

    Points of a restart that were done again count as well, so a record that ends with the first attempt is
    a view of one that goes on, never the other way round.
    """
    a, b = first.curve, second.curve
    inside = by_step(b, a)
    if inside is not None and inside.enough:
        return first, second, inside
    around = by_step(a, b)
    if around is not None and around.enough:
        return second, first, around
    laid = by_order(b, a)
    if laid is not None and laid.enough:
        return first, second, laid
    turned = by_order(a, b) if len(a.living) < len(b.living) else None
    if turned is not None and turned.enough:
        return first, second, turned.turned()
    return first, second, None


def _keep(keeper: Told, view: Told, match: Match | None, found: _Findings) -> None:
    view.kept = False
    link = Link(keeper=keeper.curve, view=view.curve, match=match, format=keeper.format)
    found.links.append(link)
    if keeper.same_tag(view):
        found.same[keeper.format].append(keeper.tag)
    else:
        found.renamed[view.format, keeper.format].append((view.tag, keeper.tag))
    if match is None:
        return
    if view.name.kind in _TELLING and _proves(view.curve, match):
        found.proofs.append(link)
    if view.name.kind != "axis" and (beyond := _beyond(keeper, view, match)):
        found.further.append(beyond)


def _proves(view: Curve, match: Match) -> bool:
    """Whether the values that agree are too many and too exact for chance."""
    values = np.unique(view.value[match.a[match.agree]])
    return len(values) >= MIN_PROOF_VALUES and len(values) * view.precision.told >= MIN_DIGITS_ORDER


def _beyond(keeper: Told, view: Told, match: Match) -> str | None:
    """What to say where the curve that was set aside goes on behind the end of the one that stays."""
    a, b = keeper.curve, view.curve
    last = match.a[match.agree][-1]
    more = len(b.living) - 1 - int(np.flatnonzero(b.living == last)[0])
    at_end = match.b[match.agree][-1] == a.living[-1]
    if not more or not at_end:
        return None
    points = "point" if more == 1 else "points"
    return f"{view.tag} ({view.format}) goes on for {more:,} {points} behind the end of {keeper.tag} ({keeper.format})"


def _notes(found: _Findings) -> Iterable[str]:
    for kept, tags in found.same.items():
        yield f"{few(sorted(set(tags)))} recorded in several formats: the curve is taken from {kept}"
    for (view, kept), names in found.renamed.items():
        theirs, ours = (few([p[i] for p in sorted(names)]) for i in (0, 1))
        yield f"values of {theirs} ({view}) are those of {ours} ({kept}): counted once"
    yield from found.further
