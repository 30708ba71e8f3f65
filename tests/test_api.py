from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import afterrun
from afterrun.loaders.errors import NothingToAnalyseError

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def result() -> afterrun.Result:
    return afterrun.analyze(ROOT / "sample_logs" / "overfit")


def test_one_run_in_frames(result: afterrun.Result) -> None:
    assert result.runs["run"].cast(pl.String).to_list() == ["overfit"]
    worst = result.findings.row(0, named=True)
    assert (worst["code"], worst["status"]) == ("overfit", "confirmed")
    assert 350 <= worst["step"] <= 500, "the best evaluation is at step 450, one every 50"
    loss = result.metrics.filter(pl.col("tag") == "loss")
    assert len(loss) == 660, "superseded rows of the checkpoints stay"
    assert result.tables.metrics is result.metrics


def test_pandas_is_one_call_away(result: afterrun.Result) -> None:
    frame = result.metrics.select("tag", "step", "value").to_pandas()
    assert list(frame.columns) == ["tag", "step", "value"]


def test_figures_are_drawn_when_saved(result: afterrun.Result, tmp_path: Path) -> None:
    assert set(result.figures) >= {"curves", "gap"}
    gap = result.figures["gap"]
    svg = gap.to_svg(tmp_path / "gap.svg", style="paper", columns=1).read_bytes()
    assert svg.startswith(b"<?xml")
    assert gap.to_png(tmp_path / "gap.png").read_bytes().startswith(b"\x89PNG")
    assert gap.to_pdf(tmp_path / "gap.pdf").read_bytes().startswith(b"%PDF")
    assert "value" in gap.to_csv(tmp_path / "gap.csv").read_text() or not gap.data.is_empty()
    assert gap.draw().get_axes()
    assert repr(gap).startswith("<gap: ")


def test_a_notebook_shows_verdict_figure_and_findings(result: afterrun.Result) -> None:
    page = result._repr_html_()
    assert "data:image/png;base64," in page
    assert "overfit" in repr(result)


def test_meaning_of_tags_can_be_given(tmp_path: Path) -> None:
    x = np.arange(60)
    rows = "".join(f"{i},{3 * 0.95**i + 0.1:.6f},{3 * 0.95**i + 0.2:.6f}\n" for i in x)
    (tmp_path / "log.csv").write_text("step,q_obj,q_dev\n" + rows)
    result = afterrun.analyze(tmp_path, map={"q_obj": "loss:train", "q_dev": "loss:val"})
    (view,) = result.analysis.views.values()
    assert [(p.train.tag, p.val.tag) for p in view.pairs] == [("q_obj", "q_dev")]
    paired = afterrun.analyze(
        tmp_path, map={"q_obj": "elbo:train:min", "q_dev": "kl:val:min"}, pairs=["q_obj=q_dev"]
    )
    (view,) = paired.analysis.views.values()
    assert [(p.train.tag, p.val.tag) for p in view.pairs] == [("q_obj", "q_dev")]


def test_nothing_to_analyse_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NothingToAnalyseError):
        afterrun.analyze(tmp_path)
