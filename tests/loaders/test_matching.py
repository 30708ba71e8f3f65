from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from afterrun.loaders.joining.matching import Curve, by_order, by_step

NAN = math.nan


def curve(
    value: Sequence[float],
    step: Sequence[int] | None = None,
    epoch: Sequence[float] | None = None,
    wall_s: Sequence[float] | None = None,
    gone: Sequence[int] = (),
) -> Curve:
    alive = np.ones(len(value), np.bool_)
    alive[list(gone)] = False
    return Curve(
        rows=np.arange(len(value)),
        value=np.array(value, np.float64),
        alive=alive,
        step=None if step is None else np.array(step),
        epoch=None if epoch is None else np.array(epoch, np.float64),
        wall_ns=None if wall_s is None else (np.array(wall_s) * 1e9).astype(np.int64),
    )


EXACT = [2.34567, 1.98765, 1.54321, 1.23459, 1.11111]


def test_rounded_values_agree_at_shared_steps() -> None:
    match = by_step(curve([1.9877, 1.2346], [20, 40]), curve(EXACT, [10, 20, 30, 40, 50]))
    assert match is not None
    assert (match.a.tolist(), match.b.tolist(), match.agree.tolist()) == ([0, 1], [1, 3], [True, True])
    assert match.enough


def test_one_value_in_ten_may_differ() -> None:
    steps = list(range(10))
    ten = [1.1111 + i / 7 for i in range(10)]
    one_off = [*ten[:9], 9.0]
    two_off = [*ten[:8], 9.0, 9.0]
    one, two = (by_step(curve(v, steps), curve(ten, steps)) for v in (one_off, two_off))
    assert one is not None
    assert two is not None
    assert (one.enough, two.enough) == (True, False)


def test_too_few_digits_prove_nothing() -> None:
    few = by_step(curve([0.5, 0.6], [1, 2]), curve([0.52, 0.61], [1, 2]))
    assert few is not None
    assert few.agree.all()
    assert not few.enough


def test_nan_is_nan_and_no_number() -> None:
    match = by_step(curve([1.25, NAN, math.inf], [1, 2, 3]), curve([1.25, NAN, math.inf], [1, 2, 3]))
    other = by_step(curve([1.25, NAN, math.inf], [1, 2, 3]), curve([1.25, 1.0, -math.inf], [1, 2, 3]))
    assert match is not None
    assert other is not None
    assert match.agree.tolist() == [True, True, True]
    assert other.agree.tolist() == [True, False, False]


def test_an_earlier_attempt_is_found_among_rows_that_were_replaced() -> None:
    both = curve([2.5111, 2.4222, 2.3333, 1.5111, 1.4222], [1, 2, 3, 2, 3], gone=[1, 2])
    first = by_step(curve([2.5111, 2.4222, 2.3333], [1, 2, 3]), both)
    assert first is not None
    assert first.enough
    assert first.b.tolist() == [0, 1, 2]
    back = by_step(both, curve([2.5111, 2.4222, 2.3333], [1, 2, 3]))
    assert back is not None
    assert not back.enough


def test_no_step_no_match_by_step() -> None:
    assert by_step(curve([1.0]), curve([1.0], [1])) is None
    assert by_step(curve([1.0], [2]), curve([1.0], [1])) is None


def test_as_many_points_lie_upon_each_other() -> None:
    match = by_order(curve([2.3457, 1.9877, 1.5432, 1.2346, 1.1111]), curve(EXACT, [10, 20, 30, 40, 50]))
    assert match is not None
    assert match.enough
    assert match.b.tolist() == [0, 1, 2, 3, 4]
    assert match.certain.all()


def test_a_part_has_one_place_only() -> None:
    match = by_order(curve([1.9877, 1.2346, 1.1111]), curve(EXACT, [10, 20, 30, 40, 50]))
    assert match is not None
    assert match.enough
    assert match.b.tolist() == [1, 3, 4]


def test_a_part_that_fits_in_several_places_is_no_match() -> None:
    again = curve([1.1, 1.2, 1.1, 1.2, 1.1, 1.2, 1.1, 1.2], list(range(8)))
    match = by_order(curve([1.1, 1.2, 1.1, 1.2]), again)
    assert match is not None
    assert not match.enough
    assert not match.certain.any()


def test_epochs_tell_which_place_is_meant() -> None:
    again = curve([1.1, 1.2, 1.1, 1.2, 1.1, 1.2, 1.1, 1.2], list(range(8)), epoch=[i / 4 for i in range(8)])
    match = by_order(curve([1.1, 1.2, 1.1, 1.2], epoch=[0.5, 0.75, 1.0, 1.25]), again)
    assert match is not None
    assert match.enough
    assert match.b.tolist() == [2, 3, 4, 5]


def test_clocks_tell_which_place_is_meant() -> None:
    walls = [1000 + 100 * i for i in range(8)]
    again = curve([1.1, 1.2, 1.1, 1.2, 1.1, 1.2, 1.1, 1.2], list(range(8)), wall_s=walls)
    match = by_order(curve([1.1, 1.2, 1.1, 1.2], wall_s=[1401, 1501, 1601, 1701]), again)
    assert match is not None
    assert match.b.tolist() == [4, 5, 6, 7]


def test_clocks_of_two_zones_do_not_hide_a_match() -> None:
    walls = [100_000 * i for i in range(5)]
    shifted = [w + 7200 for w in walls[:4]]
    match = by_order(
        curve([1.9877, 1.5432, 1.2346, 1.1111], wall_s=shifted), curve(EXACT, range(5), wall_s=walls)
    )
    assert match is not None
    assert match.enough
    assert match.b.tolist() == [1, 2, 3, 4]


def test_another_order_is_no_match() -> None:
    match = by_order(curve([1.1111, 1.5432, 2.3457]), curve(EXACT, range(5)))
    assert match is not None
    assert not match.enough


def test_the_longer_curve_is_not_laid_upon_the_shorter() -> None:
    assert by_order(curve(EXACT), curve(EXACT[:3])) is None
    assert by_order(curve([]), curve(EXACT)) is None


def test_hopeless_searches_end() -> None:
    rng = np.random.default_rng(0)
    noisy = curve(rng.random(4000).round(1).tolist())
    other = curve(rng.random(9000).round(1).tolist(), range(9000))
    found = by_order(noisy, other)
    assert found is None or not found.certain.all()
