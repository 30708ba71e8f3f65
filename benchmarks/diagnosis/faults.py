"""Trainings that went wrong, each in one way, with the step at which it begins."""

from __future__ import annotations

import numpy as np
from benchmarks.diagnosis.healthy import accuracies, rewards
from benchmarks.diagnosis.runs import DATA_S, GRAD, LR, STEP_S, TRAIN, VAL, Run, kind, rows_of, world
from benchmarks.diagnosis.shapes import Dice, Floats, fading, noise, ramp


def _turned(run: Run, dice: Dice, tag: str, at: int, rise: float) -> int:
    """Let a validation curve turn at a row and end ``rise`` above; the row of its lowest value."""
    rows = np.flatnonzero(run.at(tag))
    values = run.curves[tag].copy()
    level = float(np.interp(at, rows, values[rows]))
    later = np.arange(run.rows) > at
    up = level * (1 + rise * ramp(run.rows, at) ** dice.uniform(0.8, 1.3))
    values[later] = (up * noise(dice, run.rows, run.noise_sd * 0.2))[later]
    run.curves[tag] = values
    return int(rows[np.argmin(values[rows])])


def _memorise(run: Run, dice: Dice, at: int) -> None:
    run.scale(TRAIN, 1 - dice.uniform(0.3, 0.6) * ramp(run.rows, at))


@kind
def overfit(dice: Dice) -> Run:
    """Validation turns at 20 to 65 % of the run and ends 12 to 120 % above its minimum."""
    run = world(dice, evaluations=int(dice.integers(15, 60)))
    at = int(run.rows * dice.uniform(0.2, 0.65))
    _memorise(run, dice, at)
    return run.fault("overfit", _turned(run, dice, VAL, at, dice.uniform(0.12, 1.2)))


@kind
def overfit_little(dice: Dice) -> Run:
    """The end lies 4 to 9 % above the minimum: little, and many times the noise."""
    run = world(
        dice, rows=rows_of(dice, 150), evaluations=int(dice.integers(25, 60)), sd=dice.uniform(0.005, 0.015)
    )
    at = int(run.rows * dice.uniform(0.35, 0.6))
    _memorise(run, dice, at)
    return run.fault("overfit", _turned(run, dice, VAL, at, dice.uniform(0.04, 0.09)))


@kind
def overfit_on_one_set(dice: Dice) -> Run:
    """One of two validation sets turns."""
    run = world(dice, evaluations=int(dice.integers(20, 60)))
    run.evaluated("val_other/loss", run.smooth * 1.2, dice)
    at = int(run.rows * dice.uniform(0.25, 0.6))
    _memorise(run, dice, at)
    return run.fault("overfit", _turned(run, dice, "val_other/loss", at, dice.uniform(0.2, 0.8)))


@kind
def overfit_in_epochs(dice: Dice) -> Run:
    """Twelve epochs, a row each."""
    run = world(dice, rows=12, evaluations=12, sd=dice.uniform(0.005, 0.02))
    at = int(dice.integers(3, 6))
    _memorise(run, dice, at)
    return run.fault("overfit", _turned(run, dice, VAL, at, dice.uniform(0.2, 0.7)))


def _end_in(run: Run, at: int, value: float) -> None:
    for tag in (TRAIN, VAL, GRAD):
        run.curves[tag] = np.where(np.arange(run.rows) >= at, value, run.curves[tag])


@kind
def not_a_number(dice: Dice) -> Run:
    """NaN from a row on, or infinity."""
    run = world(dice)
    at = int(run.rows * dice.uniform(0.1, 0.9))
    _end_in(run, at, float(dice.choice([np.nan, np.inf])))
    return run.fault("non-finite", at, "grad-exploding", "divergence", "spike")


@kind
def climbs_to_nan(dice: Dice) -> Run:
    """Loss and gradients climb for a while before."""
    run = world(dice, rows=rows_of(dice, 100))
    at = int(run.rows * dice.uniform(0.3, 0.8))
    end = min(run.rows - 2, at + max(5, int(run.rows * 0.05)))
    climb = np.exp(dice.uniform(1.5, 3.5) * ramp(run.rows, at, end))
    run.scale(TRAIN, climb)
    run.scale(GRAD, climb**2)
    _end_in(run, end, np.nan)
    return run.fault("non-finite", end, "divergence", "spike", "grad-exploding", "level-shift", "oscillation")


