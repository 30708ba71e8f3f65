"""Poor initialisation: layers that start at nothing, or orders apart from each other, and a loss that does not start."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.finding import Effect, Finding, Where, jsonable
from afterrun.analyzer.layers.layers import Layer, of_role
from afterrun.analyzer.prose import count, number
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

SHOWN = 5
EARLY_SHARE = 0.1


@dataclass(frozen=True, kw_only=True)
class PoorInit(Pass):
    """Weights or gradients of the first steps that cannot train well."""

    code: ClassVar[str] = "poor-init"
    title: ClassVar[str] = "Poor initialisation"
    about: ClassVar[str] = "gradients"
    needs: ClassVar[tuple[str, ...]] = ("histograms",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="The run began with weights that slow learning down: a layer of zeros passes nothing on, and layers whose gradients differ by orders of magnitude cannot share one learning rate.",
        rule="In the first histograms: a layer's weights are all zero and its gradients stay zero for early_histograms histograms (confirmed); or the gradients of the layers "
        "are more than spread_ratio apart (root mean square, smallest to largest) while the training loss falls by less than start_pct in the first tenth of the run (possible).",
        abstains="Without histograms of weights or gradients in at least two layers.",
        confused_with="Zeros on purpose, which move from the first step on: the second matrix of LoRA, the last layer of a residual block, an output layer. Frozen layers, which keep their values.",
        remedies=(
            "Use an initialisation made for the activation: He for ReLU, Xavier for tanh and sigmoid.",
            "Normalise (batch, layer or RMS norm) so that the scale of the weights matters less.",
            "Check that the layer is in the optimizer and its parameters require gradients.",
        ),
        sources=(
            "SageMaker Debugger: PoorWeightInitialization",
            "He et al. 2015, Delving deep into rectifiers",
        ),
    )

    spread_ratio: float = threshold(1e4, "largest to smallest gradient over layers", unit="x")
    early_histograms: int = threshold(3, "first histograms looked at", unit="histograms")
    start_pct: float = threshold(2.0, "fall of the loss in the first tenth that counts as a start", unit="%")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the first histograms."""
        weights = [la for la in of_role(view.layers, "weight") if la.rms is not None]
        gradients = [la for la in of_role(view.layers, "gradient") if la.rms is not None]
        if len(weights) < 2 and len(gradients) < 2:
            missing = ("histograms of weights or gradients of two layers",)
            yield abstained(self, view, "Initialisation: no histograms of layers are recorded.", missing)
            return
        still = [la for la in weights if self._still(la, gradients)]
        sizes = {la.name: s for la in gradients if (s := self._early(la)) > 0}
        ratio = max(sizes.values()) / min(sizes.values()) if len(sizes) > 1 else 1.0
        fall_pct = _start_pct(view)
        values = {
            "zero_layers": [la.name for la in still],
            "gradient_ratio": ratio,
            "smallest_gradient_layer": min(sizes, key=lambda k: sizes[k]) if sizes else None,
            "largest_gradient_layer": max(sizes, key=lambda k: sizes[k]) if sizes else None,
            "early_loss_fall_pct": fall_pct,
        }
        slow = fall_pct is not None and fall_pct < self.start_pct
        if still:
            names = ", ".join(la.name for la in still[:SHOWN])
            title = (
                f"{count(len(still), 'layer')} of {len(weights)} start at zero and get no gradient: {names}."
            )
            yield self._finding(view, still, title, values)
        elif ratio > self.spread_ratio and slow:
            apart = [
                la
                for la in gradients
                if la.name in (values["smallest_gradient_layer"], values["largest_gradient_layer"])
            ]
            title = (
                f"The first gradients of {values['smallest_gradient_layer']} are {number(ratio)} times smaller than those of "
                f"{values['largest_gradient_layer']}, and the loss does not start to fall."
            )
            yield self._finding(view, apart, title, values)
        else:
            yield refuted(
                self, view, f"The layers start within a factor of {number(ratio)} of each other.", values
            )

    def _early(self, layer: Layer) -> float:
        assert layer.rms is not None
        first = layer.rms[: self.early_histograms]
        first = first[np.isfinite(first)]
        return float(np.median(first)) if len(first) else 0.0

    def _still(self, weight: Layer, gradients: list[Layer]) -> bool:
        """Whether a weight is zero throughout the first histograms and its gradient as well."""
        assert weight.rms is not None
        own = next((g for g in gradients if g.name == weight.name), None)
        first = weight.rms[: self.early_histograms]
        zero = len(first) >= self.early_histograms and bool((first == 0.0).all())
        return (
            zero
            and own is not None
            and own.rms is not None
            and bool((own.rms[: self.early_histograms] == 0.0).all())
        )

    def _finding(self, view: RunView, layers: list[Layer], title: str, values: dict[str, Any]) -> Finding:
        sure = bool(values["zero_layers"])
        first = layers[0]
        return Finding(
            code=self.code,
            status="confirmed" if sure else "possible",
            severity="warning" if sure else "info",
            run=view.name,
            where=Where(step_start=int(first.x[0]) if first.has_step else None),
            title=title,
            effect=Effect(
                value=float(values["gradient_ratio"]),
                unit="times from the smallest to the largest gradient",
                method="first histograms",
            ),
            evidence=tuple(la.evidence(0, float(la.size[0]), f"mean |{la.role}|") for la in layers[:SHOWN]),
            parameters=self.parameters(),
            advice=self.explain.remedies,
            values=jsonable(values),
        )


def _start_pct(view: RunView) -> float | None:
    """Fall of the training loss in the first tenth of the run, in percent."""
    loss = view.train_loss
    if loss is None or len(loss.y) < 20:
        return None
    k = max(5, int(EARLY_SHARE * len(loss.y)))
    part = max(1, k // 5)
    start, later = float(np.median(loss.y[:part])), float(np.median(loss.y[k - part : k]))
    return 100.0 * (start - later) / abs(start) if start else None
