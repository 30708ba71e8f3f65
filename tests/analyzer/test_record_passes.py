"""Lossy exports, contradictions, large logs: what the passes say of how a run was recorded."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.log_bloat import LogBloat
from afterrun.analyzer.passes.lossy_export import LossyExport
from afterrun.analyzer.passes.metric_conflict import MetricConflict
from afterrun.analyzer.pipeline import analyse
from afterrun.analyzer.view import RunView
from afterrun.loaders.collect import collect
from afterrun.loaders.joining.conflicts import Conflict, to_marks
from afterrun.loaders.schema import SCHEMAS
from tests.support.tables import make_view


def view_with(view: RunView, **frames: pl.DataFrame) -> RunView:
    return replace(view, tables=view.tables.with_(**frames))


def sources(*rows: dict[str, object]) -> pl.DataFrame:
    blank = dict.fromkeys(SCHEMAS["sources"])
    return pl.DataFrame(
        [blank | {"run": "run", "sampled": False, "rows": 0} | r for r in rows], schema=SCHEMAS["sources"]
    )


class TestLossyExport:
    def test_five_hundred_random_rows(self, tmp_path: Path) -> None:
        steps = [0, *sorted(random.Random(1).sample(range(1, 9990), 498)), 9990]
        rows = "".join(f"{i},{s},{1 + 1 / (i + 1)}\n" for i, s in enumerate(steps))
        (tmp_path / "history.csv").write_text(",_step,loss\n" + rows)
        (f,) = [f for f in analyse(collect([tmp_path])).findings if f.code == "lossy-export"]
        assert (f.status, f.severity) == ("confirmed", "warning")
        assert f.title.startswith(
            "history.csv holds a sample of the rows of the run (looks sampled (500 rows over 9,991 steps"
        )
        assert "loss" in f.values["tags"]

    def test_whole_sources(self) -> None:
        view = view_with(make_view({"loss": (range(9), np.ones(9))}), sources=sources({"source": "a.csv"}))
        (f,) = LossyExport().run(view)
        assert (f.status, f.title) == ("refuted", "No source is a sample (1 source read).")


class TestMetricConflict:
    AT = np.arange(0, 1000, 20)

    def judge(self, accuracy: np.ndarray) -> Finding:
        loss = 1 + 0.5 * ((self.AT - 300) / 500) ** 2
        (f,) = MetricConflict().run(
            make_view({"val/loss": (self.AT, loss), "val/accuracy": (self.AT, accuracy)})
        )
        return f

    def test_loss_and_accuracy_are_best_elsewhere(self) -> None:
        f = self.judge(0.5 + 0.4 * self.AT / 1000)
        assert (f.status, f.severity) == ("confirmed", "info")
        assert (f.where.step_start, f.where.step_end) == (
            pytest.approx(300, abs=20),
            pytest.approx(970, abs=20),
        )
        assert f.values["cost"] == pytest.approx(27, abs=1.5)  # points: 0.62 against 0.888

    def test_both_are_best_together(self) -> None:
        assert self.judge(0.8 - 0.4 * ((self.AT - 320) / 700) ** 2).status == "refuted"

    def test_two_sources_that_differ(self) -> None:
        told = Conflict(
            tag="loss", source="a.csv", value=1.0, other_tag="loss", other_source="b.jsonl", other_value=2.0,
            step=3, rank=None, shared=100, differing=40,
        )  # fmt: skip
        view = make_view({"loss": (range(9), np.ones(9))})
        (f,) = MetricConflict().run(view_with(view, marks=to_marks("run", [told])))
        assert (f.severity, f.where.step_start) == ("info", 3)
        assert "differ at 40 of 100 shared steps, first at step 3: 1 and 2" in f.title
        assert f.effect is not None
        assert f.effect.value == 40.0


class TestLogBloat:
    @staticmethod
    def judge(*rows: dict[str, object]) -> Finding:
        view = make_view({"loss": (range(9), np.ones(9))})
        (f,) = LogBloat().run(view_with(view, sources=sources(*rows)))
        return f

    def test_a_large_event_file(self) -> None:
        f = self.judge(
            {"source": "a", "bytes": 3 * 2**30, "rows": 1000}, {"source": "b", "bytes": 2**20, "rows": 24}
        )
        assert (f.status, f.severity) == ("confirmed", "info")
        assert f.title.startswith("2 logs of 3.00 GiB hold 1,024 values")
        assert f.values["largest_source"] == "a"

    def test_many_bytes_a_value(self) -> None:
        assert self.judge({"source": "a", "bytes": 300 * 2**20, "rows": 1000}).status == "confirmed"
        assert self.judge({"source": "a", "bytes": 300 * 2**20, "rows": 10**6}).status == "refuted"
        assert self.judge({"source": "a", "bytes": 3 * 2**20, "rows": 10}).status == "refuted"

    def test_without_sizes(self) -> None:
        assert self.judge({"source": "a"}).status == "abstained"
