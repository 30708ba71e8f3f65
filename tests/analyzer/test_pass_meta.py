"""What holds for every pass: found by walking, documented, frozen, polite on any input."""

from __future__ import annotations

import dataclasses
import re

import polars as pl
import pytest

from afterrun.analyzer.finding import decode, encode, jsonable
from afterrun.analyzer.pipeline import run_passes
from afterrun.analyzer.registry import Explanation, Pass, build, pass_types
from afterrun.analyzer.view import RunView
from afterrun.loaders.errors import UsageError
from afterrun.loaders.schema import Tables
from tests.support.tables import make_view

CODES = {
    "curves": """overfit overtrained plateau noisy spike divergence non-finite zero-loss level-shift oscillation val-drift
        gap-growing metric-conflict not-learning lr-dead lr-jump no-warmup still-improving collapse""",
    "gradients": "grad-vanishing grad-exploding dead-units poor-init clip-bound",
    "steps": "slow-start step-outliers loader-stall throughput-drift checkpoint-stall hang",
    "gpu": """gpu-idle launch-bound low-utilization transfer-bound exposed-comm straggler imbalance kernel-hotspot kernel-limit
        no-tensor-cores throttled memory-growth memory-limit fragmentation batch-headroom""",
    "job": "restart crash incomplete log-bloat lossy-export undersampled perturbed",
    "runs": "regression outlier-run duplicate-run baseline seed-spread hparam-effect search-edge",
}
"""Every code there may be, by what it is about."""

PASSES = list(pass_types().values())
KEBAB = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def by_code(cls: type[Pass]) -> str:
    return cls.code


def test_codes_are_the_keys_and_unique() -> None:
    codes = [cls.code for cls in PASSES]
    assert len(set(codes)) == len(codes) >= 5
    assert list(pass_types()) == codes


@pytest.mark.parametrize("cls", PASSES, ids=by_code)
class TestEveryPass:
    def test_code_is_kebab_case_known_and_names_its_file(self, cls: type[Pass]) -> None:
        assert KEBAB.fullmatch(cls.code)
        assert cls.code in CODES[cls.about].split()
        assert cls.__module__.rsplit(".", 1)[-1] == cls.code.replace("-", "_")

    def test_is_a_frozen_dataclass_of_documented_thresholds(self, cls: type[Pass]) -> None:
        assert dataclasses.is_dataclass(cls)
        assert cls.__dataclass_params__.frozen  # type: ignore[attr-defined]  # set by dataclass
        for field in dataclasses.fields(cls):
            assert isinstance(field.default, (int, float, str, bool)), field.name
            assert len(field.metadata.get("doc", "")) > 15, field.name
            assert {"doc", "unit", "source"} <= set(field.metadata), field.name
        assert cls().parameters() == {f.name: f.default for f in dataclasses.fields(cls)}

    def test_explanation_is_a_page(self, cls: type[Pass]) -> None:
        page = cls.explain
        assert isinstance(page, Explanation)
        for name in ("meaning", "rule", "abstains", "confused_with"):
            assert len(getattr(page, name)) > 15, name
            assert getattr(page, name).endswith((".", ")")), name
        assert len(page.remedies) >= 2
        assert page.sources

    def test_title_and_needs(self, cls: type[Pass]) -> None:
        assert cls.title
        for need in cls.needs:
            assert need.partition(":")[0] in Tables.names()
        assert set(cls.after) <= {c for codes in CODES.values() for c in codes.split()}

    def test_an_unknown_threshold_is_an_error_that_names_the_nearest(self, cls: type[Pass]) -> None:
        fields = dataclasses.fields(cls)
        if not fields:
            pytest.skip("a pass without thresholds")
        name = fields[0].name
        with pytest.raises(UsageError, match=name):
            build({cls.code: {name + "x": 1}})


