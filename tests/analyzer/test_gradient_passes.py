from __future__ import annotations

import numpy as np
import pytest

from afterrun.analyzer.finding import Finding, Where
from afterrun.analyzer.passes.clip_bound import ClipBound
from afterrun.analyzer.passes.dead_units import DeadUnits
from afterrun.analyzer.passes.grad_exploding import GradExploding
from afterrun.analyzer.passes.grad_vanishing import GradVanishing, depth_slope
from afterrun.analyzer.passes.poor_init import PoorInit
from afterrun.analyzer.registry import Pass
from tests.support.tables import Curve, make_view

N = 400
X = np.arange(N) * 10
RNG = np.random.default_rng(5)
NOISE = np.exp(0.2 * RNG.normal(size=N))
STUCK = np.full(N, 2.3) * np.exp(0.01 * RNG.normal(size=N))
LEARNT = 2.3 * np.exp(-3.0 * np.arange(N) / N)


def only(one: Pass, curves: dict[str, Curve], **options: object) -> Finding:
    (found,) = one.run(make_view(curves, **options))
    return found


# -- vanishing -------------------------------------------------------------------------------------


def faded(decades: float = 5.0, until: int = 100) -> np.ndarray:
    return 10.0 ** (-decades * np.clip(np.arange(N) / until, 0, 1)) * NOISE


def test_a_norm_that_fades_while_the_loss_stays() -> None:
    f = only(GradVanishing(), {"loss": (X, STUCK), "grad_norm": (X, faded())})
    assert (f.status, f.severity) == ("confirmed", "critical")
    assert f.where.step_start == pytest.approx(900, abs=50), "a factor of 3 above its end at 9/10 of the way"
    assert f.values["decades"] == pytest.approx(5.0, abs=0.3)


def test_a_norm_that_fades_with_the_loss_has_converged() -> None:
    assert only(GradVanishing(), {"loss": (X, LEARNT), "grad_norm": (X, faded())}).status == "refuted"


def test_a_norm_that_fades_without_a_loss_is_possible() -> None:
    assert only(GradVanishing(), {"grad_norm": (X, faded())}).status == "possible"


def test_exact_zeros_have_vanished() -> None:
    norm = np.where(np.arange(N) < 100, NOISE, 0.0)
    f = only(GradVanishing(), {"loss": (X, STUCK), "grad_norm": (X, norm)})
    assert (f.status, f.where.step_start, f.values["final_level"]) == ("confirmed", 980, 0.0)


@pytest.mark.parametrize("norm", [NOISE, faded(2.0), NOISE * np.linspace(1, 9, N)])
def test_ordinary_norms_do_not_vanish(norm: np.ndarray) -> None:
    assert only(GradVanishing(), {"loss": (X, STUCK), "grad_norm": (X, norm)}).status == "refuted"


def by_layer(sizes: list[float]) -> dict[str, Curve]:
    return {f"grad_norm/layer{i}.weight": (X, size * NOISE) for i, size in enumerate(sizes)}


def test_a_layer_that_gets_nothing() -> None:
    f = only(GradVanishing(), by_layer([1.0, 2.0, 1e-5, 1.0, 0.5, 1.5]))
    assert (f.status, f.values["layers"], f.values["weakest"]) == ("confirmed", ["layer2"], "layer2")
    assert f.values["weakest_share"] == pytest.approx(1e-5, rel=0.5)


def test_gradients_that_fade_with_depth() -> None:
    f = only(GradVanishing(), by_layer([10.0 ** (0.5 * i) for i in range(6)]))
    assert (f.status, f.values["weakest"]) == ("possible", "layer0")
    assert f.values["slope_decades_per_layer"] == pytest.approx(0.5)


def test_frozen_layers_and_biases_are_no_vanishing() -> None:
    curves = by_layer([1.0, 2.0, 1.0, 0.5]) | {
        "grad_norm/frozen.weight": (X, 0.0 * X),
        "grad_norm/layer0.bias": (X, 1e-9 * NOISE),
    }
    assert only(GradVanishing(), curves).status == "refuted"


def test_without_gradients_it_abstains() -> None:
    f = only(GradVanishing(), {"loss": (X, STUCK)})
    assert f.status == "abstained"
    assert "grad_norm" in f.missing[0]


def test_slope_of_known_sizes() -> None:
    assert depth_slope(np.array([1.0, 10.0, 100.0, 1000.0])) == (pytest.approx(1.0), pytest.approx(1.0))
    assert depth_slope(np.array([1.0, 0.0, 0.0, 1.0])) == (0.0, 0.0)


# -- exploding -------------------------------------------------------------------------------------


def leaping(at: dict[int, float]) -> np.ndarray:
    norm = NOISE.copy()
    for i, factor in at.items():
        norm[i] = factor
    return norm


def test_leaps_are_found_where_they_are() -> None:
    f = only(GradExploding(), {"loss": (X, LEARNT), "grad_norm": (X, leaping({200: 50.0, 300: 120.0}))})
    assert (f.status, f.severity, f.where.step_start, f.where.step_end) == (
        "confirmed",
        "warning",
        2000,
        3000,
    )
    assert (f.values["leaps"], f.values["steps"]) == (2, [2000, 3000])
    assert f.values["largest_factor"] == pytest.approx(120.0, rel=0.3)


def test_a_norm_that_stays_up() -> None:
    f = only(GradExploding(), {"grad_norm": (X, np.where(np.arange(N) < 250, NOISE, 80 * NOISE))})
    assert (f.status, f.where.step_start, f.values["stays_up"]) == ("confirmed", 2500, True)


