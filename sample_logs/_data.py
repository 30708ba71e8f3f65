"""Data sets that come with scikit-learn, split and scaled."""

from __future__ import annotations

import numpy as np
from _models import Array, Split


def digits(
    rng: np.random.Generator, n_train: int, *, smoothing: float = 0.0, wrong_labels: float = 0.0
) -> tuple[Split, Split]:
    """8 x 8 images of ten digits, pixels 0..1: ``n_train`` of 1,797 to train, up to 500 others to validate.

    ``smoothing`` is the share of a target spread over all classes, in both splits: one criterion for
    both. ``wrong_labels`` is the share of training rows that get a class drawn at random.
    """
    from sklearn.datasets import load_digits  # noqa: PLC0415  # heavy, and needed here only

    images, labels = load_digits(return_X_y=True)
    order = rng.permutation(len(images))
    x, y = (images[order] / 16).astype(np.float32), labels[order]
    drawn = rng.random(n_train) < wrong_labels
    y[:n_train] = np.where(drawn, rng.integers(0, 10, n_train), y[:n_train])
    targets = _one_hot(y, smoothing)
    held_out = slice(n_train, n_train + 500)
    return Split(x[:n_train], targets[:n_train]), Split(x[held_out], targets[held_out])


def diabetes(rng: np.random.Generator) -> tuple[Split, Split]:
    """Ten measurements of 442 patients and how the disease went on, all standardised; 352 to train."""
    from sklearn.datasets import load_diabetes  # noqa: PLC0415  # heavy, and needed here only

    x, y = load_diabetes(return_X_y=True)
    order = rng.permutation(len(x))
    x, y = _standardise(x[order]), _standardise(y[order, None])
    return Split(x[:352], y[:352]), Split(x[352:], y[352:])


def _one_hot(labels: np.ndarray, smoothing: float) -> Array:
    classes = int(labels.max()) + 1
    hot = np.eye(classes)[labels]
    targets: Array = ((1 - smoothing) * hot + smoothing / classes).astype(np.float32)
    return targets


def _standardise(columns: np.ndarray) -> Array:
    scaled: Array = ((columns - columns.mean(axis=0)) / columns.std(axis=0)).astype(np.float32)
    return scaled
