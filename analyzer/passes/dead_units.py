"""Dead units: activations that are zero, nearly everywhere and to the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from afterrun.analyzer.finding import Effect, Finding, Where, jsonable
from afterrun.analyzer.layers.layers import Layer, of_role
from afterrun.analyzer.prose import count, percent
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class DeadUnits(Pass):
    """Layers whose activations are nearly all zero at the end."""

    code: ClassVar[str] = "dead-units"
    title: ClassVar[str] = "Dead units"
    about: ClassVar[str] = "gradients"
    needs: ClassVar[tuple[str, ...]] = ("histograms",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="Nearly all activations of a layer are exactly zero. Units that are zero for every input pass no gradient and do not come back by themselves.",
        rule="The median share of exact zeros in the last tail_share of a layer's activation histograms is at least zero_share. It is confirmed at all_share, where next to nothing is left, and possible below: "
        "a histogram of a layer holds all units together, so sparse units cannot be told from dead ones.",
        abstains="Without histograms of activations, or where their buckets around zero are too wide to tell a zero from a small number.",
        confused_with="Sparse activations, which are normal after ReLU (half to nine tenths zeros); dropout; padding.",
        remedies=(
            "Lower the learning rate: one large step can push a layer's biases so low that no input reaches it.",
            "Use a leaky activation (LeakyReLU, GELU, SiLU) or normalise before the activation.",
            "Look at the layer's input and biases at the step where the share of zeros rose.",
        ),
        sources=(
            "SageMaker Debugger: DeadRelu, a unit is dead if it is active in less than 1 % of the inputs",
            "Lu et al. 2019, Dying ReLU and initialization",
        ),
    )

    zero_share: float = threshold(0.95, "of a layer's activations that are zero", unit="share of the values")
    all_share: float = threshold(
        0.999, "from which the layer is dead for certain", unit="share of the values"
    )
    tail_share: float = threshold(
        0.2, "of the histograms, at the end, that are looked at", unit="share of the steps"
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding naming all dead layers."""
        known = [(la, z) for la in of_role(view.layers, "activation") if (z := self._zeros(la)) is not None]
        if not known:
            missing = ("histograms of activations with buckets that tell zeros",)
            yield abstained(self, view, "Dead units: no activations with known zeros are recorded.", missing)
            return
        dead = sorted(((la, z) for la, z in known if z >= self.zero_share), key=lambda p: -p[1])
        if not dead:
            top = max(z for _, z in known)
            title = f"No layer of {len(known)} is dead; at most {percent(100.0 * top)} of a layer's activations are zero."
            yield refuted(self, view, title, {"layers": len(known), "largest_zero_share_pct": 100.0 * top})
            return
        yield self._finding(view, dead, len(known))

    def _zeros(self, layer: Layer) -> float | None:
        """Median share of zeros at the end; None where no bucket tells it."""
        if layer.zero_share is None:
            return None
        late = layer.zero_share[-max(1, int(self.tail_share * len(layer.x))) :]
        late = late[np.isfinite(late)]
        return float(np.median(late)) if len(late) else None

    def _finding(self, view: RunView, dead: list[tuple[Layer, float]], layers: int) -> Finding:
        worst, share = dead[0]
        onset = self._onset(worst)
        sure = share >= self.all_share
        more = f"; {count(len(dead) - 1, 'other layer')} of {layers} too" if len(dead) > 1 else ""
        since = f" since step {int(worst.x[onset]):,}" if worst.has_step and onset else ""
        return Finding(
            code=self.code,
            status="confirmed" if sure else "possible",
            severity="warning" if sure else "info",
            run=view.name,
            where=Where(
                step_start=int(worst.x[onset]) if worst.has_step else None,
                step_end=int(worst.x[-1]) if worst.has_step else None,
            ),
            title=f"{percent(100.0 * share)} of the activations of {worst.name} are exactly zero{since}{more}.",
            effect=Effect(
                value=100.0 * share,
                unit="% of the activations are zero",
                method="median of the last histograms",
            ),
            evidence=tuple(la.evidence(len(la.x) - 1, z, "share of zeros") for la, z in dead[:SHOWN]),
            parameters=self.parameters(),
            advice=self.explain.remedies,
            values=jsonable(
                {
                    "layers": [la.name for la, _ in dead],
                    "layer_count": layers,
                    "zero_share_pct": 100.0 * share,
                    "dead_units_observable": False,
                }
            ),
        )

    def _onset(self, layer: Layer) -> int:
        """The first histogram from which the share stays above the limit."""
        assert layer.zero_share is not None
        below = np.flatnonzero(~(layer.zero_share >= self.zero_share))
        return min(int(below[-1]) + 1, len(layer.x) - 1) if len(below) else 0