HEALTHY = {
    "train/loss": (range(1, 61), [1.0 + 5.0 / s + 0.01 * (s % 3) for s in range(1, 61)]),
    "eval/loss": (range(5, 61, 5), [1.1 + 5.0 / s for s in range(5, 61, 5)]),
    "train/learning_rate": (range(1, 61), [1e-3] * 60),
    "train/grad_norm": (range(1, 61), [1.0 + 0.1 * (s % 5) for s in range(1, 61)]),
}
BROKEN = {
    "train/loss": (range(1, 61), [3.0 / s for s in range(1, 31)] + [float("nan")] * 30),
    "train/grad_norm": (range(1, 61), [1.0] * 29 + [float("inf")] * 31),
}
VIEWS = {
    "healthy": HEALTHY,
    "broken": BROKEN,
    "one point": {"train/loss": ([1], [2.0])},
    "all equal": {"train/loss": (range(100), [1.0] * 100)},
    "only unnamed": {"zorp": (range(50), [float(i % 7) for i in range(50)])},
    "zero and negative": {"train/loss": (range(60), [(-1.0) ** i * (i % 4) for i in range(60)])},
    "nan everywhere": {"train/loss": (range(20), [float("nan")] * 20)},
    "huge and tiny": {"train/loss": (range(60), [10.0 ** ((i * 37) % 600 - 300) for i in range(60)])},
}


@pytest.mark.parametrize("name", VIEWS)
def test_every_pass_answers_once_at_least_and_changes_nothing(name: str) -> None:
    view = make_view(VIEWS[name])  # type: ignore[arg-type]  # ranges are sequences
    before = view.tables.metrics.clone()
    after, faults = run_passes(view, build())
    assert faults == []
    assert set(after.earlier) == set(pass_types())
    for code, findings in after.earlier.items():
        assert findings, code
        for f in findings:
            assert (f.code, f.run) == (code, "run")
            assert f.title[-1:] in (".", ")") or f.title.startswith("Not assessable")
            assert f.parameters == pass_types()[code]().parameters()
            assert (f.status == "abstained") == bool(f.missing)
            assert f.status in ("confirmed", "possible") or f.severity == "info"
            back = decode(encode([f]))[0]
            assert back.values == jsonable(f.values)
            assert back.title == f.title
    assert view.tables.metrics.equals(before, null_equal=True)


def test_a_run_without_any_row_is_abstained_on_by_all() -> None:
    view = RunView(name="empty", tables=Tables())
    after, faults = run_passes(view, build())
    assert faults == []
    assert {f.status for found in after.earlier.values() for f in found} == {"abstained"}


def test_a_healthy_run_raises_no_alarm() -> None:
    after, _ = run_passes(make_view(HEALTHY), build())  # type: ignore[arg-type]  # ranges are sequences
    assert [f.title for found in after.earlier.values() for f in found if f.is_alarm] == []


def test_order_of_passes_follows_after() -> None:
    order = list(pass_types())
    for cls in PASSES:
        for code in cls.after:
            if code in order:
                assert order.index(code) < order.index(cls.code)


@pytest.mark.parametrize("code", ["spike", "divergence", "non-finite"])
def test_multiplying_the_loss_changes_no_verdict(code: str) -> None:
    one = pass_types()[code]()
    for curves in (HEALTHY, BROKEN):
        steps, values = curves["train/loss"]
        scaled = {**curves, "train/loss": (steps, [1e3 * v for v in values])}
        found = [list(one.run(make_view(c))) for c in (curves, scaled)]  # type: ignore[arg-type]  # ranges are sequences
        assert [(f.status, f.severity, f.where) for f in found[0]] == [
            (f.status, f.severity, f.where) for f in found[1]
        ]


def test_superseded_rows_are_not_judged_as_the_curve() -> None:
    view = make_view(HEALTHY)  # type: ignore[arg-type]  # ranges are sequences
    bad = view.tables.metrics.with_columns(value=pl.lit(float("inf")), superseded=pl.lit(value=True))
    metrics = pl.concat([bad.filter(pl.col("tag") == "eval/loss"), view.tables.metrics])
    spoiled = RunView(name="run", tables=view.tables.with_(metrics=metrics))
    for one in build():
        assert [f.status for f in one.run(view)] == [f.status for f in one.run(spoiled)], one.code
