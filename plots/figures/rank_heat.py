"""Who waited for whom: lateness of each rank in each collective, or step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.straggler import rank_of
from afterrun.analyzer.prose import span_time
from afterrun.analyzer.view import RunView
from afterrun.plots.canvas.paint import paint
from afterrun.plots.content.compose import run_title
from afterrun.plots.content.device import notes_of
from afterrun.plots.registry import Figure, Prepared, Skip
from afterrun.plots.spec import Key, XAxis, row_panel, rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme

MOST_RANKS, MOST_COLUMNS = 32, 240


class RankHeat(Figure):
    """Rank by collective: darker is later."""

    name = "rank-heat"
    title = "Which rank comes late"
    codes: ClassVar[tuple[str, ...]] = ("straggler", "imbalance", "exposed-comm")

    def prepare(self, view: RunView, findings: Sequence[Finding]) -> Prepared | Skip:
        """How far behind the first rank each one starts each collective; columns are means where there are many."""
        matched = view.trace.collectives
        if matched is None:
            return Skip("fewer than two ranks with collectives are recorded")
        late = matched.start - np.nanmin(matched.start, axis=1, keepdims=True)
        group = np.array_split(np.arange(len(late)), min(len(late), MOST_COLUMNS))
        cells = np.stack([_means(late[g]) for g in group])
        cost = matched.lateness.sum(axis=0)
        order = np.sort(np.argsort(-cost, kind="stable")[:MOST_RANKS])
        top = float(np.nanquantile(cells[:, order], 0.99)) or 1.0
        columns, ranks = np.meshgrid(np.arange(len(group)), np.arange(len(order)), indexing="ij")
        value = cells[:, order]
        known = np.isfinite(value)
        starts = np.array([g[0] for g in group], float) + 1
        ends = np.array([g[-1] for g in group], float) + 2
        worst = matched.devices[int(np.argmax(cost))]
        names = tuple(f"rank {rank_of(matched.devices[i])}" for i in order)
        some = f"; {len(order)} of {late.shape[1]} ranks" if len(order) < late.shape[1] else ""
        return Prepared(
            frame=rows(
                "main",
                "heat",
                "late",
                starts[columns[known]],
                x_end=ends[columns[known]],
                y=np.clip(value[known] / top, 0.0, 1.0),
                low=ranks[known] - 0.46,
                high=ranks[known] + 0.46,
            ),
            title=run_title(view, "which rank comes late"),
            note=f"start of each collective behind its first rank, clocks aligned on common ends; white 0, full {span_time(top)} or more{some}",
            alt=f"{late.shape[1]} ranks over {len(late)} collectives; rank {rank_of(worst)} costs the others most, {span_time(float(cost.max()))} in all.",
            x=XAxis("collective, in order", 1.0, float(len(late) + 1)),
            panels=(row_panel("main", names),),
            keys=(Key("box", "dataloader", "late"),),
            marks=notes_of(findings, self.codes),
            roles={"late": "dataloader"},
        )

    def draw(self, prepared: Prepared, theme: Theme) -> MplFigure:
        """Cells, one row a rank."""
        return paint(prepared, theme)


def _means(rows: np.ndarray) -> np.ndarray:
    """The mean of each column over its finite values; NaN where it has none."""
    known = np.isfinite(rows)
    total = np.where(known, rows, 0.0).sum(axis=0)
    out = np.full(rows.shape[1], np.nan)
    np.divide(total, known.sum(axis=0), out=out, where=known.any(axis=0))
    return out
