from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.pipeline import run_passes, unmet
from afterrun.analyzer.registry import Explanation, Pass, build, pass_types, threshold
from afterrun.analyzer.view import RunView
from afterrun.loaders.errors import UsageError
from tests.support.tables import make_view

X = np.arange(50)
VIEW = make_view({"train/loss": (X, 1.0 / (X + 1))})


class _Base(Pass):
    title = "made for a test"
    about = "curves"
    explain = Explanation(meaning="", rule="", abstains="", confused_with="", remedies=(), sources=())


@dataclass(frozen=True)
class _Fine(_Base):
    code: ClassVar[str] = "fine"
    limit: int = threshold(3, "a limit")

    def run(self, view: RunView) -> Iterable[Finding]:
        yield Finding(
            code="fine", status="refuted", severity="info", run=view.name, title=f"limit {self.limit}"
        )


@dataclass(frozen=True)
class _Breaks(_Base):
    code: ClassVar[str] = "breaks"

    def run(self, view: RunView) -> Iterable[Finding]:
        raise ZeroDivisionError("by a pass")


@dataclass(frozen=True)
class _Needy(_Base):
    code: ClassVar[str] = "needy"
    needs: ClassVar[tuple[str, ...]] = ("spans", "metrics:lr")

    def run(self, view: RunView) -> Iterable[Finding]:
        raise AssertionError("its needs are not met")


@dataclass(frozen=True)
class _Later(_Base):
    code: ClassVar[str] = "later"

    def run(self, view: RunView) -> Iterable[Finding]:
        title = " and ".join(sorted(view.earlier))
        yield Finding(code="later", status="refuted", severity="info", run=view.name, title=title)


def test_a_pass_that_breaks_costs_its_own_answer_only() -> None:
    view, faults = run_passes(VIEW, [_Breaks(), _Fine()])
    assert view.earlier["fine"][0].title == "limit 3"
    (f,) = view.earlier["breaks"]
    assert f.status == "abstained"
    assert faults == ["run: the pass breaks failed (ZeroDivisionError: by a pass)"]


def test_unmet_needs_are_answered_without_the_pass() -> None:
    view, faults = run_passes(VIEW, [_Needy()])
    (f,) = view.earlier["needy"]
    assert (f.status, f.missing) == ("abstained", ("no spans (a profiler trace)", "no lr"))
    assert not faults


def test_a_pass_sees_the_findings_before_it() -> None:
    view, _ = run_passes(VIEW, [_Fine(), _Later()])
    assert view.earlier["later"][0].title == "fine"
    assert VIEW.earlier == {}, "the view itself is not changed"


def test_needs() -> None:
    assert unmet(("metrics", "metrics:loss", "metrics:loss/train"), VIEW.tables) == ()
    assert unmet(("metrics:loss/val", "samples"), VIEW.tables) == ("metrics:loss/val", "samples")


def test_settings_reach_their_pass() -> None:
    (overfit,) = [p for p in build({"overfit": {"min_evals": "12"}}) if p.code == "overfit"]
    assert overfit.parameters()["min_evals"] == 12


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"overfti": {}}, "did you mean 'overfit'"),
        ({"overfit": {"min_eval": 3}}, "did you mean 'min_evals'"),
        ({"overfit": {"min_evals": "few"}}, "is not a int"),
    ],
)
def test_wrong_settings_name_the_nearest(settings: dict[str, dict[str, object]], word: str) -> None:
    with pytest.raises(UsageError, match=word):
        build(settings)


def test_passes_run_after_those_they_name() -> None:
    order = list(pass_types())
    for code, cls in pass_types().items():
        for earlier in set(cls.after) & set(order):
            assert order.index(earlier) < order.index(code)


def test_passes_run_in_the_same_order_in_every_process() -> None:
    script = "from afterrun.analyzer.registry import pass_types; print(*pass_types())"
    orders = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(orders) == 1