@kind
def diverges(dice: Dice) -> Run:
    """The loss turns and climbs to the end."""
    run = world(dice, lr="constant", rows=rows_of(dice, 100))
    at = int(run.rows * dice.uniform(0.3, 0.7))
    climb = 1 + dice.uniform(0.6, 3.0) * ramp(run.rows, at) ** dice.uniform(0.7, 1.5)
    level = float(run.smooth[at])
    late = np.arange(run.rows) >= at
    run.curves[TRAIN] = np.where(late, level * climb * noise(dice, run.rows, run.noise_sd), run.curves[TRAIN])
    run.curves[VAL] = np.where(
        late, level * 1.03 * climb * noise(dice, run.rows, run.noise_sd / 4), run.curves[VAL]
    )
    run.scale(GRAD, climb)
    return run.fault("divergence", at, "overfit", "grad-exploding", "oscillation", "level-shift")


@kind
def reward_collapses(dice: Dice) -> Run:
    """The reward falls back to its start and stays there."""
    run = rewards(dice)
    reward = run.curves["rollout/ep_rew_mean"]
    at = int(run.rows * dice.uniform(0.6, 0.8))
    low, high = float(reward[:5].mean()), float(np.median(reward[at - 10 : at]))
    fall = ramp(run.rows, at, min(run.rows - 1, at + max(3, run.rows // 30)))
    run.curves["rollout/ep_rew_mean"] = reward - (high - low) * 0.95 * fall
    return run.fault("collapse", at, "level-shift")


@kind
def spikes(dice: Dice) -> Run:
    """One to five jumps of 1.5 to 5 times that decay."""
    run = world(dice, rows=rows_of(dice, 150), sd=dice.uniform(0.005, 0.05))
    rows = np.sort(
        dice.choice(np.arange(int(0.12 * run.rows), int(0.95 * run.rows)), dice.integers(1, 6), replace=False)
    )
    for at in rows:
        jump = dice.uniform(0.5, 4.0) * fading(
            run.rows, int(at), max(1.0, run.rows * dice.uniform(0.001, 0.008))
        )
        run.scale(TRAIN, 1 + jump)
        run.scale(GRAD, 1 + 3 * jump)
    return run.fault("spike", int(rows[0]), "grad-exploding", "noisy")


@kind
def level_shifts(dice: Dice) -> Run:
    """The loss steps up by 25 to 100 % and stays."""
    run = world(dice, rows=rows_of(dice, 100), sd=dice.uniform(0.005, 0.04))
    at = int(run.rows * dice.uniform(0.35, 0.8))
    step = np.where(np.arange(run.rows) >= at, dice.uniform(1.25, 2.0), 1.0)
    run.scale(TRAIN, step)
    run.scale(VAL, step)
    return run.fault("level-shift", at, "divergence", "spike", "overfit")


def _stopped(run: Run, dice: Dice, at: int, share: float) -> Floats:
    """A loss that gets as far as a share of its way by a row and stays there."""
    level = run.start - (run.start - run.floor) * share
    left = 1 - np.clip(np.arange(run.rows) / at, 0, 1)
    smooth = level + (run.start - level) * left**2
    run.curves[TRAIN] = smooth * noise(dice, run.rows, run.noise_sd, run.noise_kind)
    run.evaluated(VAL, smooth * 1.03, dice)
    return smooth


@kind
def plateau(dice: Dice) -> Run:
    """At a constant rate the loss stops at 15 to 45 % of the run with half of its way to go."""
    run = world(dice, lr="constant", rows=rows_of(dice, 100))
    at = int(run.rows * dice.uniform(0.15, 0.45))
    _stopped(run, dice, at, dice.uniform(0.3, 0.55))
    return run.fault("plateau", at, "not-learning")


@kind
def never_learns(dice: Dice) -> Run:
    """Flat from the first row."""
    run = world(dice, rows=rows_of(dice, 60))
    flat = np.full(run.rows, run.start)
    run.curves[TRAIN] = flat * noise(dice, run.rows, run.noise_sd / 2, run.noise_kind)
    run.evaluated(VAL, flat, dice)
    return run.fault("not-learning", 0, "plateau")


@kind
def oscillates(dice: Dice) -> Run:
    """Slow swings of 20 to 50 % about a level far above the floor."""
    run = world(dice, lr="constant", rows=rows_of(dice, 300), sd=dice.uniform(0.005, 0.03))
    at = int(run.rows * dice.uniform(0.08, 0.2))
    smooth = _stopped(run, dice, at, dice.uniform(0.4, 0.65))
    size = dice.uniform(0.2, 0.5) * ramp(run.rows, 0, at)
    period = dice.uniform(10, 40)
    swing = size * np.sin(2 * np.pi * np.arange(run.rows) / period) * (1 + 0.2 * dice.normal(size=run.rows))
    run.curves[TRAIN] = smooth * np.clip(1 + swing, 0.2, None) * noise(dice, run.rows, run.noise_sd)
    run.scale(GRAD, 2.5 * (1 + np.abs(swing)))
    return run.fault(
        "oscillation", at, "noisy", "plateau", "spike", "not-learning", "divergence", "grad-exploding"
    )


@kind
def unreadable(dice: Dice) -> Run:
    """Noise of half the value: only a smoothed curve shows where it goes."""
    run = world(dice, rows=rows_of(dice, 200), sd=dice.uniform(0.45, 0.8), noise_kind="white")
    run.evaluated(VAL, run.smooth, dice, 0.1)
    return run.fault("noisy", 0, "oscillation", "spike", "overfit")


@kind
def schedule_too_short(dice: Dice) -> Run:
    """The learning rate is zero for the last 30 to 60 %, and the loss freezes."""
    run = world(dice, lr="linear", rows=rows_of(dice, 100))
    n = run.rows
    at = int(n * dice.uniform(0.4, 0.7))
    run.curves[LR] = run.curves[LR].max() * np.clip(1 - np.arange(n) / at, 0, 1)
    frozen = run.smooth[np.minimum(np.arange(n), at)]
    run.curves[TRAIN] = frozen * noise(dice, n, run.noise_sd, run.noise_kind)
    run.evaluated(VAL, frozen * 1.03, dice)
    return run.fault("lr-dead", at, "plateau")


@kind
def rate_jumps(dice: Dice) -> Run:
    """A resume starts the schedule anew: the rate jumps to its peak, the loss goes up and recovers."""
    run = world(dice, lr="cosine", rows=rows_of(dice, 150), sd=dice.uniform(0.005, 0.04))
    n = run.rows
    at = int(n * dice.uniform(0.5, 0.8))
    run.curves[LR][at:] = run.curves[LR].max() * 0.5 * (1 + np.cos(np.pi * np.linspace(0, 1, n - at)))
    jump = 1 + dice.uniform(0.1, 0.4) * fading(n, at, 0.04 * n)
    run.scale(TRAIN, jump)
    run.scale(VAL, jump)
    return run.fault("lr-jump", at, "spike", "level-shift", "overfit")


@kind
def no_warmup(dice: Dice) -> Run:
    """The full rate from the first row; the loss blows up first and settles late."""
    run = world(dice, lr="cosine", rows=rows_of(dice, 200), sd=dice.uniform(0.005, 0.05))
    n = run.rows
    run.curves[LR] = np.maximum.accumulate(run.curves[LR][::-1])[::-1]
    peak = max(3.0, n * dice.uniform(0.01, 0.03))
    t = np.arange(n)
    hump = 1 + dice.uniform(0.3, 1.5) * (t / peak) * np.exp(1 - t / peak)
    smooth = run.smooth[np.maximum(0, t - int(3 * peak))] * hump
    run.curves[TRAIN] = smooth * noise(dice, n, run.noise_sd)
    run.evaluated(VAL, smooth * 1.03, dice)
    run.scale(GRAD, hump**2)
    return run.fault("no-warmup", 0, "spike", "grad-exploding", "lr-jump", "divergence")


@kind
def steps_back(dice: Dice) -> Run:
    """Restarted from an older checkpoint: the counter goes back and steps repeat."""
    run = world(dice, rows=rows_of(dice, 60))
    at = int(run.rows * dice.uniform(0.3, 0.8))
    back = max(1, int(at * dice.uniform(0.1, 0.5)))
    order = np.r_[0:at, at - back : run.rows]
    run.step = run.step[order]
    run.curves = {tag: values[order] for tag, values in run.curves.items()}
    run.logged = {tag: rows[order] for tag, rows in run.logged.items()}
    run.smooth = run.smooth[order]
    run.curves[TRAIN][at:] *= noise(dice, len(order) - at, run.noise_sd)
    return run.fault("restart", at)


@kind
def gradients_explode(dice: Dice) -> Run:
    """The norm jumps 30 to 300 times at a few rows; clipping saves the loss."""
    run = world(dice, rows=rows_of(dice, 100))
    rows = np.sort(
        dice.choice(np.arange(int(0.2 * run.rows), run.rows - 1), dice.integers(1, 5), replace=False)
    )
    run.curves[GRAD][rows] *= dice.uniform(30, 300, len(rows))
    return run.fault("grad-exploding", int(rows[0]))


@kind
def gradients_vanish(dice: Dice) -> Run:
    """The norm falls to a hundred-thousandth while the loss has hardly moved."""
    run = world(dice, rows=rows_of(dice, 100))
    n = run.rows
    at = max(3, int(n * dice.uniform(0.05, 0.2)))
    run.curves[GRAD] = dice.uniform(0.5, 3) * 10 ** (-5 * ramp(n, 0, at)) * noise(dice, n, 0.2)
    smooth = run.start * (1 - 0.04 * ramp(n, 0, at))
    run.curves[TRAIN] = smooth * noise(dice, n, run.noise_sd / 2)
    run.evaluated(VAL, smooth, dice)
    return run.fault("grad-vanishing", at, "not-learning", "plateau")


@kind
def slows_down(dice: Dice) -> Run:
    """Steps take 1.5 to 4 times as long from some row on, at once or by and by."""
    run = world(dice, rows=rows_of(dice, 100))
    at = int(run.rows * dice.uniform(0.3, 0.7))
    end = at if dice.random() < 0.5 else run.rows - 1
    slower = 1 + dice.uniform(0.5, 3.0) * ramp(run.rows, at, end)
    run.scale(STEP_S, slower)
    run.scale(DATA_S, slower)
    return run.fault("throughput-drift", at, "step-outliers")


@kind
def waits_for_data(dice: Dice) -> Run:
    """A third to four fifths of each step are spent waiting for the loader."""
    run = world(dice)
    share = dice.uniform(0.33, 0.8)
    run.curves[DATA_S] = run.curves[STEP_S] * share / (1 - share) * noise(dice, run.rows, 0.25)
    run.curves[STEP_S] = run.curves[STEP_S] + run.curves[DATA_S]
    return run.fault("loader-stall", 0)


@kind
def slow_every_so_often(dice: Dice) -> Run:
    """A step of 8 to 15 times the usual every 20 to 50 rows; nothing recorded says why."""
    run = world(dice, rows=rows_of(dice, 300))
    period = int(dice.integers(20, 50))
    run.curves[STEP_S][period::period] *= dice.uniform(8, 15)
    return run.fault("step-outliers", period, "throughput-drift")


@kind
def loss_of_nothing(dice: Dice) -> Run:
    """Exactly zero from some row on: every label masked, or a NaN that a filter hid."""
    run = world(dice)
    at = int(run.rows * dice.uniform(0.05, 0.5)) + 1
    run.curves[TRAIN] = np.where(np.arange(run.rows) >= at, 0.0, run.curves[TRAIN])
    run.curves[GRAD] = np.where(np.arange(run.rows) >= at, np.nan, run.curves[GRAD])
    return run.fault("zero-loss", at, "non-finite", "grad-vanishing", "plateau", "not-learning", "overfit")


@kind
def accuracy_collapses(dice: Dice) -> Run:
    """Accuracy and loss fall back to chance in the middle of the run."""
    run = accuracies(dice)
    run.allowed = set()
    at = int(run.rows * dice.uniform(0.4, 0.7))
    lost = ramp(run.rows, at, min(run.rows - 1, at + max(2, run.rows // 40)))
    for tag in ("train/accuracy", "val/accuracy"):
        run.curves[tag] = run.curves[tag] * (1 - 0.9 * lost)
    for tag in (TRAIN, VAL):
        run.curves[tag] = run.curves[tag] * (1 - lost) + run.start * lost * noise(
            dice, run.rows, run.noise_sd / 2
        )
    return run.fault("divergence", at, "level-shift", "overfit", "plateau", "collapse")


@kind
def long_overfit(dice: Dice) -> Run:
    """The same in 20,000 to 100,000 rows."""
    run = world(dice, rows=rows_of(dice, 20_000, 100_000), evaluations=int(dice.integers(40, 200)))
    at = int(run.rows * dice.uniform(0.2, 0.65))
    _memorise(run, dice, at)
    return run.fault("overfit", _turned(run, dice, VAL, at, dice.uniform(0.12, 1.2)))


@kind
def long_spikes(dice: Dice) -> Run:
    """A few spikes among 20,000 to 100,000 rows."""
    run = world(dice, rows=rows_of(dice, 20_000, 100_000), sd=dice.uniform(0.005, 0.03), noise_kind="white")
    rows = np.sort(dice.choice(np.arange(int(0.12 * run.rows), int(0.95 * run.rows)), 3, replace=False))
    for at in rows:
        run.scale(TRAIN, 1 + dice.uniform(0.8, 4.0) * fading(run.rows, int(at), 30.0))
    return run.fault("spike", int(rows[0]), "noisy")
