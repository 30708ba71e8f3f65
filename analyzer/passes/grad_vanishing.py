"""Vanishing gradients: a norm that falls by orders while the loss stays, or layers that hardly get any."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.finding import Effect, Finding, Status, Where, jsonable
from afterrun.analyzer.layers.layers import Grid, grid, of_role
from afterrun.analyzer.prose import count, number, percent, place
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.stats import Array
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

EARLY_SHARE, LATE_SHARE = 0.05, 0.5
EARLY_POINTS = 5
"""The level at the start is the largest of the medians of so many points within the early share, ..."""
KNEE_FACTOR = 3.0
"""... and it has vanished where the running median first comes this near to its final level."""
SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class GradVanishing(Pass):
    """Gradients that fade over the run or over the depth of the model."""

    code: ClassVar[str] = "grad-vanishing"
    title: ClassVar[str] = "Vanishing gradients"
    about: ClassVar[str] = "gradients"
    explain: ClassVar[Explanation] = Explanation(
        meaning="Gradients have become too small to move the weights: over the run, where the norm falls by orders of magnitude while the loss stays, "
        "or over the depth, where some layers get a thousandth of what the others get.",
        rule="Over the run: at least hold_share of the second half of the gradient norm lies below 10^-drop_decades of its early level, and the training loss has fallen by less than "
        "stuck_pct (confirmed) or solved_pct (possible); where the loss fell further, the gradient is small because the run converged. "
        "Over the depth: a layer's gradient stays below layer_ratio of the median over all layers in hold_share of the second half, or the gradients change along the layers by more than "
        "slope_decades a layer with a rank correlation of at least 0.8. Biases and normalisations are left out.",
        abstains="Without a gradient norm and without gradients of at least min_layers layers.",
        confused_with="Convergence, where the loss falls with the gradient; frozen layers, whose gradients are zero by intention; a norm logged after unscaling went wrong.",
        remedies=(
            "Look which layers get no gradient: a detached graph, a frozen or saturated layer (sigmoid, tanh, dead ReLU) or a missing residual connection.",
            "Use an initialisation made for the activation (He for ReLU, Xavier for tanh) and normalisation layers.",
            "In 16-bit floats: use loss scaling or bfloat16; gradients below 6e-8 become zero in float16.",
            "Check that the loss depends on the model's output: a mask, a constant target or a clamp may cut it off.",
        ),
        sources=(
            "SageMaker Debugger: VanishingGradient, mean |gradient| below 1e-7",
            "Glorot and Bengio 2010, Understanding the difficulty of training deep feedforward neural networks",
        ),
    )

    drop_decades: float = threshold(3.0, "orders of magnitude below the early level", unit="decades")
    hold_share: float = threshold(0.8, "of the second half that must lie below", unit="share of the points")
    stuck_pct: float = threshold(20.0, "fall of the loss up to which it counts as stuck", unit="%")
    solved_pct: float = threshold(
        50.0, "fall of the loss from which the gradient is small by right", unit="%"
    )
    min_points: int = threshold(20, "gradient norms needed", unit="points")
    layer_ratio: float = threshold(1e-3, "of the median over layers that a layer gets", unit="ratio")
    slope_decades: float = threshold(0.25, "change from layer to layer", unit="decades a layer")
    min_layers: int = threshold(4, "layers with gradients needed", unit="layers")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding: about the whole norm, else about layers."""
        norm = view.grad_norm
        table = grid(of_role(view.layers, "gradient"))
        enough = norm is not None and len(norm.y) >= self.min_points
        deep = table is not None and len(table.layers) >= self.min_layers
        if not enough and not deep:
            hint = view.map_hint("grad_norm", "train")
            missing = (
                f"a gradient norm ({self.min_points} values: {hint}) or gradients of {self.min_layers} layers",
            )
            yield abstained(self, view, "Vanishing gradients: no gradient is recorded.", missing)
            return
        found = self._over_run(view, norm) if norm is not None and enough else None
        found = found or (self._over_depth(view, table) if table is not None and deep else None)
        yield found or refuted(
            self,
            view,
            "Gradients do not vanish.",
            {"tag": norm.tag if norm else None, "layers": len(table.layers) if table else 0},
        )

    # -- over the run ------------------------------------------------------------------------------

    def _over_run(self, view: RunView, norm: Series) -> Finding | None:
        y = norm.y
        early = early_level(y)
        late = y[int(LATE_SHARE * len(y)) :]
        if early <= 0.0 or float(np.mean(late <= early * 10.0**-self.drop_decades)) < self.hold_share:
            return None
        fall_pct = _loss_fall_pct(view)
        if fall_pct is not None and fall_pct >= self.solved_pct:
            return None
        final = float(np.median(late))
        knee = _knee(y, final)
        status: Status = "confirmed" if fall_pct is not None and fall_pct < self.stuck_pct else "possible"
        decades = math.log10(early / final) if final > 0 else None
        values: dict[str, Any] = {
            "tag": norm.tag,
            "early_level": early,
            "final_level": final,
            "decades": decades,
            "loss_fall_pct": fall_pct,
            "layers": None,
        }
        loss = (
            "no training loss is recorded"
            if fall_pct is None
            else f"the training loss fell by {percent(fall_pct)}"
        )
        return Finding(
            code=self.code,
            status=status,
            severity="critical" if status == "confirmed" else "warning" if fall_pct is None else "info",
            run=view.name,
            rank=norm.rank,
            where=Where(
                step_start=norm.step_at(knee),
                step_end=norm.step_at(len(y) - 1),
                t_start_ns=norm.wall_at(knee),
                t_end_ns=norm.wall_at(len(y) - 1),
            ),
            title=f"{norm.tag} falls from {number(early)} to {number(final)} by {place(norm, norm.xf[knee])} and stays there; {loss}.",
            effect=Effect(value=decades, unit="decades of the gradient norm", method="ratio of medians"),
            evidence=(
                norm.evidence(
                    norm.row_of(int(np.argmax(y[: max(EARLY_POINTS, int(EARLY_SHARE * len(y)))]))), "early"
                ),
                norm.evidence(norm.row_of(knee), "final level reached"),
            ),
            parameters=self.parameters(),
            wasted_gpu_s=view.gpu_s_between(float(norm.xf[knee]), float(norm.xf[-1]))
            if norm.has_step and status == "confirmed"
            else None,
            advice=self.explain.remedies,
            values=jsonable(values),
        )

    # -- over the depth ----------------------------------------------------------------------------

    def _over_depth(self, view: RunView, table: Grid) -> Finding | None:
        half = table.size[int(LATE_SHARE * len(table.x)) :]
        typical = np.nanmedian(np.where(half > 0, half, np.nan), axis=1, keepdims=True)
        if not np.isfinite(typical).any():
            return None
        with np.errstate(invalid="ignore"):
            starved = np.mean(half < self.layer_ratio * typical, axis=0) >= self.hold_share
        frozen = (table.size == 0.0).all(axis=0)
        weak = np.flatnonzero(starved & ~frozen)
        slope, rho = depth_slope(np.median(half[:, ~frozen], axis=0))
        sloped = abs(slope) > self.slope_decades and abs(rho) >= 0.8
        if not len(weak) and not sloped:
            return None
        names = [table.layers[i].name for i in weak]
        level = np.median(half, axis=0)
        low = (
            int(weak[np.argmin(level[weak])])
            if len(weak)
            else int(np.argmin(np.where(frozen, np.inf, level)))
        )
        worst = table.layers[low]
        share = float(level[low] / np.median(typical))
        if names:
            title = f"{count(len(names), 'layer')} of {len(table.layers)} get less than {number(self.layer_ratio)} of the typical gradient; {worst.name} gets {number(share)} of it."
        else:
            ends = "first" if slope > 0 else "last"
            title = f"Gradients fade towards the {ends} layers, by a factor of {number(10.0 ** abs(slope))} from layer to layer; {worst.name} gets {number(share)} of the median."
        last = len(worst.x) - 1
        return Finding(
            code=self.code,
            status="confirmed" if names else "possible",
            severity="warning",
            run=view.name,
            where=Where(
                step_start=int(worst.x[0]) if worst.has_step else None,
                step_end=int(worst.x[last]) if worst.has_step else None,
            ),
            title=title,
            effect=Effect(
                value=share, unit="of the median gradient over layers", method="medians of the second half"
            ),
            evidence=tuple(
                table.layers[i].evidence(
                    len(table.layers[i].x) - 1, float(table.layers[i].size[-1]), "gradient size"
                )
                for i in (weak[:SHOWN] if len(weak) else [low])
            ),
            parameters=self.parameters(),
            advice=self.explain.remedies,
            values=jsonable(
                {
                    "layers": names,
                    "layer_count": len(table.layers),
                    "frozen_layers": [table.layers[i].name for i in np.flatnonzero(frozen)],
                    "weakest": worst.name,
                    "weakest_share": share,
                    "slope_decades_per_layer": slope,
                    "rank_correlation": rho,
                }
            ),
        )