@pytest.mark.parametrize(
    "norm",
    [
        NOISE,
        leaping({200: 5.0}),
        NOISE * np.linspace(1, 20, N),
        np.exp(0.8 * np.random.default_rng(1).standard_t(4, N)),
    ],
    ids=["calm", "small leap", "slow growth", "heavy tail"],
)
def test_ordinary_norms_do_not_explode(norm: np.ndarray) -> None:
    assert only(GradExploding(), {"grad_norm": (X, norm)}).status == "refuted"


def test_the_finding_about_the_loss_tells_the_story() -> None:
    view = make_view({"grad_norm": (X, leaping({200: 90.0}))})
    spike = Finding(
        code="spike",
        status="confirmed",
        severity="warning",
        run="run",
        title="",
        where=Where(step_start=1990, step_end=2030),
    )
    (f,) = GradExploding().run(view.with_earlier([spike]))
    assert (f.severity, f.values["part_of"]) == ("info", "spike")


def test_too_few_norms() -> None:
    assert only(GradExploding(), {"grad_norm": (X[:20], NOISE[:20])}).status == "abstained"


# -- clipping --------------------------------------------------------------------------------------


def test_a_norm_above_the_clip_value() -> None:
    f = only(ClipBound(), {"grad_norm": (X, 4.0 * NOISE)}, params={"args.max_grad_norm": "1.0"})
    assert (f.status, f.severity) == ("confirmed", "info")
    assert f.values["clipped_share_pct"] == 100.0
    assert f.values["median_over_clip"] == pytest.approx(4.0, rel=0.1)
    assert not f.values["logged_after_clipping"]


def test_a_norm_logged_after_clipping() -> None:
    f = only(ClipBound(), {"grad_norm": (X, np.minimum(2 * NOISE, 1.0))}, params={"gradient_clip_val": "1.0"})
    assert (f.status, f.values["logged_after_clipping"]) == ("confirmed", True)


def test_clipping_of_leaps_only() -> None:
    f = only(ClipBound(), {"grad_norm": (X, 0.2 * NOISE)}, params={"clip_grad": "1.0"})
    assert (f.status, f.values["clipped_share_pct"]) == ("refuted", 0.0)


@pytest.mark.parametrize(
    "params", [{}, {"max_grad_norm": "0"}, {"max_grad_norm": '"none"'}, {"clip_range": "0.2"}]
)
def test_without_a_clip_value(params: dict[str, str]) -> None:
    assert only(ClipBound(), {"grad_norm": (X, NOISE)}, params=params).status == "abstained"


# -- histograms ------------------------------------------------------------------------------------


def activations(zeros: list[int]) -> list[tuple[int, list[float], list[float]]]:
    """A hundred values a histogram, so many of them exactly zero."""
    return [(10 * i, [0.0, 1e-12, 1.0, 2.0], [z, 100 - z, 0]) for i, z in enumerate(zeros)]


def test_a_layer_that_dies() -> None:
    told = {
        "activations/relu1": activations([50] * 20),
        "activations/relu2": activations([60] * 8 + [100] * 12),
    }
    f = only(DeadUnits(), {}, histograms=told)
    assert (f.status, f.severity, f.where.step_start) == ("confirmed", "warning", 80)
    assert (f.values["layers"], f.values["zero_share_pct"]) == (["relu2"], 100.0)


def test_a_sparse_layer_may_hold_dead_units() -> None:
    f = only(DeadUnits(), {}, histograms={"activations/relu1": activations([97] * 10)})
    assert (f.status, f.severity) == ("possible", "info")


def test_ordinary_sparsity_is_healthy() -> None:
    assert only(DeadUnits(), {}, histograms={"activations/relu1": activations([90] * 10)}).status == "refuted"


def test_wide_buckets_tell_no_zeros() -> None:
    told = {"activations/relu1": [(i, [0.0, 1.0, 2.0], [99, 1]) for i in range(10)]}
    assert only(DeadUnits(), {}, histograms=told).status == "abstained"


def spread(size: float) -> list[tuple[int, list[float], list[float]]]:
    return [(10 * i, [-size, 0.0, size], [50, 50]) for i in range(5)]


NOTHING = [(10 * i, [0.0, 0.0], [100]) for i in range(5)]


def test_a_layer_of_zeros_that_gets_no_gradient() -> None:
    told = {
        "weights/fc1": spread(0.1),
        "weights/fc2": NOTHING,
        "gradients/fc1": spread(1e-3),
        "gradients/fc2": NOTHING,
    }
    f = only(PoorInit(), {}, histograms=told)
    assert (f.status, f.severity, f.values["zero_layers"]) == ("confirmed", "warning", ["fc2"])


def test_a_layer_of_zeros_that_moves_is_meant_so() -> None:
    told = {
        "weights/fc1": spread(0.1),
        "weights/lora_B": NOTHING,
        "gradients/fc1": spread(1e-3),
        "gradients/lora_B": spread(1e-3),
    }
    assert only(PoorInit(), {}, histograms=told).status == "refuted"


@pytest.mark.parametrize(("loss", "status"), [(STUCK, "possible"), (LEARNT, "refuted")])
def test_layers_orders_apart(loss: np.ndarray, status: str) -> None:
    told = {"gradients/fc1": spread(1e-7), "gradients/fc2": spread(1.0)}
    f = only(PoorInit(), {"loss": (X, loss)}, histograms=told)
    assert f.status == status
    assert f.values["gradient_ratio"] == pytest.approx(1e7)


def test_without_histograms_of_layers() -> None:
    assert only(PoorInit(), {}, histograms={"images": spread(1.0)}).status == "abstained"
