"""Overtrained, validation drift, growing gap: pairs of curves drawn by hand."""

from __future__ import annotations

import numpy as np
import pytest

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.pipeline import run_passes
from afterrun.analyzer.registry import build
from tests.support.curves import noise, power_law
from tests.support.tables import make_view

N = 1000
row = np.arange(N)
AT = row[19::20]
"""50 evaluations."""


def told(code: str, train: np.ndarray, val: np.ndarray, sd: float = 0.01, **options: object) -> Finding:
    rng = np.random.default_rng(0)
    curves = {
        "train/loss": (row, train * np.exp(noise(rng, N, sd))),
        "val/loss": (AT, val[AT] * np.exp(noise(rng, len(AT), sd / 4))),
    }
    view, faults = run_passes(make_view(curves, **options), build())  # type: ignore[arg-type]  # passed on
    assert faults == []
    (found,) = view.earlier[code]
    return found


def flat_from(at: int) -> np.ndarray:
    return np.asarray(1.0 + 2.0 * np.exp(-np.minimum(row, at) / 60))


class TestOvertrained:
    def test_a_level_reached_early(self) -> None:
        seconds = {"train/loss": 3.0 * row, "val/loss": 3.0 * AT}
        f = told("overtrained", power_law(N, 3.0, 0.5), flat_from(400), wall_s=seconds, devices=2)
        assert (f.status, f.severity) == ("confirmed", "info")
        assert f.where.step_start == pytest.approx(400, abs=50)
        assert f.values["share_behind_pct"] == pytest.approx(60, abs=5)
        assert f.wasted_gpu_s == pytest.approx(6.0 * (999 - f.where.step_start), rel=0.02)
        assert "bought nothing" in f.title

    def test_gains_until_the_end(self) -> None:
        assert told("overtrained", power_law(N, 3.0, 0.5), power_law(N, 3.2, 0.6)).status == "refuted"

    def test_a_turn_is_told_by_overfit(self) -> None:
        turned = np.where(row < 400, flat_from(400), 1.0 * (1 + (row - 400) / 1000))
        f = told("overtrained", power_law(N, 3.0, 0.1), turned)
        assert (f.status, "overfit" in f.title) == ("refuted", True)


class TestValDrift:
    def test_a_rise_while_training_stands_still(self) -> None:
        val = flat_from(300) * (1 + 0.4 * np.clip((row - 400) / 600, 0, 1))
        f = told("val-drift", flat_from(300), val, sd=0.004)
        assert (f.status, f.severity) == ("possible", "warning")
        assert "training stood still" in f.title
        assert f.values["reason"] == "val-drift"

    def test_a_rise_while_training_falls_is_another_matter(self) -> None:
        val = flat_from(300) * (1 + 0.4 * np.clip((row - 400) / 600, 0, 1))
        assert told("val-drift", power_law(N, 3.0, 0.2), val).status == "refuted"

    def test_without_held_out_curves(self) -> None:
        view, _ = run_passes(make_view({"train/loss": (row, power_law(N))}), build())
        assert view.earlier["val-drift"][0].status == "abstained"


class TestGapGrowing:
    def test_both_fall_and_part(self) -> None:
        train = power_law(N, 3.0, 0.5)
        f = told("gap-growing", train, train * (1.05 + 0.3 * row / N))
        assert (f.status, f.severity) == ("confirmed", "info")
        assert f.values["growth_pct"] == pytest.approx(100 * (1.35 / 1.08 - 1), abs=4)

    def test_a_gap_that_stays(self) -> None:
        train = power_law(N, 3.0, 0.5)
        assert told("gap-growing", train, 1.5 * train).status == "refuted"
