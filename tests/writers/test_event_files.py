"""What the summary writers of PyTorch and tensorboardX write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.writers.harness import Recorded, needs, ns, write

needs("torch", "tensorboardX")


@pytest.fixture(scope="module", params=["torch.utils.tensorboard", "tensorboardX"])
def logs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("events") / "logs"
    for attempt in ("first", "again"):
        write("event_files", folder, request.param, attempt)
    return folder


def test_scalars_with_steps_and_times(logs: Path) -> None:
    found = Recorded(logs / "scalars")
    (run,) = found.runs
    assert found.points(run, "loss/train") == [(0, 1.0), (10, 0.5), (20, "nan"), (30, "inf"), (40, "-inf")]
    assert found.times_ns(run, "loss/train") == [ns(1700000000.123456 + i) for i in range(5)]
    assert found.points(run, "Größe/測試") == [(i, float(np.float32(0.1 * i))) for i in range(3)]
    assert found.points(run, "far") == [(2**40, 7.0)]
    assert found.points(run, "before") == [(-3, -7.0)]
    assert found.points(run, "overflow") == [(1, "inf")]
    assert found.sound()


def test_add_scalars_makes_files_that_belong_to_the_run(logs: Path) -> None:
    """PyTorch names the folders ``loss_train``, tensorboardX ``loss/train``; the tag in them is ``loss``."""
    found = Recorded(logs / "scalars")
    (run,) = found.runs
    both = {tag for tag in found.tags(run) if tag.endswith("/loss")}
    assert both in ({"loss_train/loss", "loss_val/loss"}, {"loss/train/loss", "loss/val/loss"})
    assert sorted(found.points(run, tag)[0] for tag in both) == [(4, 1.0), (4, 2.0)]


def test_histograms(logs: Path) -> None:
    """Edges and counts by hand; the outermost edges are the smallest and the largest value."""
    found = Recorded(logs / "described")
    (run,) = found.runs
    assert found.histograms(run, "h/edges") == [(2, [-1.0, 0.0, 2.0, 3.5], [1.0, 3.0, 3.0])]
    assert found.histograms(run, "h/constant") == [(4, [2.5, 2.5], [10.0])]
    assert found.histograms(run, "h/raw") == [(5, [-1.0, 0.0, 1.0, 3.0], [3.0, 1.0, 3.0])]
    values = np.array([0.0, 0.0, 1.0, 2.0, 2.0, 3.5, -1.0])
    counts, edges = np.histogram(values, "auto")
    assert found.histograms(run, "h/auto") == [(1, edges.tolist(), counts.tolist())]
    ((step, fine, many),) = found.histograms(run, "h/tensorflow")
    assert step == 3
    assert (fine[0], fine[-1], sum(many)) == (-1.0, 3.5, 7.0)
    assert np.histogram(values, fine)[0].tolist() == many
    auto = found.tables.histograms.filter(pl.col("tag") == "h/auto")
    assert auto["wall_ns"].to_list() == [1700000001250000000]


def test_texts_hyperparameters_and_media(logs: Path) -> None:
    found = Recorded(logs / "described")
    (run,) = found.runs
    params = found.params(run)
    assert params["text/note/text_summary"] == "second"
    assert params["text/other/text_summary"] == "once"
    assert {k: params[k] for k in ("lr", "batch", "optimizer", "amp", "ü")} == {
        "lr": 0.1, "batch": 32, "optimizer": "adamw", "amp": True, "ü": 1.5,
    }  # fmt: skip
    (final,) = (tag for tag in found.tags(run) if tag.endswith("hparam/accuracy"))
    assert found.points(run, final) == [(0, 0.875)]
    for named in ("1 image", "1 pr_curves value", "1 custom_scalars value", "1 earlier text"):
        assert named in found.notes(run)
    assert found.sound()


def test_a_restart_supersedes_what_was_written_past_it(logs: Path) -> None:
    found = Recorded(logs / "resumed")
    (run,) = found.runs
    assert found.collection.runs[run].attempts == 2
    kept = [(s, float(s)) for s in range(3)] + [(s, s + 100.0) for s in range(3, 8)]
    assert found.points(run, "loss") == kept
    lost = found.rows(run, "loss").filter(pl.col("superseded"))
    assert lost.select("attempt", "step", "value").rows() == [(1, s, float(s)) for s in (3, 4, 5)]
