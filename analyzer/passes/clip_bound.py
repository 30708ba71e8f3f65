"""Clipping that acts all the time: the clip value, not the gradient, sets the length of the updates."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.finding import Effect, Finding, Where, jsonable
from afterrun.analyzer.prose import number, percent
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

_CLIP = re.compile(
    r"(?:^|[._/])(?:max_grad_norm|gradient_clip_val|clip_grad(?:_norm)?|gradient_clipping|grad_clip(?:_norm)?|clip_norm)$"
)
SAME = 1e-3
"""Norms this near to the clip value are at it."""


@dataclass(frozen=True, kw_only=True)
class ClipBound(Pass):
    """Gradient norms above the clip value for most of the run."""

    code: ClassVar[str] = "clip-bound"
    title: ClassVar[str] = "Clipping acts all the time"
    about: ClassVar[str] = "gradients"
    needs: ClassVar[tuple[str, ...]] = ("metrics:grad_norm",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="The gradient norm is at or above the clip value in most steps, so every update has the same length and the clip value acts as a second learning rate.",
        rule="In the second half of the run, the share of gradient norms at or above the clip value is more than share_min. The clip value is a parameter of the run "
        "(max_grad_norm, gradient_clip_val, clip_grad, grad_clip, gradient_clipping); a norm that never exceeds it and mostly equals it was logged after clipping.",
        abstains="Without a gradient norm, without a clip value among the parameters, or with fewer than min_points norms.",
        confused_with="Normalised updates on purpose; a norm summed over accumulation steps. With Adam a constant factor on the gradient cancels, so this is information, not an alarm.",
        remedies=(
            "Raise the clip value to a little above the usual norm, so that it cuts leaps only, and lower the learning rate in turn.",
            "Look for the reason of the large norm: no normalisation, a loss that sums over tokens in place of a mean.",
        ),
        sources=(
            "Zhang et al. 2020, Why gradient clipping accelerates training",
            "PyTorch: clip_grad_norm_ returns the norm before clipping",
        ),
    )

    share_min: float = threshold(
        0.5, "of the second half at or above the clip value", unit="share of the points"
    )
    min_points: int = threshold(20, "gradient norms needed", unit="points")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the total norm."""
        norm, clip = view.grad_norm, clip_value(view)
        if norm is None or clip is None or len(norm.y) < self.min_points:
            wanted = "a clip value among the parameters (max_grad_norm, gradient_clip_val, ...)"
            if norm is None or len(norm.y) < self.min_points:
                wanted = f"{self.min_points} gradient norms"
            yield abstained(self, view, "Clipping: norm or clip value are not recorded.", (wanted,))
            return
        key, limit = clip
        half = norm.y[len(norm.y) // 2 :]
        share = float(np.mean(half >= limit * (1.0 - SAME)))
        after = bool(norm.y.max() <= limit * (1.0 + SAME))
        values: dict[str, Any] = {
            "tag": norm.tag,
            "clip_parameter": key,
            "clip_value": limit,
            "clipped_share_pct": 100.0 * share,
            "median_over_clip": float(np.median(half) / limit),
            "logged_after_clipping": after,
        }
        if share <= self.share_min:
            yield refuted(
                self,
                view,
                f"Clipping at {number(limit)} acts in {percent(100.0 * share)} of the steps.",
                values,
            )
            return
        yield self._finding(view, norm, values)

    def _finding(self, view: RunView, norm: Series, values: dict[str, Any]) -> Finding:
        share, limit, over = (
            float(values[k]) for k in ("clipped_share_pct", "clip_value", "median_over_clip")
        )
        half = len(norm.y) // 2
        by = "" if values["logged_after_clipping"] else f", by a factor of {number(over)} in the median"
        return Finding(
            code=self.code,
            status="confirmed",
            severity="info",
            run=view.name,
            rank=norm.rank,
            where=Where(step_start=norm.step_at(half), step_end=norm.step_at(len(norm.y) - 1)),
            title=f"{norm.tag} is cut to {number(limit)} in {percent(share)} of the second half{by}: the clip value sets the length of the updates.",
            effect=Effect(value=share, unit="% of the gradients are clipped", method="count"),
            evidence=(
                norm.evidence(norm.row_of(len(norm.y) - 1), f"{values['clip_parameter']} is {number(limit)}"),
            ),
            parameters=self.parameters(),
            advice=self.explain.remedies,
            values=jsonable(values),
        )


def clip_value(view: RunView) -> tuple[str, float] | None:
    """(name, value) of the parameter that clips the gradient norm; None where none is recorded or it is off."""
    for key, text in view.params.items():
        if _CLIP.search(key.lower()):
            try:
                value = float(str(text).strip('"'))
            except ValueError:
                continue
            if value > 0 and np.isfinite(value):
                return key, value
    return None
