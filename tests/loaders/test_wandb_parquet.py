"""W&B history as parquet."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from pyarrow.parquet import ParquetFile

from afterrun.loaders.errors import LimitError, UnreadableError
from afterrun.loaders.formats.curves import wandb_parquet
from afterrun.loaders.formats.curves.wandb_parquet import WandbParquet
from tests.support.loading import claimed, read, source, write


def parquet(tmp_path: Path, frame: pl.DataFrame, name: str = "history.parquet") -> Path:
    path = tmp_path / name
    frame.write_parquet(path, row_group_size=64)
    return path


def history(rows: int = 200) -> pl.DataFrame:
    """A loss in every row, an accuracy in every tenth."""
    return pl.DataFrame(
        {
            "loss": [1 / (i + 1) for i in range(rows)],
            "_step": pl.Series(range(0, 2 * rows, 2), dtype=pl.Int64),
            "acc": [i / 1000 if i % 10 == 0 else None for i in range(rows)],
            "_timestamp": [1_700_000_000.0 + i for i in range(rows)],
        }
    )


def test_columns_become_curves_and_null_is_nothing(tmp_path: Path) -> None:
    path = parquet(tmp_path, history())
    assert claimed(path) == "wandb-parquet"
    result = read(WandbParquet(), path)
    assert result.points("loss") == [(2 * i, 1 / (i + 1)) for i in range(200)]
    assert result.points("acc") == [(20 * i, i / 100) for i in range(20)]
    assert result.metrics["wall_ns"][0] == 1_700_000_000_000_000_000
    assert result.metrics["seq"].to_list() == list(range(620))
    assert (result.damaged, result.notes) == (0, ())


def test_batches_do_not_change_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet(tmp_path, history())
    whole = read(WandbParquet(), path).metrics
    monkeypatch.setattr(wandb_parquet, "BATCH_VALUES", 40)
    assert len(list(WandbParquet().load(source(path)))) > 10
    assert read(WandbParquet(), path).metrics.equals(whole)


def test_types_of_columns(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "_step": [0, 1, 2],
            "nan": [1.0, math.nan, None],
            "truth": [True, False, None],
            "texts": ["NaN", "0.5", None],
            "words": ["a", "b", "c"],
            "image": [{"path": "x"}, None, None],
        }
    )
    result = read(WandbParquet(), parquet(tmp_path, frame))
    assert [str(v) for v in result.values("nan")] == ["1.0", "nan"]
    assert result.points("truth") == [(0, 1.0), (1, 0.0)]
    assert [str(v) for v in result.values("texts")] == ["nan", "0.5"]
    assert result.notes == ("columns without numbers left out: words, image",)


def test_a_sample_says_so(tmp_path: Path) -> None:
    steps = sorted([*random.Random(2).sample(range(9_999), 999), 9_999])
    frame = pl.DataFrame({"_step": steps, "loss": [1.0] * 1000})
    batches = list(WandbParquet().load(source(parquet(tmp_path, frame))))
    assert batches[-1].sampled
    assert "looks sampled (1,000 rows over 10,000 steps, irregular gaps)" in batches[-1].notes


def test_other_parquet_is_left_alone(tmp_path: Path) -> None:
    assert claimed(parquet(tmp_path, pl.DataFrame({"step": [1], "loss": [2.0]}))) is None
    assert claimed(write(tmp_path, b"PAR1 and nothing else", "x.parquet")) is None


def test_a_damaged_row_group_costs_itself(tmp_path: Path) -> None:
    path = parquet(tmp_path, history())
    with ParquetFile(path) as file:
        page = file.metadata.row_group(1).column(0).data_page_offset
    data = path.read_bytes()
    result = read(WandbParquet(), write(tmp_path, data[: page + 4] + bytes(8) + data[page + 12 :]))
    assert result.steps("loss") == [*range(0, 128, 2), *range(256, 400, 2)]
    assert result.damaged == 64
    assert result.notes == ("1 of 4 row groups are damaged: 64 rows left out",)


def test_damaged_parquet_never_gets_out(tmp_path: Path) -> None:
    data = parquet(tmp_path, history()).read_bytes()
    dice = random.Random(3)
    outcomes = Counter[str]()
    for _ in range(150):
        at = dice.randrange(len(data))
        bad = data[:at] + dice.randbytes(4) + data[at + 4 :]
        try:
            result = read(WandbParquet(), write(tmp_path, bad, "bad.parquet"))
        except UnreadableError:
            outcomes["refused"] += 1
        else:
            outcomes["partial" if result.damaged else "read"] += 1
    assert min(outcomes[k] for k in ("refused", "partial", "read")) > 0


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet(tmp_path, pl.DataFrame({"_step": range(1000), "x": [1.5] * 1000}))
    monkeypatch.setattr("afterrun.loaders.limits.MAX_INFLATED_BYTES", 1000)
    with pytest.raises(LimitError):
        read(WandbParquet(), path)
