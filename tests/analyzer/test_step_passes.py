"""Passes on step times: from logs, clocks and traces."""

from __future__ import annotations

import numpy as np
import pytest

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.registry import pass_types
from afterrun.analyzer.steps.rise import Rise
from afterrun.analyzer.steps.times import step_times
from afterrun.analyzer.view import RunView
from tests.support.curves import noise
from tests.support.tables import make_view
from tests.support.traces import TraceBook

RNG = np.random.default_rng(5)


def only(code: str, view: RunView) -> Finding:
    (one,) = pass_types()[code]().run(view)
    return one


def logged(seconds: np.ndarray) -> RunView:
    steps = np.arange(1, len(seconds) + 1)
    return make_view({"train/step_time": (steps, seconds)})


class TestOutliers:
    def test_slow_steps_at_equal_distances(self) -> None:
        t = 0.1 * np.exp(RNG.normal(0, 0.01, 200))
        t[49::50] = 1.0
        one = only("step-outliers", logged(t))
        assert (one.status, one.severity) == ("possible", "warning")
        assert one.values["outliers"] == 4
        assert one.values["period_steps"] == 50
        assert one.values["lost_pct"] == pytest.approx(100 * 4 * 0.9 / t.sum(), rel=0.01)

    @pytest.mark.parametrize("slow", [1, 3])
    def test_steady_steps_behind_a_slow_start(self, slow: int) -> None:
        t = 0.1 * np.exp(RNG.normal(0, 0.05, 200))
        t[:slow] = 30.0
        assert only("step-outliers", logged(t)).status == "refuted"

    def test_a_slow_step_of_a_trace_leads_to_its_gap(self) -> None:
        book = TraceBook()
        at = 0.0
        for k in range(30):
            length = 20_000 if k == 17 else 1_000
            book.span("annotation", f"ProfilerStep#{k}", at, length, step=k)
            if length > 1_000:
                book.span("checkpoint", "save_checkpoint", at + 100, 18_000)
            book.work(at + length - 900, 900, called_us=at + length - 905)
            at += length
        one = only("step-outliers", book.view())
        assert one.where.step_start == 17
        assert one.values["gap"]["cause"] == "checkpoint"
        assert "writing checkpoints" in one.title

    def test_nothing_recorded_is_no_answer(self) -> None:
        assert only("step-outliers", make_view({"loss": ([1, 2], [1.0, 2.0])})).status == "abstained"


