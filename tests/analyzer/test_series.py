"""One curve as the passes see it: which rows survive, the axis, the work scale."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterrun.analyzer.series import Series, build_series, surviving
from afterrun.loaders.schema import SCHEMAS


def rows(
    steps: list[int | None],
    values: list[float | None],
    *,
    superseded: list[bool] | None = None,
    attempt: list[int] | None = None,
    source: list[str] | None = None,
    wall_s: list[int] | None = None,
    metric: str | None = "loss",
) -> pl.DataFrame:
    n = len(values)
    frame = pl.DataFrame(
        {
            "run": ["r"] * n,
            "source": source or ["a"] * n,
            "attempt": attempt or [1] * n,
            "rank": [None] * n,
            "tag": ["train/loss"] * n,
            "metric": [metric] * n,
            "split": ["train"] * n,
            "seq": list(range(n)),
            "step": steps,
            "epoch": [None] * n,
            "tokens": [None] * n,
            "wall_ns": [w * 10**9 for w in wall_s] if wall_s else [None] * n,
            "value": values,
            "low": [None] * n,
            "high": [None] * n,
            "superseded": superseded or [False] * n,
        },
        schema=SCHEMAS["metrics"],
    )
    return frame.with_columns(pl.col("tag", "metric", "split", "source").cast(pl.String))


def series(*args: object, better: str | None = "min", **options: object) -> Series:
    built = build_series(rows(*args, **options), run="r", better=better)  # type: ignore[arg-type]  # passed on
    assert built is not None
    return built


def test_superseded_and_unrecorded_rows_are_left_out() -> None:
    s = series([1, 2, 3, 2, 3], [5.0, 4.0, 3.0, None, 2.0], superseded=[False, True, True, False, False])
    assert s.x.tolist() == [1.0, 3.0]
    assert s.value.tolist() == [5.0, 2.0]
    assert s.superseded == 2
    assert len(s.frame) == 5


def test_nan_stays_as_evidence_and_finite_views_skip_it() -> None:
    s = series([1, 2, 3], [2.0, math.nan, 1.0], wall_s=[10, 20, 30])
    assert len(s) == 3
    assert s.finite.tolist() == [True, False, True]
    assert s.y.tolist() == [2.0, 1.0]
    assert s.xf.tolist() == [1.0, 3.0]
    assert s.step_at(1) == 3
    assert s.row_of(1) == 2
    assert s.wall_at(1) == 30 * 10**9


def test_nothing_survives_is_none() -> None:
    assert build_series(rows([1], [1.0], superseded=[True]), run="r", better=None) is None
    assert build_series(rows([1], [None]), run="r", better=None) is None


def test_steps_are_sorted_and_the_last_write_of_a_step_stays() -> None:
    s = series([1, 3, 2, 3], [1.0, 2.0, 3.0, 4.0])
    assert s.x.tolist() == [1.0, 2.0, 3.0]
    assert s.value.tolist() == [1.0, 3.0, 4.0]


def test_without_steps_the_axis_is_the_write_order() -> None:
    s = series([None, None, None], [3.0, 2.0, 1.0])
    assert not s.has_step
    assert s.x.tolist() == [0.0, 1.0, 2.0]
    assert s.step_at(0) is None


def test_one_missing_step_makes_the_step_axis_unusable() -> None:
    assert not series([1, None, 3], [1.0, 1.0, 1.0]).has_step


@pytest.mark.parametrize(
    ("values", "better", "scale"),
    [
        ([2.0, 1.0], "min", "log"),
        ([2.0, 0.0], "min", "raw"),
        ([-1.0, 1.0], "min", "raw"),
        ([0.2, 0.9], "max", "logit"),
        ([20.0, 90.0], "max", "log"),
        ([0.2, 0.9], "min", "log"),
    ],
)
def test_work_scale(values: list[float], better: str, scale: str) -> None:
    assert series([1, 2], values, better=better).scale == scale


def test_work_scale_values_by_hand() -> None:
    assert series([1, 2], [1.0, math.e]).u == pytest.approx([0.0, 1.0])
    accuracy = series([1, 2], [0.5, 1.0], better="max")
    assert accuracy.u == pytest.approx([0.0, math.log((1 - 1e-4) / 1e-4)])
    assert accuracy.cost == pytest.approx(-accuracy.u)


@given(st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=30), st.sampled_from(["min", "max"]))
def test_from_work_undoes_to_work(values: list[float], better: str) -> None:
    s = series(list(range(len(values))), values, better=better)
    expected = np.clip(s.y, 1e-4, 1 - 1e-4) if s.scale == "logit" else s.y
    assert s.from_work(s.u) == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 20), st.floats(0.1, 9), st.booleans()), min_size=1, max_size=40))
def test_the_axis_is_strictly_increasing_and_nothing_is_invented(data: list[tuple[int, float, bool]]) -> None:
    frame = rows([d[0] for d in data], [d[1] for d in data], superseded=[d[2] for d in data])
    alive = surviving(frame)
    assert (alive["step"].diff().drop_nulls() > 0).all()
    assert set(alive["step"]) == {d[0] for d in data if not d[2]}
    last = {d[0]: d[1] for d in data if not d[2]}
    assert dict(zip(alive["step"], alive["value"], strict=True)) == last


def test_evidence_points_to_the_file_of_the_row() -> None:
    s = series([1, 2, 3], [1.0, math.nan, 3.0], source=["a", "b", "b"], attempt=[1, 2, 2])
    assert (s.evidence(0).source, s.evidence(0).step, s.evidence(0).value) == ("a", 1, 1.0)
    assert (s.evidence(1, "here").source, s.evidence(1, "here").value, s.evidence(1, "here").note) == (
        "b",
        "NaN",
        "here",
    )


def test_noise_of_a_trend_is_the_noise_alone() -> None:
    noise = np.random.default_rng(3).normal(0.0, 0.01, 4000)
    s = series(list(range(4000)), np.exp(noise - 0.001 * np.arange(4000)).tolist())
    assert s.sigma == pytest.approx(0.01, rel=0.05)


@pytest.mark.parametrize(("n", "left_out"), [(5, 0), (50, 5), (400, 20), (10_000, 100)])
def test_warm_up_points(n: int, left_out: int) -> None:
    assert series(list(range(n)), [1.0] * n).warmup == left_out


@pytest.mark.parametrize(
    ("metric", "kind"),
    [
        ("loss", "loss"),
        ("box_loss", "loss"),
        ("accuracy", "quality"),
        ("epoch", "axis"),
        (None, "other"),
        ("zorp", "other"),
    ],
)
def test_kind(metric: str | None, kind: str) -> None:
    assert series([1, 2], [1.0, 1.0], metric=metric).kind == kind
