from __future__ import annotations

import numpy as np

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.zero_loss import ZeroLoss
from tests.support.tables import make_view

X = np.arange(100)
FALLING = 2.0 * 0.99**X


def only(curves: dict[str, tuple[np.ndarray, np.ndarray]]) -> Finding:
    (found,) = ZeroLoss().run(make_view(curves))
    return found


def test_a_positive_loss_that_turns_exactly_zero() -> None:
    y = np.where(X < 40, FALLING, 0.0)
    grad = np.where(X < 40, 1.0, np.nan)
    f = only({"loss": (X, y), "grad_norm": (X, grad)})
    assert (f.status, f.severity, f.where.step_start, f.where.step_end) == ("confirmed", "critical", 40, 99)
    assert f.values["zeros"] == 60
    assert f.values["grad_norm_after"] == "NaN"
    assert f.values["level_before"] == np.median(FALLING[35:40])


def test_a_loss_that_was_never_anything_else() -> None:
    f = only({"loss": (X, X * 0.0)})
    assert (f.status, f.where.step_start) == ("confirmed", 0)
    assert f.title == "loss is exactly 0 in all of its 100 values."


def test_rounding_of_a_small_loss_is_only_possible() -> None:
    f = only({"loss": (X, np.round(0.01 * 0.9**X, 4))})
    assert f.status == "possible"


def test_zeros_that_go_away_again_are_no_finding() -> None:
    y = np.where((X > 40) & (X < 50), 0.0, FALLING)
    assert only({"loss": (X, y)}).status == "refuted"


def test_without_a_loss_it_says_what_is_missing() -> None:
    f = only({"accuracy": (X, X / 100)})
    assert f.status == "abstained"
    assert "loss" in f.missing[0]