def early_level(y: Array) -> float:
    """The largest running median of the first points: where the norm stood before anything was learned."""
    head = y[: max(EARLY_POINTS, int(EARLY_SHARE * len(y)))]
    return float(
        max(np.median(head[i : i + EARLY_POINTS]) for i in range(max(1, len(head) - EARLY_POINTS + 1)))
    )


def depth_slope(size: Array) -> tuple[float, float]:
    """(decades a layer, Spearman's rank correlation) of sizes along the layers; (0, 0) where too few are positive."""
    some = size > 0
    if some.sum() < 4:
        return 0.0, 0.0
    depth = np.flatnonzero(some).astype(np.float64)
    log = np.log10(size[some])
    slope = float(np.polyfit(depth, log, 1)[0])
    ranks = np.argsort(np.argsort(log)).astype(np.float64)
    spread = float(np.std(ranks))
    rho = float(np.corrcoef(np.arange(len(ranks)), ranks)[0, 1]) if spread > 0 else 0.0
    return slope, rho


def _knee(y: Array, final: float) -> int:
    """The first point from which the median of the next few is near the final level."""
    near = y <= (KNEE_FACTOR * final if final > 0 else 0.0)
    run = np.lib.stride_tricks.sliding_window_view(near, EARLY_POINTS).mean(axis=1) > 0.5
    hits = np.flatnonzero(run)
    return int(hits[0]) if len(hits) else len(y) - 1


def _loss_fall_pct(view: RunView) -> float | None:
    """By how much the training loss fell from its start to its end, in percent of the start."""
    loss = view.train_loss
    if loss is None or len(loss.y) < EARLY_POINTS:
        return None
    k = max(1, min(len(loss.y) // 10, 50))
    start, end = float(np.median(loss.y[:k])), float(np.median(loss.y[-k:]))
    return 100.0 * (start - end) / abs(start) if start else None
