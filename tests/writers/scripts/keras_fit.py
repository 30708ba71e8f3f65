"""Keras: ``CSVLogger`` over a fit that is continued with ``append``, another with ``;``, and the progress lines."""

from __future__ import annotations

import json
from pathlib import Path

import keras
import numpy as np

ODD = (float("nan"), float("inf"), float("-inf"))


class Extra(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: dict[str, object] | None = None) -> None:
        assert logs is not None
        logs["learning_rate"] = 0.25 * (epoch + 1)
        logs["odd"] = ODD[epoch % 3]
        logs["vector"] = np.array([1.0, 2.0])


keras.utils.set_random_seed(0)
model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(3, activation="softmax")])
quoted = keras.metrics.SparseTopKCategoricalAccuracy(2, name='top "k", ü')
model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy", quoted])
x = np.random.default_rng(0).random((20, 2))
y = np.arange(20) % 3
history: dict[str, list[float]] = {}


def fit(
    begin: int, end: int, log: keras.callbacks.CSVLogger, *, held_out: bool = True, verbose: int = 0
) -> None:
    done = model.fit(
        x, y, validation_data=(x, y) if held_out else None, initial_epoch=begin, epochs=end,
        verbose=verbose, callbacks=[Extra(), log],
    )  # fmt: skip
    if log.filename == "training.log":
        for name, values in done.history.items():
            if name != "vector":
                history.setdefault(name, []).extend(map(float, values))


fit(0, 3, keras.callbacks.CSVLogger("training.log"), verbose=2)
fit(3, 5, keras.callbacks.CSVLogger("training.log", append=True), verbose=2)
fit(0, 2, keras.callbacks.CSVLogger("semicolon.csv", separator=";"))
fit(0, 2, keras.callbacks.CSVLogger("alone.csv"), held_out=False)
Path("history.truth").write_text(json.dumps(history), encoding="utf-8")
