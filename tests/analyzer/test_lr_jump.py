"""Learning rates that go up at once: schedules drawn by hand."""

from __future__ import annotations

import numpy as np
import pytest

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.lr_jump import LrJump
from afterrun.analyzer.view import RunView
from tests.support.curves import constant_lr, cosine_lr, noise, power_law
from tests.support.tables import make_view

N = 400
row = np.arange(N)
STEP = 10 * row
HALF = 0.5 * (1 + np.cos(np.pi * np.arange(200) / 200))
"""One cycle of a cosine from 1 to nearly 0 in 200 records."""


def resumed(at: int = 250) -> np.ndarray:
    """A cosine whose last part is a cosine from the peak again."""
    rate = cosine_lr(N)
    rate[at:] = 3e-4 * 0.5 * (1 + np.cos(np.pi * np.linspace(0, 1, N - at)))
    return rate


def loss(rise: float = 0.0, at: int = 250) -> np.ndarray:
    answer = 1 + rise * np.where(row < at, 0.0, np.exp(-(row - at) / 20))
    return np.asarray(power_law(N) * answer * np.exp(noise(np.random.default_rng(0), N, 0.02)))


def judge(view: RunView) -> Finding:
    (found,) = LrJump().run(view)
    return found


def test_a_schedule_built_anew() -> None:
    f = judge(make_view({"lr": (STEP, resumed()), "loss": (STEP, loss(0.3))}))
    assert (f.status, f.severity) == ("confirmed", "warning")
    assert (f.where.step_start, f.where.step_end) == (2500, 2500)
    assert f.values["factor"] == pytest.approx(3e-4 / cosine_lr(N)[249])
    assert f.values["loss_rise_pct"] == pytest.approx(25, abs=8)
    assert "the training loss rose by" in f.title


def test_a_jump_that_did_no_harm_is_information() -> None:
    f = judge(make_view({"lr": (STEP, resumed()), "loss": (STEP, loss())}))
    assert (f.status, f.severity) == ("confirmed", "info")
    assert "did not answer" in f.title


def test_at_a_resume_it_is_a_warning_whatever_the_loss_does() -> None:
    attempts = [1 + (r >= 250) for r in row]
    f = judge(
        make_view(
            {"lr": (STEP, resumed()), "loss": (STEP, loss())}, attempt={"lr": attempts, "loss": attempts}
        )
    )
    assert f.severity == "warning"
    assert f.values["at_resume"] is True


@pytest.mark.parametrize(
    "rate",
    [
        pytest.param(cosine_lr(N), id="cosine"),
        pytest.param(constant_lr(N, warmup=3), id="a short warm-up"),
        pytest.param(np.concatenate([HALF, HALF]), id="a warm restart"),
        pytest.param(
            np.concatenate([0.1 + 0.9 * HALF, 0.1 + 0.9 * HALF]), id="a warm restart from a tenth of the peak"
        ),
        pytest.param(np.where(row < 200, 1e-3, 1e-4), id="a drop"),
        pytest.param(np.abs((row / 10) % 2 - 1) + 0.01, id="triangles"),
        pytest.param(
            np.where(row < 150, 1e-4, np.minimum(1.0, (row - 140) / 50) * 1e-3), id="a ramp in the middle"
        ),
    ],
)
def test_what_schedules_do(rate: np.ndarray) -> None:
    assert judge(make_view({"lr": (STEP, rate), "loss": (STEP, loss())})).status == "refuted"


def test_few_records_or_none() -> None:
    assert judge(make_view({"loss": (STEP, loss())})).status == "abstained"
    assert judge(make_view({"lr": (STEP[::20], resumed()[::20])})).status == "abstained"
