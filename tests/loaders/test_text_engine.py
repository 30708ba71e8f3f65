"""The engine whatever the grammar: encodings, line ends, blocks, glued lines, files cut off, several runs in one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afterrun.loaders.collect import collect
from afterrun.loaders.formats.text.text_log import TextLog
from afterrun.loaders.schema import Batch, conform
from afterrun.loaders.textlog import reader as engine
from afterrun.loaders.textlog.clean import Damage, clean_blocks
from afterrun.loaders.textlog.reader import TextLogReader
from tests.support.loading import CORPUS, Read, claimed, corpus_records, needs_corpus, read, write


def log(folder: Path, text: str | bytes, name: str = "train.log") -> Read:
    path = write(folder, text, name)
    assert claimed(path) == "text-log"
    return read(TextLog(), path)


def lines(*steps: int) -> str:
    return "".join(f"step {i} loss=0.{i}\n" for i in steps)


def points(*steps: int) -> list[tuple[int | None, float]]:
    return [(i, float(f"0.{i}")) for i in steps]


# -- encodings and line ends -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        lines(1, 2, 3).encode(), lines(1, 2, 3).replace("\n", "\r\n").encode(), lines(1, 2, 3).replace("\n", "\r").encode(),
        lines(1, 2, 3).replace("\n", "\r\r\n").encode(), lines(1, 2, 3).rstrip("\n").encode(), lines(1, 2, 3).encode("utf-8-sig"),
        lines(1, 2, 3).encode("utf-16"), lines(1, 2, 3).encode("utf-16-be"), b"caf\xe9\n" + lines(1, 2, 3).encode(),
        b"\x1b[32m" + lines(1, 2, 3).replace("loss", "\x1b[1mloss\x1b[0m").encode(), b"\0" * 3000 + b"\n" + lines(1, 2, 3).encode(),
    ],
    ids=["plain", "crlf", "cr", "crcrlf", "no end", "bom", "utf-16", "utf-16-be", "latin-1", "colours", "zeros"],
)  # fmt: skip
def test_encodings_and_line_ends(tmp_path: Path, data: bytes) -> None:
    assert log(tmp_path, data).points("loss") == points(1, 2, 3)


def test_a_number_cut_off_by_the_end_of_the_file_is_left_out(tmp_path: Path) -> None:
    found = log(tmp_path, lines(1, 2, 3) + "step 4 acc=0.1 los=0.1")
    assert found.tags() == ["loss"]
    assert found.damaged == 1
    assert "the file ends in the middle of line 4, which was left out" in found.notes


def test_numbers_of_lines_are_those_of_an_editor(tmp_path: Path) -> None:
    text = (
        "\r 10%|#  | 1/10\r 20%|## | 2/10\n"
        + lines(1, 2, 3)
        + "torch.OutOfMemoryError: CUDA out of memory.\n"
    )
    assert log(tmp_path, text).marks["line"].to_list() == [5]


def test_lines_too_long_cost_themselves(tmp_path: Path) -> None:
    found = log(tmp_path, lines(1, 2, 3) + "x" * (17 * 2**20) + "\n" + lines(4, 5))
    assert found.points("loss") == points(1, 2, 3, 4, 5)
    assert found.damaged == 1


# -- blocks ------------------------------------------------------------------------------------------


def batches(path: Path, block_bytes: int) -> Iterator[Batch]:
    damage = Damage()
    return TextLogReader(clean_blocks(path, damage, block_bytes), damage).batches()


def table(found: list[Batch], name: str) -> pl.DataFrame:
    frames = [conform(name, b.frames[name]) for b in found if name in b.frames]
    return pl.concat(frames) if frames else pl.DataFrame()


WRITERS = (
    lambda i: (
        f" iteration {i:6d}/  900 | consumed samples: {i * 64} | lm loss: {9 / (i + 1):.6E} | grad norm: {i % 7}.5 |\n"
    ),
    lambda i: f"val loss {3 + i % 5}.25\n",
    lambda i: f"iter {i}: loss {5 / (i + 1):.4f}, time {i}.5ms, mfu 3.1%\n",
    lambda i: f"2024-05-01 10:{i // 60 % 60:02d}:{i % 60:02d},250 - INFO - step {i} loss={1 / (i + 1):.3e}\n",
    lambda i: f"[rank{i % 3}]: epoch {i} acc=0.{i % 90:02d} loss: nan\n",
    lambda i: f"\rEpoch 1:  5%|#    | {i}/900 [00:01<00:02, 3.5it/s, loss=0.{i}]",
    lambda i: "some prose without a number, and é\n",
    lambda i: (
        f"-----\n| rollout/ |   |\n|   ep_rew_mean | {i}.5 |\n| time/ | |\n|  total_timesteps | {i} |\n-----\n"
    ),
    lambda i: (
        "[05/01 10:00:00 d2.evaluation.testing]: copypaste: Task: bbox\n[05/01 10:00:00 d2.evaluation.testing]: copypaste: AP,AP50\n"
        f"[05/01 10:00:00 d2.evaluation.testing]: copypaste: 37.{i},58.2000\n"
    ),
    lambda i: (
        f'Traceback (most recent call last):\n  File "a.py", line {i}, in f\n    x()\nValueError: bad {i}\n'
    ),
)


@settings(max_examples=40)
@given(st.lists(st.integers(0, len(WRITERS) - 1), min_size=1, max_size=60), st.integers(40, 700))
def test_blocks_of_any_size_give_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, picks: list[int], size: int
) -> None:
    path = tmp_path_factory.mktemp("b") / "a.log"
    path.write_text("".join(WRITERS[k](i) for i, k in enumerate(picks)), "utf-8")
    one, many = list(batches(path, 2**20)), list(batches(path, size))
    for name in ("metrics", "marks", "params"):
        assert table(many, name).equals(table(one, name)), name


def test_what_the_first_part_decided_holds_and_later_grammars_are_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "PROBE_BYTES", 200)
    text = lines(*range(1, 40)) + "".join(
        f"iter {i}: loss 0.{i}, time 1.5ms, mfu 3%\n" for i in range(40, 60)
    )
    path = write(tmp_path, text, "a.log")
    found = table(list(batches(path, 100)), "metrics")
    loss = found.filter(pl.col("tag") == "loss")
    assert loss["step"].to_list() == list(range(1, 60))
    assert loss["seq"].is_sorted()
    assert found["seq"].to_list() == list(range(len(found)))


# -- what runs leave behind --------------------------------------------------------------------------


def test_glued_lines_are_read_apart(tmp_path: Path) -> None:
    bar = " 50%|##   | 5/10 [00:01<00:01, 3.5it/s, loss=0.{0}]"
    found = log(tmp_path, (bar * 2 + bar).format(1) + "\n" + bar.format(2) + "\n")
    assert found.values("loss") == [0.1, 0.1, 0.1, 0.2]


def test_a_log_that_begins_in_the_middle(tmp_path: Path) -> None:
    assert log(tmp_path, "s=0.5 acc\n" + lines(710, 711, 712)).points("loss") == points(710, 711, 712)


def test_several_runs_in_one_file_are_attempts(tmp_path: Path) -> None:
    write(tmp_path, lines(*range(1, 9)) + "starting again\n" + lines(*range(1, 5)), "a/train.log")
    tables = collect([tmp_path]).tables
    loss = tables.metrics.filter(pl.col("tag") == "loss").sort("seq")
    assert loss["attempt"].to_list() == [1] * 8 + [2] * 4
    assert loss["superseded"].to_list() == [True] * 8 + [False] * 4


def test_ranks_interleaved_in_one_file_stay_apart(tmp_path: Path) -> None:
    text = "".join(f"{r}: step {i} loss={r}.{i}\n" for i in range(1, 6) for r in (1, 0))
    write(tmp_path, text, "train.log")
    tables = collect([tmp_path]).tables
    assert tables.metrics.filter(~pl.col("superseded")).sort("seq")["rank"].to_list() == [1, 0] * 5
    assert tables.metrics["attempt"].unique().to_list() == [1]
    assert tables.runs["world_size"][0] == 2


def test_the_console_output_of_a_tracker_joins_its_run(tmp_path: Path) -> None:
    write(tmp_path, lines(1, 2, 3), "wandb/run-20240501_100000-abc/files/output.log")
    assert collect([tmp_path]).tables.sources["format"].to_list() == ["text-log"]
    assert collect([tmp_path]).tables.run_names() == ["wandb/run-20240501_100000-abc"]


def test_notes_name_what_was_read(tmp_path: Path) -> None:
    found = log(tmp_path, "".join(f"2024-05-01 10:00:0{i} INFO step {i} loss=0.{i}\n" for i in range(3)))
    assert found.notes == ("lines of key_value", "times without a zone are taken for UTC")


def test_times_with_a_zone(tmp_path: Path) -> None:
    a = log(tmp_path, "".join(f"2024-05-01T12:00:0{i}.500+02:00 step {i} loss=0.{i}\n" for i in range(3)))
    b = log(tmp_path, "".join(f"2024-05-01T10:00:0{i}.500Z step {i} loss=0.{i}\n" for i in range(3)))
    assert a.metrics["wall_ns"].to_list() == b.metrics["wall_ns"].to_list()
    assert a.metrics["wall_ns"][1] - a.metrics["wall_ns"][0] == 10**9


def test_times_that_are_none(tmp_path: Path) -> None:
    found = log(tmp_path, "".join(f"2024-13-01 10:00:0{i} step {i} loss=0.{i}\n" for i in range(3)))
    assert found.metrics["wall_ns"].null_count() == 3


# -- the corpus --------------------------------------------------------------------------------------

GRAMMAR_TAG = {
    "build-nanogpt": "train/loss", "detectron2": "total_loss", "llm.c main.log": "train/loss", "llm.c": "loss",
    "megatron": "lm loss", "modded-nanogpt": "train_time",
}  # fmt: skip


@needs_corpus
@pytest.mark.corpus
@pytest.mark.parametrize("record", list(corpus_records("text")), ids=lambda r: r["path"].split("text/")[-1])
def test_as_many_points_as_lines_in_the_real_files(record: dict[str, object]) -> None:
    truth = record["truth"]
    assert isinstance(truth, dict)
    counted = {k: v["n"] for k, v in truth.items() if isinstance(v, dict) and k in GRAMMAR_TAG}
    if not counted or "JEPA" in str(record["path"]):  # its lines have another clock beside train_time
        pytest.skip("no independent count")
    ((name, n),) = counted.items()
    path = CORPUS / str(record["path"])
    found = read(TextLog(), path)
    if name == "build-nanogpt":
        assert len(found.metrics) == n
    elif name == "llm.c main.log":
        assert found.metrics["tag"].is_in(["train/loss", "val/loss", "hellaswag"]).sum() == n
    else:
        assert len(found.values(GRAMMAR_TAG[name])) == n


# -- no line raises ----------------------------------------------------------------------------------

SCRAPS = [
    "iteration 10/ 100 |", " | lm loss: 1.5E+01 |", "time (ms) | fwd: 1.5", "[Rank 3] (after 2 iterations) memory (MB) | allocated: 5.5", "iter 10: ",
    "loss 0.5, ", "step 3/9 | loss 1.0 (+nanz)|", "s:3 trl:1.5", "step:1/9 val_loss:2.5 ", "[step=10/99,epoch=0]", "a/b=5", "eta: 1:02:03 iter: 19 ",
    "total_loss: 0.5 ", "Epoch(train) [3][5/9] ", "| epoch 1 | 2/ 9 batches | ", "Epoch: [0][1/5] ", "Loss 6.9 (7.0) ", "* Acc@1 4.5", "step=10, skipped=0, ",
    "lr=[1e-3]", "{'loss': 0.5, 'epoch': 1.0}", '{"loss": "0.5", "num_updates": "5"}', "45%|## | 45/100 [00:12<00:15, 3.6it/s, loss=0.3]", "Epoch 3/10",
    "100/100 [==] - 5s 50ms/step - loss: 0.3", ":::MLLOG ", '{"key": "train_loss", "value": 0.5, "time_ms": 1, "metadata": {}}', ":::MLPv0.5.0 a 1.5 (f:1) k: 3",
    ":::ml", "epoch [3/10], step [1/5], ", "2024-05-01 10:00:00,123 - INFO - ", "[rank3]: ", "3: ", "[2022-04-08 18:40:57,965][a][INFO] - ", "nan", "inf",
    "-inf", "=", ":", "|", "[", "]", "{", "}", "(", ")", "/", "%", ",", "'", '"', "Traceback (most recent call last):", '  File "a", line 3, in f',
    "ValueError: x", "CUDA out of memory", "CANCELLED AT 2024-99-99T10:00:00 DUE TO TIME LIMIT", "\r", "\n", "\x1b[1m", "1e999", "9" * 40, "1,234", " ... 5",
]  # fmt: skip


@settings(max_examples=300)
@given(st.lists(st.lists(st.sampled_from(SCRAPS), max_size=7).map("".join), max_size=12))
def test_scraps_of_all_grammars_never_raise(
    tmp_path_factory: pytest.TempPathFactory, scraps: list[str]
) -> None:
    path = tmp_path_factory.mktemp("s") / "a.log"
    path.write_text("\n".join(scraps), "utf-8")
    list(batches(path, 200))
    claimed(path)


def test_a_log_is_known_behind_any_amount_of_other_text(tmp_path: Path) -> None:
    code = "".join(f"    x{i} = call_of_a_function(x{i - 1}, weight=w{i})\n" for i in range(9000))
    assert len(code) > 300_000
    assert claimed(write(tmp_path, code, "a.txt")) is None
    assert claimed(write(tmp_path, code * 3 + lines(*range(2000)), "b.txt")) == "text-log"
    assert claimed(write(tmp_path, code * 3 + lines(*range(9)), "c.txt")) == "text-log", "at the very end"
