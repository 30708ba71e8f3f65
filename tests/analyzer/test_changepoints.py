from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterrun.analyzer.curves.changepoints import straight_pieces


def test_three_straight_pieces() -> None:
    rng = np.random.default_rng(0)
    t = np.arange(1000) / 1000
    u = np.where(t < 0.3, 2.0 - 3.0 * t, 1.1) - 0.3 * (t >= 0.7) + rng.normal(0.0, 0.02, 1000)
    assert [p.start for p in straight_pieces(u)] == pytest.approx([0, 300, 700], abs=10)


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_one_piece(seed: int) -> None:
    assert len(straight_pieces(np.random.default_rng(seed).normal(0.0, 1.0, 700))) == 1


def test_a_constant_and_a_short_curve_are_one_piece() -> None:
    assert len(straight_pieces(np.ones(50))) == 1
    assert len(straight_pieces(np.array([1.0, 2.0, 5.0]))) == 1


@given(st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=1, max_size=400))
def test_pieces_cover_the_curve(y: list[float]) -> None:
    pieces = straight_pieces(np.array(y))
    assert pieces[0].start == 0
    assert pieces[-1].end == len(y)
    assert all(a.end == b.start for a, b in itertools.pairwise(pieces))
    assert all(p.start < p.end for p in pieces)
