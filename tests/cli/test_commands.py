"""The command line as a user meets it: streams, exit codes, messages. Run in process."""

from __future__ import annotations

import gzip
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from afterrun.cli import run
from tests.support import events
from tests.support.nsys import steady

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """``call(*args)`` -> (exit code, standard output, standard error), in an empty folder."""
    work = tmp_path / "cwd"
    work.mkdir()
    monkeypatch.chdir(work)

    def go(*args: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["afterrun", *map(str, args)])
        with pytest.raises(SystemExit) as stop:
            run()
        captured = capsysbinary.readouterr()
        assert isinstance(stop.value.code, int)
        return stop.value.code, captured.out.decode(), captured.err.decode()

    return go


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    """One run of 60 epochs that ends in NaN is not healthy; this one simply falls."""
    rows = "".join(f"{i},{3 * 0.95**i + 0.1:.6f},{3 * 0.95**i + 0.2:.6f}\n" for i in range(60))
    return _log(tmp_path / "healthy" / "log.csv", rows)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Loss is NaN from epoch 40 to the end."""
    rows = "".join(
        f"{i},{3 * 0.95**i + 0.1 if i < 40 else float('nan')},{3 * 0.95**i + 0.2}\n" for i in range(60)
    )
    return _log(tmp_path / "broken" / "log.csv", rows)


def _log(path: Path, rows: str) -> Path:
    path.parent.mkdir()
    path.write_text("epoch,loss,val_loss\n" + rows)
    return path.parent


def test_version_and_help(call: Call) -> None:
    code, out, err = call("--version")
    assert (code, out.split()[0], err) == (0, "afterrun", "")
    code, out, _ = call("--help")
    assert code == 0
    assert all(c in out for c in ("report", "inspect", "explain", "schema"))


def test_a_wrong_command_names_the_nearest(call: Call) -> None:
    code, out, err = call("reprot", "x")
    assert (code, out) == (2, "")
    assert "did you mean 'report'" in err


def test_report_writes_the_whole_folder(call: Call, healthy: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    code, out, _ = call("report", healthy, "-o", target, "--no-figures")
    assert code == 0
    assert str(target / "index.html") in out.replace("\n", "")
    names = {p.relative_to(target).as_posix() for p in target.rglob("*") if p.is_file()}
    assert {"index.html", "report.md", "findings.json", "summary.csv", "data/metrics.parquet"} <= names
    document = json.loads((target / "findings.json").read_text())
    assert document["version"] == 1
    assert [r["name"] for r in document["runs"]] == ["healthy"]


def test_fail_on_decides_the_exit_code(call: Call, broken: Path, tmp_path: Path) -> None:
    base = ("report", broken, "-o", tmp_path / "out", "--no-figures")
    assert call(*base)[0] == 0
    assert call(*base, "--fail-on", "critical")[0] == 1
    assert call(*base, "--fail-on", "non-finite")[0] == 1
    assert call(*base, "--fail-on", "overfit")[0] == 0
    code, _, err = call(*base, "--fail-on", "overfti")
    assert code == 2
    assert "did you mean 'overfit'" in err


def test_json_is_the_document_and_nothing_else(call: Call, broken: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    code, out, _ = call("report", broken, "-o", target, "--no-figures", "--json")
    assert code == 0
    assert json.loads(out) == json.loads((target / "findings.json").read_text())


def test_nothing_to_analyse(call: Call, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.txt").write_text("hello\n")
    code, out, err = call("report", tmp_path / "empty", "-o", tmp_path / "out")
    assert (code, out) == (3, "")
    assert "no training log found (1 file looked at)" in err
    code, out, _ = call("inspect", tmp_path / "empty", "--json")
    assert code == 3
    assert json.loads(out) == {
        "version": 1,
        "runs": [],
        "unclaimed": [
            {"path": "notes.txt", "reason": "text without a numeric table that a loader recognises"}
        ],
    }
    code, _, err = call("report", tmp_path / "missing")
    assert code == 3
    assert "no such file or folder" in err


def test_inspect_json_is_version_1(call: Call, broken: Path) -> None:
    code, out, err = call("inspect", broken, "--json")
    assert (code, err) == (0, "")
    (one,) = json.loads(out)["runs"]
    assert set(one) >= {
        "run",
        "path",
        "grouped_by",
        "attempts",
        "outcome",
        "sources",
        "metrics",
        "params",
        "spans",
        "devices",
        "samples",
        "kernels",
        "marks",
    }
    (loss,) = [m for m in one["metrics"] if m["tag"] == "loss"]
    assert loss["nan"] == 20
    assert loss["last"] == "NaN"
    assert (loss["points"], loss["first_step"], loss["last_step"], loss["split"]) == (60, 0, 59, "train")
    assert loss["min"] == pytest.approx(3 * 0.95**39 + 0.1)


def test_inspect_table(call: Call, broken: Path) -> None:
    code, out, _ = call("inspect", broken)
    assert code == 0
    assert "20 NaN" in out
    assert "keras-csv" in out


def test_inspect_table_of_counters_and_devices(call: Call, tmp_path: Path) -> None:
    rows = "".join(
        f"2026/01/01 00:00:{i:02d}.000, 1, {40 + i} %, 3000 MiB, 120.0 MiB\n" for i in range(0, 50, 10)
    )
    head = "timestamp, index, utilization.gpu [%], memory.total [MiB], memory.used [MiB]\n"
    (tmp_path / "smi.csv").write_text(head + rows)
    steady(5, dur=80, gap=20).write(tmp_path / "trace.sqlite")
    code, out, _ = call("inspect", tmp_path)
    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    assert ["gpu_util_pct", "1", "5", "60", "%", "80", "%"] in lines
    assert ["mem_used_bytes", "1", "5", "120", "MiB", "120", "MiB"] in lines
    # 5 kernels of 80 ns, 20 ns apart: 400 of 480 ns
    assert ["GPU", "0", "5", "480", "ns", "83", "%", "17", "%", "20", "ns"] in lines


def test_what_a_loader_reads_packed_is_not_unpacked_first(call: Call, tmp_path: Path) -> None:
    spans = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": "k",
            "pid": 0,
            "tid": 7,
            "ts": 1,
            "dur": 2,
            "args": {"device": 0},
        }
    ]
    trace = json.dumps({"schemaVersion": 1, "traceEvents": spans}).encode()
    (tmp_path / "a.pt.trace.json.gz").write_bytes(gzip.compress(trace))
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"step,loss\n1,2\n2,1\n"))
    for name, source in (("a.pt.trace.json.gz", "a.pt.trace.json.gz"), ("b.csv.gz", "b.csv")):
        _, out, _ = call("inspect", tmp_path / name, "--json")
        assert [s["path"] for s in json.loads(out)["runs"][0]["sources"]] == [source]


def test_b82_a_small_file_that_unpacks_huge_is_stopped_and_told(call: Call, tmp_path: Path) -> None:
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(bytes(64 * 2**20)))
    code, out, err = call("report", tmp_path / "bomb.csv.gz", "-o", tmp_path / "out")
    assert code == 3
    assert "cannot be unpacked to its end" in out + err


_LOSSES = [3 * 0.9**i + 0.1 for i in range(30)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("log.csv", "step,loss\n" + "".join(f"{i},{y:.6f}\n" for i, y in enumerate(_LOSSES))),
        ("log.jsonl", "".join(f'{{"step": {i}, "loss": {y:.6f}}}\n' for i, y in enumerate(_LOSSES))),
        ("train.log", "".join(f"step {i} | loss {y:.6f}\n" for i, y in enumerate(_LOSSES))),
        ("events.out.tfevents.1700000000.host.1.0", events.event_file(events.curve("loss", _LOSSES))),
    ],
)
def test_one_compressed_log_of_any_format_is_read(
    call: Call, tmp_path: Path, name: str, content: str | bytes
) -> None:
    data = content if isinstance(content, bytes) else content.encode()
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(data))
    _, out, _ = call("inspect", tmp_path / f"{name}.gz", "--json")
    (run,) = json.loads(out)["runs"]
    assert [s["path"] for s in run["sources"]] == [name]
    (loss,) = [m for m in run["metrics"] if m["tag"] == "loss"]
    assert (loss["points"], loss["last"]) == (30, pytest.approx(_LOSSES[-1], abs=1e-6))


def test_names_are_shown_as_they_are(call: Call, tmp_path: Path) -> None:
    rows = "".join(f"{i},{1 / (i + 1)}\n" for i in range(9))
    folder = tmp_path / "[red]x[bold]\x1b[31m"
    folder.mkdir()
    (folder / "log.csv").write_text("step,loss[bold]\n" + rows)
    _, out, _ = call("inspect", folder)
    assert "[red]x[bold]" in out
    assert "loss[bold]" in out
    assert "\x1b" not in out


def test_archives_lists_globs_and_files(
    call: Call, healthy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "runs.zip", "w") as z:
        z.write(healthy / "log.csv", "a/log.csv")
    names = lambda out: [r["run"] for r in json.loads(out)["runs"]]  # noqa: E731  # three uses below
    assert names(call("inspect", tmp_path / "runs.zip", "--json")[1]) == ["a"]
    assert names(call("inspect", healthy / "log.csv", "--json")[1]) == ["log"]
    assert names(call("inspect", tmp_path / "heal*", "--json")[1]) == ["healthy"]
    monkeypatch.setattr(sys, "stdin", [f"{healthy}\n", "\n"])
    assert names(call("inspect", "-", "--json")[1]) == ["healthy"]


def test_map_and_pair_make_unknown_tags_known(call: Call, tmp_path: Path) -> None:
    rows = "".join(f"{i},{3 * 0.95**i + 0.1:.6f},{3 * 0.95**i + 0.2:.6f}\n" for i in range(60))
    (tmp_path / "log.csv").write_text("step,q_obj,q_dev\n" + rows)
    args = (
        "inspect",
        tmp_path / "log.csv",
        "--json",
        "--map",
        "q_obj=loss:train",
        "--map",
        "q_dev=loss:val:min",
    )
    (one,) = json.loads(call(*args)[1])["runs"]
    assert {(m["tag"], m["metric"], m["split"]) for m in one["metrics"]} >= {
        ("q_obj", "loss", "train"),
        ("q_dev", "loss", "val"),
    }


def test_thresholds_are_checked_before_reading(call: Call, healthy: Path, tmp_path: Path) -> None:
    base = ("report", healthy, "-o", tmp_path / "out", "--no-figures")
    for bad, word in [
        ("overfit", "CODE.NAME=VALUE"),
        ("overfti.x=1", "did you mean 'overfit'"),
        ("overfit.nothing=1", "no threshold"),
        ("overfit.min_evals=many", "not a int"),
    ]:
        code, _, err = call(*base, "--set", bad)
        assert code == 2, bad
        assert word in err
    assert call(*base, "--set", "overfit.min_evals=12")[0] == 0


def test_an_output_that_cannot_be_written_is_a_usage_error(call: Call, healthy: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    code, _, err = call("report", healthy, "-o", tmp_path / "file" / "out", "--no-figures")
    assert code == 2
    assert "cannot be written" in err


def test_explain(call: Call) -> None:
    code, out, _ = call("explain", "overfit")
    assert code == 0
    assert "HOW IT IS DECIDED" in out
    assert "min_evals" in out
    code, out, _ = call("explain")
    assert code == 0
    assert "overfit" in out
    code, _, err = call("explain", "overfitt")
    assert code == 2
    assert "did you mean 'overfit'" in err


def test_schema(call: Call) -> None:
    code, out, _ = call("schema", "--json")
    assert code == 0
    assert list(json.loads(out)["metrics"])[:4] == ["run", "source", "attempt", "rank"]
    code, out, _ = call("schema", "findings")
    assert code == 0
    assert "findings" in json.loads(out)["$defs"]["Document"]["properties"]


def test_the_same_input_gives_the_same_bytes(call: Call, broken: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    for target in (first, second):
        assert call("report", broken, "-o", target)[0] == 0
    names = sorted(p.relative_to(first).as_posix() for p in first.rglob("*") if p.is_file())
    assert names == sorted(p.relative_to(second).as_posix() for p in second.rglob("*") if p.is_file())
    for name in names:
        if name == "manifest.json":
            a, b = (json.loads((t / name).read_text()) for t in (first, second))
            assert set(a.pop("generated")) == {"version", "command", "seconds"}
            b.pop("generated")
            assert a == b
        else:
            assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_a_path_given_twice_or_below_another_is_read_once(call: Call, healthy: Path) -> None:
    for paths in ((healthy, healthy), (healthy, healthy / "log.csv"), (healthy / "log.csv", healthy)):
        _, out, _ = call("inspect", *paths, "--json")
        assert len(json.loads(out)["runs"]) == 1


def test_a_second_report_into_the_input_finds_the_same_runs(call: Call, healthy: Path) -> None:
    for _ in range(2):
        assert call("report", healthy, "-o", healthy / "postmortem", "--no-figures")[0] == 0
    document = json.loads((healthy / "postmortem" / "findings.json").read_text())
    assert [r["name"] for r in document["runs"]] == ["healthy"]


def test_compare_sets_two_traces_side_by_side(call: Call, tmp_path: Path) -> None:
    for name, dur in (("a", 50), ("b", 80)):
        spans = [
            {
                "ph": "X",
                "cat": "kernel",
                "name": "k",
                "pid": 0,
                "tid": 7,
                "ts": 100 * i,
                "dur": dur,
                "args": {"device": 0, "stream": 7},
            }
            for i in range(10)
        ]
        (tmp_path / f"{name}.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": spans}))
    code, out, _ = call("compare", tmp_path / "a.json", tmp_path / "b.json", "--json")
    assert code == 0
    found = {row["name"]: row for row in json.loads(out)["rows"]}
    assert found["busy"]["base"] == pytest.approx(100 * 500 / 950)
    assert found["busy"]["candidate"] == pytest.approx(100 * 800 / 980)
    code, out, _ = call("compare", tmp_path / "a.json", tmp_path / "b.json")
    assert code == 0
    assert "idle by cause" in out


def test_b57_compare_with_nothing_is_not_comparable(call: Call, tmp_path: Path, healthy: Path) -> None:
    spans = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": "k",
            "pid": 0,
            "tid": 7,
            "ts": 1,
            "dur": 5,
            "args": {"device": 0, "stream": 7},
        }
    ]
    (tmp_path / "a.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": spans}))
    (tmp_path / "b.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": []}))
    code, _, err = call("compare", tmp_path / "a.json", tmp_path / "b.json")
    assert code == 3
    code, _, err = call("compare", tmp_path / "a.json", healthy)
    assert code == 3
    assert "no GPU activity" in err
