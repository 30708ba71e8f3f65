"""Starts at the full learning rate: losses that blow up first, drawn by hand."""

from __future__ import annotations

import numpy as np
import pytest

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.no_warmup import NoWarmup
from afterrun.analyzer.view import RunView
from tests.support.curves import constant_lr, linear_lr, noise, power_law
from tests.support.tables import make_view

N = 600
row = np.arange(N)
STEP = 10 * row
FULL = linear_lr(N, 2 * N)


def loss(blow_up: float, top: int = 12) -> np.ndarray:
    """8.0 at the start; a hump ``blow_up`` times that at row ``top``; the descent begins at three times ``top``."""
    hump = 1 + blow_up * (row / top) * np.exp(1 - row / top)
    late = power_law(N)[np.maximum(0, row - 3 * top)]
    return np.asarray(late * hump * np.exp(noise(np.random.default_rng(0), N, 0.02)))


def judge(view: RunView) -> Finding:
    (found,) = NoWarmup().run(view)
    return found


def test_a_blow_up_at_the_full_rate() -> None:
    f = judge(make_view({"loss": (STEP, loss(0.8)), "lr": (STEP, FULL)}))
    assert (f.status, f.severity, f.where.step_start) == ("possible", "warning", 0)
    assert f.values["rise_pct"] == pytest.approx(80, abs=10)
    assert f.values["top_step"] == pytest.approx(120, abs=60)
    back = float(np.argmax((row > 12) & (loss(0.8) < 8.0)) * 10)
    assert f.values["back_step"] == pytest.approx(back, abs=60)


@pytest.mark.parametrize(
    ("curve", "rate"),
    [
        pytest.param(loss(0.8), constant_lr(N, warmup=30), id="with a warm-up"),
        pytest.param(loss(0.0), FULL, id="no blow-up"),
        pytest.param(loss(0.08), FULL, id="a small one"),
        pytest.param(power_law(N)[::-1] + 6, FULL, id="never back"),
    ],
)
def test_no_finding(curve: np.ndarray, rate: np.ndarray) -> None:
    assert judge(make_view({"loss": (STEP, curve), "lr": (STEP, rate)})).status == "refuted"


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(make_view({"loss": (STEP, loss(0.8))}), id="no rate"),
        pytest.param(make_view({"lr": (STEP, FULL)}), id="no loss"),
        pytest.param(
            make_view({"loss": (STEP + 3000, loss(0.8)), "lr": (STEP + 3000, FULL)}),
            id="the start is not here",
        ),
        pytest.param(
            make_view({"loss": (STEP[:20], loss(0.8)[:20]), "lr": (STEP[:20], FULL[:20])}), id="few values"
        ),
    ],
)
def test_what_cannot_be_judged(view: RunView) -> None:
    assert judge(view).status == "abstained"


@pytest.mark.parametrize("n", [300, 3000])
@pytest.mark.parametrize("rho", [0.0, 0.9, 0.98])
def test_waves_at_the_start_are_no_blow_up(rho: float, n: int) -> None:
    """AR(1) noise of 15 % about a slow descent, at the full rate from the first step: at most one of 60 runs."""
    steps = 10 * np.arange(n)
    found = []
    for seed in range(60):
        u = noise(np.random.default_rng(seed), n, 0.15, rho)
        view = make_view(
            {"loss": (steps, power_law(n, floor=4.0) * np.exp(u)), "lr": (steps, linear_lr(n, 2 * n))}
        )
        found.append(judge(view))
    assert sum(f.is_alarm for f in found) <= 1
