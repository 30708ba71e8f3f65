"""``trainer_state.json``: rows, axes, parameters, the finish mark; cut, damaged and hostile files."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from afterrun.loaders.errors import LimitError
from afterrun.loaders.formats.curves.hf_trainer import HfTrainer
from afterrun.loaders.registry import Source
from tests.support.loading import CORPUS, Read, corpus_records, load_claimed, needs_corpus, read, write

NAME = "trainer_state.json"


def train(step: int, **more: Any) -> dict[str, Any]:
    return {
        "epoch": step / 100,
        "grad_norm": 1.5,
        "learning_rate": 1e-4,
        "loss": 5 - step / 1000,
        "step": step,
        **more,
    }


def state(history: list[Any], **top: Any) -> dict[str, Any]:
    """A state as the Trainer writes it: keys sorted, ``log_history`` in their middle."""
    base = {
        "best_metric": None,
        "best_model_checkpoint": None,
        "epoch": 1.0,
        "global_step": 300,
        "is_hyper_param_search": False,
        "log_history": history,
        "max_steps": 900,
        "num_train_epochs": 3,
        "trial_name": None,
        "trial_params": None,
    }
    return dict(sorted({**base, **top}.items()))


def load(tmp_path: Path, value: Any, name: str = NAME) -> Read:
    text = value if isinstance(value, (str, bytes)) else json.dumps(value, indent=2)
    return read(HfTrainer(), write(tmp_path, text, name))


def test_rows_of_training_evaluation_and_the_end(tmp_path: Path) -> None:
    history = [
        train(100),
        {"epoch": 1.0, "eval_loss": 4.5, "eval_runtime": 12.5, "step": 100},
        train(200),
        {"epoch": 2.0, "step": 200, "total_flos": 1e15, "train_loss": 4.875, "train_runtime": 60.5},
    ]
    result = load(tmp_path, state(history))
    assert result.points("loss") == [(100, 4.9), (200, 4.8)]
    assert result.points("eval_loss") == [(100, 4.5)]
    assert result.points("train_loss") == [(200, 4.875)]
    assert result.points("train_runtime") == [(200, 60.5)]
    assert result.points("epoch") == [(100, 1.0), (100, 1.0), (200, 2.0), (200, 2.0)], "an axis stays a row"
    assert result.metrics.filter(pl.col("tag") == "loss")["epoch"].to_list() == [1.0, 2.0]
    assert result.metrics["seq"].to_list() == list(range(5 + 4 + 5 + 5))
    assert (result.damaged, result.notes) == (0, ())


def test_bare_nan_and_infinity(tmp_path: Path) -> None:
    result = load(
        tmp_path,
        state([train(1, eval_loss=math.nan), train(2, eval_loss=-math.inf), train(3, eval_loss=1.5)]),
    )
    values = result.values("eval_loss")
    assert math.isnan(values[0])
    assert values[1:] == [-math.inf, 1.5]


def test_several_groups_on_one_step(tmp_path: Path) -> None:
    history = [{"epoch": 1, "step": 10, f"eval_g{g}_loss": g + 0.5} for g in range(3)]
    result = load(tmp_path, state(history))
    assert [result.points(f"eval_g{g}_loss") for g in range(3)] == [[(10, 0.5)], [(10, 1.5)], [(10, 2.5)]]


def test_words_and_nests_are_left_out_with_a_note(tmp_path: Path) -> None:
    result = load(
        tmp_path, state([train(i, remaining_time="59h:30m", memory={"gpu": 1}, note=None) for i in (1, 2)])
    )
    assert "remaining_time" not in result.tags()
    assert result.notes == ("values that are no numbers were left out: remaining_time (2), memory (2)",)
    assert result.damaged == 0


def test_numbers_written_as_words(tmp_path: Path) -> None:
    result = load(tmp_path, state([{"step": 1, "loss": "2.5"}, {"step": 2, "loss": "nan"}]))
    assert str(result.values("loss")) == "[2.5, nan]"


@pytest.mark.parametrize(
    "row",
    [
        3,
        None,
        "x",
        [],
        {"step": "soon", "loss": 1},
        {"step": 1.5, "loss": 1},
        {"step": True, "loss": 1},
        {"step": 10**30, "loss": 1},
    ],
)
def test_rows_that_are_none_are_damaged(tmp_path: Path, row: Any) -> None:
    result = load(tmp_path, state([train(1), row, train(2)]))
    assert result.steps("loss") == [1, 2]
    assert result.damaged == 1
    assert result.notes == ("1 rows of log_history are no objects or have no numeric step",)


def test_a_row_without_step_keeps_its_values(tmp_path: Path) -> None:
    result = load(tmp_path, state([{"epoch": 1, "loss": 2.5}, {"step": 4.0, "loss": 1.5}]))
    assert result.points("loss") == [(None, 2.5), (4, 1.5)]


def test_tokens(tmp_path: Path) -> None:
    result = load(tmp_path, state([train(1, num_input_tokens_seen=4096)]))
    assert result.metrics["tokens"].to_list() == [4096] * 6


def test_parameters_without_paths(tmp_path: Path) -> None:
    top = {
        "best_model_checkpoint": "/home/somebody/out/checkpoint-200",
        "best_metric": 0.5,
        "eval_steps": 100,
        "trial_params": {"learning_rate": 3e-5, "model": {"layers": 2}},
    }
    result = load(tmp_path, state([train(1)], **top))
    assert result.params == {
        "best_metric": 0.5,
        "best_model_checkpoint": "checkpoint-200",
        "eval_steps": 100,
        "global_step": 300,
        "is_hyper_param_search": False,
        "max_steps": 900,
        "num_train_epochs": 3,
        "trial_params.learning_rate": 3e-5,
        "trial_params.model.layers": 2,
    }


def test_a_windows_path_is_no_path_either(tmp_path: Path) -> None:
    result = load(tmp_path, state([train(1)], best_model_checkpoint="C:\\Users\\somebody\\checkpoint-7\\"))
    assert result.params["best_model_checkpoint"] == "checkpoint-7"


@pytest.mark.parametrize(
    ("top", "last", "finished"),
    [
        ({"global_step": 900}, {}, True),
        ({"global_step": 899}, {}, False),
        ({"global_step": 900, "max_steps": 0}, {}, False),
        ({"global_step": 900, "max_steps": -1}, {}, False),
        ({"global_step": None}, {}, False),
        ({"global_step": 300}, {"step": 300, "train_runtime": 9.5}, True),
        ({"global_step": 300}, {"step": 200, "train_runtime": 9.5}, False),
        ({"global_step": 300}, {"step": 300, "train_runtime": 9.5, "loss": 2.0}, False),  # tokens are counted
    ],
)
def test_finish(tmp_path: Path, top: dict[str, Any], last: dict[str, Any], finished: bool) -> None:
    """All steps made, or an early stop whose ``train()`` returned; a final row before a resume is neither."""
    result = load(tmp_path, state([train(100), *([last] if last else [])], **top))
    assert result.marks.select("kind", "step").rows() == (
        [("finish", top["global_step"])] if finished else []
    )


def test_empty_history(tmp_path: Path) -> None:
    result = load(tmp_path, state([]))
    assert result.metrics.is_empty()
    assert result.damaged == 0


@pytest.mark.parametrize("text", ["", "  \n", b"\0\0\0"])
def test_empty_file(tmp_path: Path, text: str | bytes) -> None:
    path = write(tmp_path, text, NAME)
    assert HfTrainer().sniff(path, path.read_bytes())
    assert read(HfTrainer(), path).status == "empty"


@pytest.mark.parametrize(
    ("name", "head", "taken"),
    [
        (NAME, b'{"best_metric": null,', True),
        (NAME, b"\xef\xbb\xbf {", True),
        ("state.json", b'{\n  "epoch": 1,\n  "log_history": [', True),
        (NAME, b"version https://git-lfs.github.com/spec/v1", False),
        ("other.json", b'{"loss": 1}', False),
        ("notes.txt", b'about "log_history"', False),
        ("empty.json", b"", False),
    ],
)
def test_sniff(name: str, head: bytes, taken: bool) -> None:
    assert HfTrainer().sniff(Path(name), head) is taken


def test_snapshot() -> None:
    assert HfTrainer.snapshot
    assert not HfTrainer.generic


# --- damage


def test_a_cut_file_keeps_the_rows_before_the_cut(tmp_path: Path) -> None:
    text = json.dumps(state([train(i) for i in range(1, 21)]), indent=2)
    at = text.index('"step": 11') - 30
    result = load(tmp_path, text[:at])
    assert result.steps("loss") == list(range(1, 11))
    assert result.damaged == 1
    assert result.notes == ("the file ends within log_history: the 10 whole rows before the cut were read",)
    assert result.params["global_step"] == 300
    assert result.marks.is_empty()


def test_a_file_cut_between_rows_is_damaged_too(tmp_path: Path) -> None:
    text = json.dumps(state([train(1), train(2)]))
    result = load(tmp_path, text[: text.index("},") + 1])
    assert result.steps("loss") == [1]
    assert result.damaged == 1


def test_a_file_cut_after_the_history_keeps_all_rows(tmp_path: Path) -> None:
    text = json.dumps(state([train(1), train(2)]))
    result = load(tmp_path, text[: text.index("max_steps") + 20])
    assert result.steps("loss") == [1, 2]
    assert result.damaged == 1


def test_a_damaged_row_costs_itself(tmp_path: Path) -> None:
    text = json.dumps(state([train(i) for i in range(1, 6)]), indent=2).replace('"step": 3', '"step": 3%')
    result = load(tmp_path, text)
    assert result.steps("loss") == [1, 2, 4, 5]
    assert result.damaged == 1
    assert result.params["max_steps"] == 900, "what stands after the list is found as well"
    assert "4 rows of log_history were read one by one, 1 could not be" in result.notes[0]


def test_a_damaged_last_row_does_not_hide_what_follows(tmp_path: Path) -> None:
    text = json.dumps(state([train(i) for i in range(1, 4)]), indent=2).replace('"step": 3', '"step": 3%')
    result = load(tmp_path, text)
    assert result.steps("loss") == [1, 2]
    assert result.params["num_train_epochs"] == 3


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("[1, 2]", "no object"),
        ('{"log_history": 3, "max_steps": 5}', "no list"),
        ('{"loss": ', "holds no log_history"),
    ],
)
def test_other_json_is_damaged(tmp_path: Path, text: str, note: str) -> None:
    result = load(tmp_path, text)
    assert result.damaged == 1
    assert note in result.notes[0]
    assert result.metrics.is_empty()


def test_hostile_numbers_and_nests(tmp_path: Path) -> None:
    history = json.dumps([train(1), train(2)])[1:-1]
    digits = "9" * 100_000
    result = load(
        tmp_path, f'{{"log_history": [{history}, {{"step": 3, "loss": {digits}}}, {{"step": {digits}}}]}}'
    )
    assert result.points("loss")[2] == (3, math.inf)
    assert result.damaged == 1
    deep = "[" * 100_000
    result = load(tmp_path, f'{{"log_history": [{history}, {{"x": {deep}}}, {history}], "max_steps": 5}}')
    assert result.steps("loss") == [1, 2, 1, 2]
    assert result.damaged == 1
    deep_trial = '{"a": ' * 500 + "1" + "}" * 500
    result = load(tmp_path, f'{{"log_history": [{history}], "trial_params": {deep_trial}}}')
    assert result.steps("loss") == [1, 2]


def test_other_encodings(tmp_path: Path) -> None:
    text = json.dumps(state([train(1, größe=0.5)]), ensure_ascii=False)
    for encoding in ("utf-8-sig", "utf-16"):
        assert load(tmp_path, text.encode(encoding)).values("größe") == [0.5]
    result = load(tmp_path, text.encode("latin-1"))
    assert result.values("größe") == [0.5]
    assert result.notes == ("bytes that are not UTF-8 were read as Latin-1",)


def test_too_large(tmp_path: Path) -> None:
    path = write(tmp_path, "{}", NAME)
    with pytest.raises(LimitError, match="over the limit"):
        list(HfTrainer().load(Source(path=path, name=NAME, size_bytes=2**40)))


def test_mutants(tmp_path: Path) -> None:
    """No mutant raises, and rows whose text is whole are kept."""
    rng = random.Random(3)
    rows = [train(i, loss=round(5 - i / 7, 6)) for i in range(1, 41)]
    clean = json.dumps(state(rows), indent=2).encode()
    whole = {r["step"]: json.dumps(r, indent=2).replace("\n", "\n    ").encode() for r in rows}
    intact = kept = 0
    for n in range(100):
        data = bytearray(clean)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data))
            kind = rng.randrange(5)
            if kind == 0:
                data[at] ^= 1 << rng.randrange(8)
            elif kind == 1:
                data[at:at] = bytes(rng.randrange(256) for _ in range(3))
            elif kind == 2:
                del data[at : at + rng.randint(1, 30)]
            elif kind == 3:
                data[at : at + 20] = bytes(20)
            elif n % 4 == 0:
                del data[at:]
            data = data or bytearray(b"{")
        result = load(tmp_path, bytes(data), f"{n}.json")
        if b'"log_history": [' not in data:
            continue
        points = set(result.points("loss"))
        standing = [s for s, text in whole.items() if text in data]
        intact += len(standing)
        kept += sum((s, rows[s - 1]["loss"]) in points for s in standing)
    assert intact > 1500
    assert kept >= 0.99 * intact


# --- real files


@pytest.mark.corpus
@needs_corpus
@pytest.mark.parametrize(
    "record", [pytest.param(r, id=r["path"][-60:]) for r in corpus_records("trainer_state")]
)
def test_real_files(record: dict[str, Any]) -> None:
    format_name, result = load_claimed(CORPUS / record["path"])
    truth = record["truth"]
    assert format_name == "hf-trainer"
    assert result.damaged == 0
    assert result.params["global_step"] == truth["global_step"]
    assert result.points("loss")[-1] == tuple(truth["last_loss"])
    assert len(result.points("loss")) == truth["train_rows"]
    assert min((v, s) for s, v in result.points("loss")) == tuple(truth["min_loss_step"])
    assert len(result.points("step")) == truth["rows"]
    assert int(result.metrics["value"].is_nan().sum()) == truth["NaN_tokens"]
    if "best_eval_loss" in truth:
        assert min((v, s) for s, v in result.points("eval_loss")) == tuple(truth["best_eval_loss"])
        assert result.points("eval_loss")[-1] == tuple(reversed(truth["last_eval_loss"]))