class TestDrift:
    def test_steps_that_take_longer_and_longer(self) -> None:
        t = 0.1 * np.exp(np.linspace(0, 0.4, 400) + RNG.normal(0, 0.03, 400))
        one = only("throughput-drift", logged(t))
        assert (one.status, one.severity) == ("possible", "warning")
        assert one.values["change_pct"] == pytest.approx(100 * (np.exp(0.36) - 1), rel=0.1)
        assert one.values["low_pct"] < one.values["change_pct"] < one.values["high_pct"]

    def test_steady_steps(self) -> None:
        assert only("throughput-drift", logged(0.1 * np.exp(RNG.normal(0, 0.1, 400)))).status == "refuted"

    @pytest.mark.parametrize("at", [100, 200, 320])
    def test_a_cliff_is_found_where_it_is(self, at: int) -> None:
        slower = np.where(np.arange(400) >= at, 1.5, 1.0)
        one = only("throughput-drift", logged(0.1 * slower * np.exp(RNG.normal(0, 0.05, 400))))
        assert one.severity == "warning"
        assert one.where.step_start == pytest.approx(at, abs=8)
        assert one.values["change_pct"] == pytest.approx(50, rel=0.1)

    def test_a_climb_in_the_last_third(self) -> None:
        climb = np.exp(0.7 * np.clip((np.arange(600) - 400) / 200, 0, 1))
        one = only("throughput-drift", logged(0.1 * climb * np.exp(RNG.normal(0, 0.05, 600))))
        assert one.severity == "warning"
        assert one.where.step_start == pytest.approx(400, abs=40)
        assert one.values["change_pct"] == pytest.approx(100 * (np.exp(0.7) - 1), rel=0.15)

    def test_slow_steps_in_the_middle_that_end_are_none(self) -> None:
        t = 0.1 * np.exp(RNG.normal(0, 0.05, 400))
        t[150:200] *= 3
        assert only("throughput-drift", logged(t)).status == "refuted"

    def test_waves_are_no_drift(self) -> None:
        """AR(1) noise of 5 % with a coefficient of 0.9, as shared storage gives it."""
        waves = [noise(np.random.default_rng(seed), 500, 0.05, 0.9) for seed in range(30)]
        severities = [only("throughput-drift", logged(0.1 * np.exp(w))).severity for w in waves]
        assert severities.count("warning") == 0

    def test_a_falling_throughput_is_the_same_thing(self) -> None:
        rate = 1000 * np.exp(-np.linspace(0, 0.4, 400) + RNG.normal(0, 0.03, 400))
        one = only("throughput-drift", make_view({"train/tokens_per_sec": (np.arange(400), rate)}))
        assert one.severity == "warning"
        assert one.values["origin"] == "throughput"

    @pytest.mark.parametrize(
        ("change", "low", "f", "status"),
        [
            (0.25, -0.05, 37.0, "abstained"),
            (0.25, 0.10, 37.0, "possible"),
            (0.25, -0.05, 10.0, "refuted"),
            (0.03, -0.01, 37.0, "refuted"),
        ],
    )
    def test_what_is_said_follows_the_interval(
        self, change: float, low: float, f: float, status: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Growth whose interval holds zero is neither told nor denied."""
        found = Rise(onset=5, change=change, low=low, high=0.5, f=f)
        monkeypatch.setattr("afterrun.analyzer.passes.throughput_drift.rise", lambda *_, **__: found)
        one = only("throughput-drift", logged(np.full(400, 0.1)))
        assert one.status == status
        assert (one.missing == ("more step times before the growth",)) is (status == "abstained")

    def test_episodes_of_several_environments_give_the_time_of_a_step(self) -> None:
        """Eight environments of 10 ms a step: 1.25 ms for each step of all. Rows of episodes that end together lie close."""
        rng = np.random.default_rng(3)
        lengths = rng.integers(100, 1000, (8, 100))
        ends = np.cumsum(lengths, axis=1)
        order = np.argsort(ends, axis=None)
        steps, wall = np.cumsum(lengths.ravel()[order]), 1e9 + 0.01 * ends.ravel()[order]
        times = step_times(make_view({"loss": (steps, np.linspace(3, 1, 800))}, wall_s={"loss": list(wall)}))
        assert times is not None
        rates = np.diff(wall) / np.diff(steps)
        assert np.median(rates) < 0.9 * 0.00125
        assert np.median(times.seconds) == pytest.approx(0.00125, rel=0.06)
        assert times.seconds @ np.diff(times.step, prepend=steps[0]) == pytest.approx(wall[-1] - wall[0])


class TestHang:
    @staticmethod
    def clocked(wall: np.ndarray, **options: object) -> RunView:
        n = len(wall)
        return make_view(
            {"loss": (np.arange(n), np.linspace(3, 1, n))}, wall_s={"loss": list(wall)}, **options
        )

    def test_a_hole_in_the_wall_clock(self) -> None:
        wall = 1e9 + np.arange(100.0) * 10
        wall[60:] += 3600
        one = only("hang", self.clocked(wall, devices=8))
        assert (one.status, one.severity) == ("possible", "warning")
        assert (one.where.step_start, one.where.step_end) == (59, 60)
        assert one.values["lost_s"] == pytest.approx(3600)
        assert one.wasted_gpu_s == pytest.approx(8 * 3600)

    def test_many_holes_are_a_rhythm(self) -> None:
        wall = 1e9 + np.arange(100.0) * 10 + 600 * (np.arange(100) // 10)
        assert only("hang", self.clocked(wall)).status == "refuted"

    def test_a_hole_between_attempts_is_no_hang(self) -> None:
        wall = 1e9 + np.arange(100.0) * 10
        wall[60:] += 3600
        attempts = {"loss": [1] * 60 + [2] * 40}
        assert only("hang", self.clocked(wall, attempt=attempts)).status == "refuted"
