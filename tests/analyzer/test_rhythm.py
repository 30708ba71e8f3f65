"""Periods of step times: the workers of a loader, the interval of checkpoints."""

from __future__ import annotations

import numpy as np
import pytest

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.checkpoint_stall import CheckpointStall
from afterrun.analyzer.passes.loader_stall import LoaderStall
from afterrun.analyzer.steps.rhythm import rhythm
from afterrun.analyzer.view import RunView
from tests.support.curves import noise
from tests.support.tables import make_view

N = 600


def steps(
    period: int = 0, factor: float = 1.0, sd: float = 0.05, seed: int = 0, rho: float = 0.0
) -> np.ndarray:
    t = 0.1 * np.exp(noise(np.random.default_rng(seed), N, sd, rho))
    if period:
        t[::period] *= factor
    return t


@pytest.mark.parametrize("period", [2, 4, 8, 12, 16])
@pytest.mark.parametrize("factor", [1.3, 2.3])
def test_every_so_many_steps_one_is_slow(period: int, factor: float) -> None:
    found = rhythm(steps(period, factor))
    assert found is not None
    assert (found.period, found.phase) == (period, 0)
    expected = 100 * (factor - 1) / (factor - 1 + period)
    assert found.excess_pct == pytest.approx(expected, rel=0.25)


def test_noise_has_none() -> None:
    kinds = [steps(seed=i, sd=0.2) for i in range(15)] + [steps(seed=i, rho=0.8) for i in range(15)]
    drifting = [steps(seed=i) * np.linspace(1, 3, N) for i in range(10)]
    assert [rhythm(t) for t in kinds + drifting if rhythm(t) is not None] == []
    assert rhythm(steps()[:15]) is None


def view(seconds: np.ndarray, **params: str) -> RunView:
    return make_view({"train/step_time": (np.arange(1, N + 1), seconds)}, params=params, devices=2)


def stall(of: RunView) -> Finding:
    (found,) = LoaderStall().run(of)
    return found


def test_the_period_of_the_workers_is_the_loader() -> None:
    f = stall(view(steps(8, 3.0), **{"data.num_workers": "8"}))
    assert (f.status, f.severity, f.values["period_steps"]) == ("possible", "critical", 8)
    assert f.values["excess_pct"] == pytest.approx(20, abs=1)


def test_another_period_or_none_told_is_no_answer() -> None:
    assert stall(view(steps(8, 3.0), num_workers="4")).status == "abstained"
    assert stall(view(steps(8, 3.0))).status == "abstained"
    assert stall(view(steps(), num_workers="8")).status == "abstained"


def checkpoint(of: RunView) -> Finding:
    (found,) = CheckpointStall().run(of)
    return found


def saving(factor: float) -> np.ndarray:
    t = steps()
    t[49::50] *= factor
    return t


def test_steps_at_the_interval_of_checkpoints() -> None:
    f = checkpoint(view(saving(11.0), save_steps="50"))
    assert (f.status, f.severity) == ("possible", "warning")
    assert f.values["lost_pct"] == pytest.approx(100 * 10 / 60, abs=1)
    assert f.wasted_gpu_s == pytest.approx(2 * f.values["lost_s"])
    assert f.where.step_start == 50


def test_quick_checkpoints_and_an_unknown_interval() -> None:
    assert checkpoint(view(saving(1.2), save_steps="50")).status == "refuted"
    assert checkpoint(view(saving(11.0))).status == "abstained"
    assert checkpoint(view(saving(11.0), save_steps="500")).status == "abstained"
