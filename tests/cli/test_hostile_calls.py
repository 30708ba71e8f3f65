"""Calls that no one means to make: closed streams, odd encodings, names that are no text."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LOG = "step,loss\n" + "".join(f"{i},{1 / (i + 1):.4f}\n" for i in range(20))


def shell(line: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """One line of shell in which ``$A`` is afterrun."""
    call = f"exec {line.replace('$A', f'{sys.executable} -m afterrun')}"
    return subprocess.run(
        ["/bin/bash", "-c", call],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "log.csv").write_text(LOG)
    return tmp_path


@pytest.mark.parametrize("line", ["$A inspect .", "$A report . -o out --no-figures", "$A export . -o out"])
def test_a_name_that_is_no_utf8_costs_nothing(logs: Path, line: str) -> None:
    for name in (b"x\xff.csv", b"y\xfe.json"):
        Path(os.fsdecode(os.fsencode(logs) + b"/" + name)).write_text(LOG)
    done = shell(line, logs)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_name_that_is_no_utf8_is_shown_with_its_bytes(logs: Path) -> None:
    Path(os.fsdecode(os.fsencode(logs) + b"/x\xff.csv")).write_text(LOG)
    document = json.loads(shell("$A inspect . --json", logs).stdout)
    assert "x\\xff.csv" in {s["path"] for run in document["runs"] for s in run["sources"]}


def test_an_ascii_terminal_gets_escapes(logs: Path) -> None:
    (logs / "größe.csv").write_text(LOG)
    done = shell("$A inspect .", logs, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "gr\\xf6\\xdfe" in done.stdout
    document = json.loads(shell("$A inspect . --json", logs, PYTHONIOENCODING="ascii").stdout)
    assert any("größe" in run["run"] for run in document["runs"])


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("$A report - <&-", "standard input"),
        ("$A inspect . >&-", "standard output is closed"),
        ("$A inspect . >/dev/full", "No space left"),
        ("$A inspect . --json >/dev/full", "No space left"),
        ("$A report . -o out --set overfit.min_rise_pct=nan", "finite"),
        ("$A report . -o ''", "empty"),
        ("$A report . -o out --config none.toml", "none.toml: no such file"),
        ("$A report . -o out --set overfit.min_evals=-3", "negative"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(logs: Path, line: str, word: str) -> None:
    done = shell(line, logs)
    assert done.returncode == 2
    assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_of_many_metrics_is_cut_short(tmp_path: Path) -> None:
    tags = [f"m{i}/{'x' * 80}/end" for i in range(230)]
    rows = [",".join(["step", *tags])] + [",".join([str(i)] + ["1.0"] * 230) for i in range(3)]
    (tmp_path / "wide.csv").write_text("\n".join(rows) + "\n")
    text = shell("$A inspect .", tmp_path).stdout
    assert "+31 more (--json has all)" in text
    assert "x" * 60 not in text


def test_a_bad_archive_costs_its_own_row_only(logs: Path) -> None:
    (logs / "bad.zip").write_bytes(b"PK\x03\x04 cut")
    (logs / "one.csv.gz").write_bytes(gzip.compress(LOG.encode()))
    document = json.loads(shell("$A inspect bad.zip one.csv.gz log.csv --json", logs).stdout)
    assert [u["path"] for u in document["unclaimed"]] == ["bad.zip"]
    assert document["unclaimed"][0]["reason"].startswith("cannot be unpacked")
    assert {s["path"] for run in document["runs"] for s in run["sources"]} == {"log.csv", "one.csv"}
    assert shell("$A report bad.zip log.csv -o out --no-figures", logs).returncode == 0
    assert shell("$A report bad.zip log.csv -o out --no-figures --strict", logs).returncode == 4
    alone = shell("$A report bad.zip -o out", logs)
    assert alone.returncode == 3
    assert "bad.zip cannot be unpacked" in alone.stderr


@pytest.mark.parametrize("command", ["inspect .", "export . -o out", "report . -o out --no-figures"])
def test_a_mistyped_tag_is_told_and_the_call_goes_on(logs: Path, command: str) -> None:
    done = shell(f"$A {command} --map los=loss:val", logs)
    assert done.returncode == 0
    assert done.stderr == "warning: --map: no run has the tag 'los'; near it: loss\n"


def test_a_pair_of_unknown_tags_is_told(logs: Path) -> None:
    done = shell("$A report . -o out --no-figures --pair loss=zzz", logs)
    assert done.returncode == 0
    assert "--pair: no run has the tag 'zzz'" in done.stderr
    assert "'loss'" not in done.stderr
    assert "1 file read" in done.stdout
