"""Zero loss: a training loss of exactly 0.0, which no batch of real data gives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.finding import Effect, Finding, Status, Where, jsonable
from afterrun.analyzer.prose import count, number, percent, place
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

BEFORE = 5
"""Positive values before the zeros whose median says where the loss stood."""


@dataclass(frozen=True, kw_only=True)
class ZeroLoss(Pass):
    """Training loss of exactly zero to the end of the run."""

    code: ClassVar[str] = "zero-loss"
    title: ClassVar[str] = "Loss of exactly zero"
    about: ClassVar[str] = "curves"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="The training loss was exactly 0.0 from some step to the end. Real data does not give an exact zero: every label was masked, the loss was replaced, "
        "or a NaN filter wrote zeros in place of NaN.",
        rule="At least min_points values at the end of the training loss are exactly zero. Where the last values before them stood above rounding_level, the fall to zero is no rounding "
        "of a small loss and the finding is confirmed; below it, it is possible, for a logger with four decimals shows a converged loss as 0.0.",
        abstains="Without a training loss.",
        confused_with="A loss that converged below the decimals of the log; a hinge or margin loss, which does reach zero; a loss that ends in NaN.",
        remedies=(
            "Look at one batch after the onset: count the labels that are not the ignore index.",
            "Switch the NaN filter of the logger off (Hugging Face: logging_nan_inf_filter=False) and look whether the loss is NaN.",
            "Look at the gradient norm: zero or NaN from the same step on means that nothing was learned since.",
            "Go back to the last checkpoint before the onset.",
        ),
        sources=(
            "Hugging Face Trainer: logging_nan_inf_filter replaces NaN losses, labels of -100 are ignored by the loss",
        ),
    )

    min_points: int = threshold(5, "fewer zeros at the end may be one odd logging window", unit="points")
    rounding_level: float = threshold(
        1e-3, "a loss that stood above this before the zeros did not get there by rounding", unit="loss"
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the training loss."""
        loss = view.train_loss
        if loss is None:
            hint = view.map_hint("loss", "train")
            yield abstained(
                self, view, "Zero loss: no training loss is recorded.", (f"the training loss: {hint}",)
            )
            return
        nonzero = np.flatnonzero(loss.y != 0.0)
        first = int(nonzero[-1]) + 1 if len(nonzero) else 0
        zeros = len(loss.y) - first
        if zeros < self.min_points:
            yield refuted(self, view, f"{loss.tag} is not zero.", {"tag": loss.tag, "zeros_at_end": zeros})
            return
        yield self._finding(view, loss, first)

    def _finding(self, view: RunView, loss: Series, first: int) -> Finding:
        before = loss.y[max(0, first - BEFORE) : first]
        level = float(np.median(np.abs(before))) if first else None
        status: Status = "confirmed" if level is None or level > self.rounding_level else "possible"
        end = float(loss.xf[-1])
        share_pct = 100.0 * (len(loss.y) - first) / len(loss.y)
        values: dict[str, Any] = {
            "tag": loss.tag,
            "onset_step": loss.step_at(first),
            "zeros": len(loss.y) - first,
            "points": len(loss.y),
            "share_pct": share_pct,
            "level_before": level,
            "grad_norm_after": _grad_after(view, float(loss.xf[first])),
        }
        wasted = view.gpu_s_between(float(loss.xf[first]), end) if loss.has_step else None
        last = () if first == 0 else (loss.evidence(loss.row_of(first - 1), "last value that is not zero"),)
        return Finding(
            code=self.code,
            status=status,
            severity="critical" if status == "confirmed" else "warning",
            run=view.name,
            rank=loss.rank,
            where=Where(
                step_start=loss.step_at(first),
                step_end=loss.step_at(len(loss.y) - 1),
                t_start_ns=loss.wall_at(first),
                t_end_ns=loss.wall_at(len(loss.y) - 1),
            ),
            title=_title(loss, first, level),
            effect=Effect(value=share_pct, unit="% of the values are exactly zero", method="count"),
            evidence=(*last, loss.evidence(loss.row_of(first), "first zero")),
            parameters=self.parameters(),
            wasted_gpu_s=wasted,
            advice=self.explain.remedies,
            values=jsonable(values),
        )


def _grad_after(view: RunView, onset: float) -> str | None:
    """What the gradient norm says after the onset: ``NaN``, ``zero``, ``alive``; None where not recorded."""
    grad = view.grad_norm
    if grad is None:
        return None
    after = grad.value[grad.x >= onset]
    if not len(after):
        return None
    if np.mean(~np.isfinite(after)) > 0.5:
        return "NaN"
    return "zero" if np.median(after[np.isfinite(after)]) == 0.0 else "alive"


def _title(loss: Series, first: int, level: float | None) -> str:
    zeros = len(loss.y) - first
    if level is None:
        return f"{loss.tag} is exactly 0 in all of its {count(zeros, 'value')}."
    share = percent(100.0 * zeros / len(loss.y))
    return f"{loss.tag} falls from {number(level)} to exactly 0 at {place(loss, loss.xf[first])} and stays there, {share} of its values."
