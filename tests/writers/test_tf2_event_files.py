"""Event files in the encoding of TensorFlow 2: tensors with a plugin's name.

TensorFlow itself is not needed: TensorBoard, on which ``afterrun`` depends, has the functions that make them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.writers.harness import Recorded, write


def test_tensors_of_tensorflow_2(tmp_path: Path) -> None:
    write("tf2_event_files", tmp_path / "logs")
    found = Recorded(tmp_path / "logs" / "tf2")
    (run,) = found.runs
    tenth = float(np.float32(0.1))
    assert found.points(run, "loss/Größe") == [(0, 1.0), (1, tenth), (2, "nan"), (3, "inf"), (4, "-inf")]
    assert found.times_ns(run, "loss/Größe") == [(1700000000 + i) * 10**9 for i in range(5)]
    assert found.histograms(run, "weights") == [(1, [0.0, 1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 0.0, 1.0])]
    assert sum(found.histograms(run, "constant")[0][2]) == 2.0
    assert found.params(run) == {"lr": 0.25, "optimizer": "adam", "amp": False, "text/note": "words ü"}
    assert found.sound()
