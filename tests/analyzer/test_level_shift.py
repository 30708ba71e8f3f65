"""A training loss that steps up: hand-made curves with a known step."""

from __future__ import annotations

import numpy as np
import pytest

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.level_shift import LevelShift
from afterrun.analyzer.pipeline import run_passes
from afterrun.analyzer.registry import build
from afterrun.analyzer.view import RunView
from tests.support.curves import constant_lr, noise, power_law
from tests.support.tables import make_view

N = 500
row = np.arange(N)
STEP = 10 * row


def curve(
    factor: float = 1.0, at: int = 300, sd: float = 0.02, rho: float = 0.0, seed: int = 0
) -> np.ndarray:
    shifted = np.where(row >= at, factor, 1.0)
    return power_law(N) * shifted * np.exp(noise(np.random.default_rng(seed), N, sd, rho))


def judge(view: RunView) -> Finding:
    (found,) = LevelShift().run(view)
    return found


@pytest.mark.parametrize("at", [60, 300, 420])
@pytest.mark.parametrize("factor", [1.25, 2.0])
def test_a_step_is_found_where_it_is(factor: float, at: int) -> None:
    f = judge(make_view({"loss": (STEP, curve(factor, at))}))
    assert (f.status, f.severity) == ("confirmed", "warning")
    assert f.where.step_start == 10 * at
    assert f.values["rise_pct"] == pytest.approx(100 * (factor - 1), abs=8)


def spiked(points: int) -> np.ndarray:
    return np.asarray(curve() * np.where((row >= 300) & (row < 300 + points), 1.8, 1.0))


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(curve(), id="healthy"),
        pytest.param(curve(1.05), id="small"),
        pytest.param(spiked(8), id="a spike"),
        pytest.param(curve(0.6), id="a step down"),
        pytest.param(curve() * (1 + 8 * np.exp(-(row % 60) / 6)), id="spikes one after the other"),
        pytest.param(curve(sd=0.1, rho=0.9), id="waves"),
        pytest.param(curve() * (1 + np.clip((row - 300) / 200, 0, 1)), id="a climb"),
    ],
)
def test_what_is_no_step(loss: np.ndarray) -> None:
    assert judge(make_view({"loss": (STEP, loss)})).status == "refuted"


def test_waves_are_hardly_ever_steps() -> None:
    """AR(1) noise of 5 % with a coefficient of 0.8: at most one of 60 runs."""
    found = [judge(make_view({"loss": (STEP, curve(sd=0.05, rho=0.8, seed=i))})) for i in range(60)]
    assert sum(f.is_alarm for f in found) <= 1


def test_what_changed_at_the_step_is_named() -> None:
    rate = np.where(row >= 300, 10.0, 1.0) * constant_lr(N)
    f = judge(make_view({"loss": (STEP, curve(1.5)), "lr": (STEP, rate)}))
    assert f.values["cause"] == "learning rate"
    assert "rose to 10 times" in f.title
    resumed = judge(make_view({"loss": (STEP, curve(1.5))}, attempt={"loss": [1 + (r >= 300) for r in row]}))
    assert resumed.values["cause"] == "resume"
    assert "resume" in resumed.advice[0]


def test_one_story_is_told_once() -> None:
    view, faults = run_passes(make_view({"loss": (STEP, curve(2.5))}), build())
    assert faults == []
    alarms = {code for code, found in view.earlier.items() if any(f.is_alarm for f in found)}
    assert alarms == {"level-shift"}


HALF = 0.5 * (1 + np.cos(np.pi * np.arange(250) / 250))
"""One cycle of a cosine from 1 to nearly 0 in half of the rows."""


def restarted(loss: np.ndarray, rate: np.ndarray | None = None, attempt: list[int] | None = None) -> Finding:
    """The verdict beside two cycles of a learning rate, after all passes that come before."""
    given = np.concatenate([HALF, HALF]) if rate is None else rate
    both = {"loss": attempt, "lr": attempt} if attempt else {}
    view, faults = run_passes(
        make_view({"loss": (STEP, loss), "lr": (STEP, 1e-3 * given)}, attempt=both), build()
    )
    assert faults == []
    (found,) = view.earlier["level-shift"]
    return found


LIFT = curve() * (1 + 0.4 * np.concatenate([HALF, HALF]))
"""A loss that stands 40 % higher at the full rate than at none."""


def test_the_answer_to_a_planned_restart_is_no_step() -> None:
    assert judge(make_view({"loss": (STEP, LIFT)})).where.step_start == 2500  # without the rate it is one
    f = restarted(LIFT)
    assert (f.status, f.values["at_restarts"]) == ("refuted", [2500])
    ends_high = np.concatenate([HALF, np.ones(250)])  # a second phase at the full rate, to the end
    assert restarted(curve() * (1 + 0.4 * ends_high), ends_high).status == "refuted"


def test_a_restart_hides_no_step() -> None:
    stays = restarted(curve(1.6, at=250))  # the rate is down again, the loss is not
    assert (stays.status, stays.where.step_start, stays.values["cause"]) == (
        "confirmed",
        2500,
        "learning rate",
    )
    elsewhere = restarted(LIFT * np.where(row >= 350, 1.3, 1.0))  # lower than the answer to the restart
    assert (elsewhere.status, elsewhere.where.step_start) == ("confirmed", 3500)
    resumed = restarted(LIFT, attempt=[1 + (r >= 250) for r in row])
    assert (resumed.status, resumed.values["cause"]) == ("confirmed", "resume")


def test_without_a_loss_or_with_few_values() -> None:
    assert judge(make_view({"zorp": (STEP, curve())})).status == "abstained"
    assert judge(make_view({"loss": (STEP[:40], curve()[:40])})).status == "abstained"
