"""Event files as TensorFlow 2 writes them, without TensorFlow: by the summaries of TensorBoard itself.

``tf.summary.scalar`` and its like make the same protocol buffers with these functions' twins.
"""

from __future__ import annotations

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.histogram.summary_v2 import histogram_pb
from tensorboard.plugins.hparams import summary_v2 as hp
from tensorboard.plugins.scalar.summary_v2 import scalar_pb
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.summary.writer.event_file_writer import EventFileWriter

NAN, INF = float("nan"), float("inf")

writer = EventFileWriter("tf2")


def add(summary: object, step: int) -> None:
    writer.add_event(Event(summary=summary, step=step, wall_time=1700000000.0 + step))


for step, value in enumerate([1.0, 0.1, NAN, INF, -INF]):
    add(scalar_pb("loss/Größe", value), step)
add(histogram_pb("weights", np.array([0.0, 0.0, 1.0, 4.0]), buckets=4), 1)
add(histogram_pb("constant", np.array([2.5, 2.5]), buckets=3), 2)
add(text_pb("note", "words ü"), 3)
add(hp.hparams_pb({"lr": 0.25, "optimizer": "adam", "amp": False}), 0)
writer.close()
