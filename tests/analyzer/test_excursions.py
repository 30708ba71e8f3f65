"""Upward excursions of a curve, the tail of its noise, and the definitions of others beside them."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterrun.analyzer.curves.excursions import Excursion, Rule, resolution, upward
from afterrun.analyzer.curves.spike_context import (
    GradientWatch,
    megatron_rl_points,
    megatron_spiky_points,
    olmo_spike_score_pct,
    zclip_points,
)
from afterrun.analyzer.curves.spikes import Tail, binomial_tail
from tests.support.tables import make_view

RULE = Rule(z_min=7.0, rise_min=0.05)


def noise(n: int, sd: float = 0.01, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, sd, n)


def test_one_spike_with_its_parts() -> None:
    u = noise(300)
    u[200:203] += [1.0, 0.6, 0.3]
    (e,) = upward(u, RULE)
    assert (e.start, e.peak, e.end, e.returned) == (200, 200, 203, True)
    assert e.height == pytest.approx(1.0, abs=0.05)
    assert e.level == pytest.approx(0.0, abs=0.01)
    assert e.scale == pytest.approx(0.01, rel=0.5)
    assert e.held == 3


def test_a_spike_does_not_teach_that_spikes_are_normal() -> None:
    u = noise(600)
    for start in (200, 260, 320):
        u[start : start + 20] += 0.5
    assert [(e.start, e.end) for e in upward(u, RULE)] == [(200, 220), (260, 280), (320, 340)]


def test_a_second_jump_before_the_first_is_over_is_a_spike_of_its_own() -> None:
    u = noise(300)
    u[200:] += 1.0 * np.exp(-np.arange(100) / 5.0)
    u[208:] += 1.0 * np.exp(-np.arange(92) / 5.0)
    assert [e.start for e in upward(u, RULE)] == [200, 208]


def test_a_new_level_is_one_excursion_that_does_not_return() -> None:
    u = noise(400)
    u[200:] += 0.5
    (e,) = upward(u, RULE)
    assert (e.start, e.returned) == (200, False)


def test_a_spike_on_a_falling_curve_is_seen() -> None:
    u = 3.0 * np.exp(-np.arange(400) / 60.0) + noise(400)
    u[60:62] += 0.4
    assert [e.start for e in upward(u, RULE)] == [60]


def test_the_last_point_alone_has_not_returned() -> None:
    u = noise(200)
    u[-1] += 1.0
    (e,) = upward(u, RULE)
    assert (e.start, e.end, e.returned) == (199, 200, False)


def test_too_few_points_are_not_judged() -> None:
    u = noise(60)
    u[15] += 1.0
    assert upward(u, RULE) == []


def test_recorded_resolution_is_a_floor_of_the_scale() -> None:
    u = np.zeros(100)
    u[50] = 0.06  # one step of a coarse scale
    assert upward(u, Rule(z_min=7.0, rise_min=0.05, floor=0.06)) == []
    assert [e.start for e in upward(u, RULE)] == [50]


@pytest.mark.parametrize(
    ("values", "step"), [([0.1, 0.3, 0.2, 0.2], 0.1), ([1.0, 1.0], 0.0), ([0.0], 0.0), ([1e-3, 5e-3], 4e-3)]
)
def test_resolution(values: list[float], step: float) -> None:
    assert resolution(np.array(values)) == pytest.approx(step)


@given(
    st.lists(st.integers(-400, 400), min_size=1, max_size=300),
    st.lists(st.tuples(st.integers(0, 299), st.integers(100, 4000)), max_size=5),
    st.integers(-8, 8),
)
def test_excursions_are_ordered_apart_and_do_not_depend_on_the_level(
    wiggle: list[int], bumps: list[tuple[int, int]], shift: int
) -> None:
    u = np.array(wiggle) / 1024.0
    for at, height in bumps:
        u[at % len(u)] += height / 1024.0
    found = upward(u, RULE)
    for e in found:
        assert 0 <= e.start <= e.peak < e.end <= len(u)
        assert e.height > RULE.rise_min
        assert 1 <= e.held <= e.end - e.start
    assert all(a.end <= b.start or not a.returned for a, b in pairwise(found))
    assert [(e.start, e.end) for e in upward(u + shift, RULE)] == [(e.start, e.end) for e in found]


def test_long_curves_are_judged_like_short_ones() -> None:
    u = noise(20_000, seed=5)
    onsets = [3_000, 9_999, 19_000]
    for start in onsets:
        u[start : start + 3] += 0.5
    assert [e.start for e in upward(u, RULE)] == onsets


def test_olmo_spike_score_by_hand() -> None:
    y = np.where(np.arange(200) % 2 == 0, 1.0, 1.1)
    y[150] = 9.0  # 7 sd of 0.05 above 1.05 is 1.4
    assert olmo_spike_score_pct(y) == pytest.approx(100 / 200)
    assert olmo_spike_score_pct(np.ones(100)) == 0.0
    assert olmo_spike_score_pct(np.array([])) == 0.0


def test_megatron_definitions_by_hand() -> None:
    y = np.ones(200)
    y[50], y[150], y[160] = 2.0, 19.0, 20.0  # ten times the largest of the first hundred is 20
    assert megatron_spiky_points(y) == 1
    assert megatron_rl_points(np.array([1.0, 1.25, 1.3, 2.0, 1.0])) == 2


def test_zclip_counts_the_one_high_norm() -> None:
    grad = 1.0 + noise(200, 0.05)
    quiet = zclip_points(grad)
    grad[150] = 5.0
    assert zclip_points(grad) == quiet + 1
    assert zclip_points(grad[:10]) == 0


def test_gradient_watch_says_how_long_before() -> None:
    steps = np.arange(0, 2000, 10)
    grad = np.exp(noise(200, 0.1))
    grad[120:125] *= 30.0
    series = make_view({"train/grad_norm": (steps, grad)}).grad_norm
    assert series is not None
    watch = GradientWatch(series, z_min=5.0, lookback=50)
    lead = watch.around(1250.0)
    assert lead.lead_steps == 50.0
    assert lead.z_before is not None
    assert lead.z_before > 5.0
    assert watch.around(900.0).lead_steps is None
    assert watch.around(0.0).z_before is None


@pytest.mark.parametrize(
    ("k", "n", "p", "tail"),
    [
        (0, 5, 0.1, 1.0),
        (1, 1, 0.25, 0.25),
        (2, 2, 0.5, 0.25),
        (1, 3, 0.5, 0.875),
        (3, 3, 0.0, 0.0),
        (40, 2000, 0.001, 0.0),
    ],
)
def test_binomial_tail(k: int, n: int, p: float, tail: float) -> None:
    assert binomial_tail(k, n, p) == pytest.approx(tail, abs=1e-9)


def test_a_spike_stands_apart_only_with_a_gap_below_it() -> None:
    bulk = np.linspace(-3, 3, 100)
    assert Tail(z=bulk, peaks=np.array([20.0]), half=0.0).apart(20.0)
    filled = np.append(bulk, [8.0, 9.0, 10.0, 11.0])
    assert not Tail(z=filled, peaks=np.array([20.0]), half=0.0).apart(20.0)


def test_robust_z_of_a_spike_without_noise_is_infinite() -> None:
    e = Excursion(start=0, end=1, peak=0, level=0.0, scale=0.0, height=1.0, held=1, returned=True)
    assert math.isinf(e.z)
