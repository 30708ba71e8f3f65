"""Trainings that are well, however odd they look: every alarm about one is false."""

from __future__ import annotations

import numpy as np
from benchmarks.diagnosis.runs import DATA_S, GRAD, LR, STEP_S, TRAIN, VAL, Run, kind, rows_of, world
from benchmarks.diagnosis.shapes import Dice, fading, noise, ramp


@kind
def plain(dice: Dice) -> Run:
    """A loss that falls as a loss falls."""
    return world(dice)


@kind
def correlated_noise(dice: Dice) -> Run:
    """Waves of an AR(1) noise of 3 to 10 %."""
    return world(dice, noise_kind="correlated", sd=dice.uniform(0.03, 0.10))


@kind
def heavy_tails(dice: Dice) -> Run:
    """Single points far out, as small batches give them; the noise allows for more of them."""
    run = world(dice, noise_kind="heavy", sd=dice.uniform(0.05, 0.15))
    run.allowed |= {"noisy"}
    return run


@kind
def twelve_points(dice: Dice) -> Run:
    """A dozen epochs."""
    return world(dice, rows=12, evaluations=12, sd=dice.uniform(0.005, 0.02))


@kind
def staircase(dice: Dice) -> Run:
    """Two drops of the learning rate to a tenth."""
    return world(dice, lr="staircase")


@kind
def stable_then_decay(dice: Dice) -> Run:
    """A constant rate and a short decay at the end."""
    return world(dice, lr="stable_decay")


@kind
def warm_restarts(dice: Dice) -> Run:
    """Two to four cycles of a cosine, the loss up a little at each."""
    return world(dice, lr="restarts")


@kind
def double_descent(dice: Dice) -> Run:
    """The validation loss rises in the middle and ends well below its first minimum."""
    run = world(dice, rows=rows_of(dice, 200), evaluations=int(dice.integers(30, 60)))
    n = run.rows
    peak, width = n * dice.uniform(0.35, 0.5), n * dice.uniform(0.05, 0.1)
    bump = dice.uniform(0.15, 0.4) * np.exp(-0.5 * ((np.arange(n) - peak) / width) ** 2)
    later = 1 - dice.uniform(0.25, 0.4) * ramp(n, int(peak), int(0.9 * n))
    run.evaluated(VAL, run.smooth * 1.05 * (1 + bump) * later, dice)
    return run


@kind
def three_validation_sets(dice: Dice) -> Run:
    """Sets of other difficulty; all fall."""
    run = world(dice)
    for name in ("val_easy/loss", "val_hard/loss"):
        run.evaluated(name, run.smooth * dice.uniform(0.7, 1.6), dice)
    return run


@kind
def accuracies(dice: Dice) -> Run:
    """Accuracy beside the loss, flat at its ceiling for the second half."""
    run = world(dice)
    ceiling = dice.uniform(0.7, 0.99)
    share = (run.smooth - run.floor) / (run.start - run.floor)
    rise = ceiling * (1 - np.clip(share, 0, 1) ** dice.uniform(0.8, 1.5))
    run.curves["train/accuracy"] = np.clip(rise + dice.normal(0, 0.01, run.rows), 0, 1)
    run.evaluated("val/accuracy", rise * dice.uniform(0.9, 0.99), dice, 0.1)
    return run


@kind
def accuracy_while_loss_grows(dice: Dice) -> Run:
    """Over-confidence alone: accuracy still rises while the validation loss turns by a little."""
    run = accuracies(dice)
    run.allowed |= {"overfit"}
    run.scale(VAL, 1 + dice.uniform(0.02, 0.04) * ramp(run.rows, int(0.7 * run.rows)))
    return run


@kind
def rewards(dice: Dice) -> Run:
    """Reinforcement learning: the reward rises in noise, the value loss rises with it, the policy loss is about nothing."""
    run = world(dice, rows=rows_of(dice, 100, 1500))
    n = run.rows
    low, high = -(10 ** dice.uniform(0, 2.5)), 10 ** dice.uniform(1, 3)
    grown = 1 / (1 + np.exp(-(np.arange(n) / n - dice.uniform(0.2, 0.5)) / 0.08))
    spread = 0.05 * (high - low)
    waves = noise(dice, n, 1.0, "correlated")
    run.curves = {
        "rollout/ep_rew_mean": low + (high - low) * grown + spread * np.log(waves),
        "train/value_loss": (0.1 + grown) * abs(high) * noise(dice, n, 0.3),
        "train/policy_gradient_loss": dice.normal(-0.002, 0.01, n),
        "train/learning_rate": run.curves[LR],
    }
    run.logged = {}
    return run


@kind
def adversarial(dice: Dice) -> Run:
    """Two losses that pull at each other about a level, without trend."""
    run = world(dice, rows=rows_of(dice, 200))
    n = run.rows
    run.curves = {
        "loss_D": dice.uniform(0.4, 1.3) * noise(dice, n, 0.2, "correlated"),
        "loss_G": dice.uniform(0.8, 4.0) * noise(dice, n, 0.25, "correlated"),
        LR: run.curves[LR],
    }
    run.logged = {}
    return run


@kind
def harder_validation(dice: Dice) -> Run:
    """Validation lies far above training and still falls."""
    run = world(dice)
    run.evaluated(VAL, run.smooth * dice.uniform(1.3, 2.0), dice)
    return run


@kind
def dropout(dice: Dice) -> Run:
    """Validation lies below training all along."""
    run = world(dice)
    run.scale(VAL, np.full(run.rows, dice.uniform(0.7, 0.9)))
    return run


@kind
def small_validation_set(dice: Dice) -> Run:
    """Validation jitters by 3 to 7 %; its last value is above its best by chance."""
    run = world(dice, evaluations=int(dice.integers(20, 50)))
    run.scale(VAL, noise(dice, run.rows, dice.uniform(0.03, 0.07)))
    run.allowed |= {"noisy"}
    return run


@kind
def pauses_for_evaluation(dice: Dice) -> Run:
    """Every evaluation makes its step slow, which the record explains."""
    run = world(dice)
    run.scale(STEP_S, np.where(run.logged[VAL], dice.uniform(3, 8), 1.0))
    run.allowed |= {"step-outliers"}
    return run


@kind
def bump_at_the_peak_rate(dice: Dice) -> Run:
    """The loss rises by a tenth at the end of warm-up and falls on."""
    run = world(dice, lr="cosine", rows=rows_of(dice, 200))
    at = int(np.argmax(run.curves[LR]))
    bump = 1 + dice.uniform(0.05, 0.15) * np.exp(-0.5 * ((np.arange(run.rows) - at) / max(2, 0.4 * at)) ** 2)
    run.scale(TRAIN, bump)
    run.scale(VAL, bump)
    return run


@kind
def one_bad_gradient(dice: Dice) -> Run:
    """Gradient norms of 2 to 4 times the usual, which clipping is for."""
    run = world(dice)
    rows = dice.choice(run.rows, 3)
    run.curves[GRAD][rows] *= dice.uniform(2, 4, 3)
    return run


@kind
def slow_storage_once(dice: Dice) -> Run:
    """One read that takes long, within the noise of a shared file system."""
    run = world(dice, rows=rows_of(dice, 200))
    extra = run.curves[STEP_S] * fading(run.rows, int(dice.integers(20, run.rows)), 0.3)
    run.curves[STEP_S] = run.curves[STEP_S] + extra
    run.curves[DATA_S] = run.curves[DATA_S] + extra
    return run


@kind
def long_run(dice: Dice) -> Run:
    """20,000 to 100,000 rows."""
    return world(dice, rows=rows_of(dice, 20_000, 100_000))
