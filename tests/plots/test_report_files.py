"""findings.json, its schema, summary.csv, the tables, and how files come to be."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import msgspec
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from afterrun.analyzer.analysis import Analysis
from afterrun.analyzer.finding import Effect, Finding, Where
from afterrun.loaders.schema import SCHEMAS, Tables
from afterrun.loaders.store import replacing, write_tables
from afterrun.plots.report import findings_schema, write_report
from afterrun.plots.report.files import findings_json, summary_csv
from afterrun.plots.report.summary import summarize
from tests.support.reports import HOSTILE, alarm, blind, draw, fine, learning, make_analysis
from tests.support.tables import make_tables


def example() -> Analysis:
    parts = [
        learning("b/two", 1, devices=8, outcome="finished"),
        make_tables({"loss": (range(4), [3.0, 1.0, float("nan"), float("inf")])}, run="a one"),
    ]
    findings = [
        alarm("b/two", "spike", where=Where(step_start=900), title="late"),
        alarm("b/two", "spike", where=Where(step_start=100), title="early"),
        alarm("b/two", "overfit", effect=Effect(value=float("nan"), low=float("-inf"), high=float("inf"))),
        fine("b/two", "divergence"),
        blind("a one", "overfit", "a validation loss: --map 'x=loss:val'"),
    ]
    return make_analysis(parts, findings)


def document(analysis: Analysis) -> dict[str, object]:
    text = findings_json(analysis.findings, summarize(analysis)).decode()
    return dict(json.loads(text, parse_constant=lambda token: pytest.fail(f"bare {token} in JSON")))


def test_findings_json_has_its_envelope_and_order() -> None:
    found = document(example())
    assert list(found) == ["version", "findings", "runs", "ledger"]
    assert (found["version"], found["ledger"]) == (1, [])
    keys = [(f["run"], f["code"], f["where"]["step_start"]) for f in found["findings"]]  # type: ignore[attr-defined]
    assert keys == [
        ("a one", "overfit", None),
        ("b/two", "divergence", None),
        ("b/two", "overfit", 6_400),
        ("b/two", "spike", 100),
        ("b/two", "spike", 900),
    ]
    assert [r["name"] for r in found["runs"]] == ["a one", "b/two"]  # type: ignore[attr-defined]


def test_runs_hold_first_best_and_last() -> None:
    runs = {r["name"]: r for r in document(example())["runs"]}  # type: ignore[attr-defined]
    (curve,) = runs["a one"]["metrics"]
    assert curve == {
        "tag": "loss",
        "metric": "loss",
        "split": "none",
        "points": 4,
        "non_finite": 2,
        "first_step": 0,
        "last_step": 3,
        "last": "Infinity",
        "best": 1.0,
        "best_step": 1,
        "better": "min",
    }
    assert runs["a one"]["statuses"] == {"abstained": 1}
    assert runs["b/two"]["severities"] == {"warning": 3}
    assert runs["b/two"]["points"] == 440
    assert [c["tag"] for c in runs["b/two"]["metrics"]] == ["train/loss", "val/loss"]


def test_non_finite_numbers_are_strings() -> None:
    effect = next(
        f["effect"] for f in document(example())["findings"] if f["code"] == "overfit" and f["effect"]
    )  # type: ignore[attr-defined]
    assert (effect["value"], effect["low"], effect["high"]) == ("NaN", "-Infinity", "Infinity")


def test_the_schema_is_one_and_fits() -> None:
    schema = findings_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(document(example()))
    validator.validate({"version": 1, "findings": [], "runs": [], "ledger": []})
    for broken in (
        {"version": 2, "findings": [], "runs": [], "ledger": []},
        {"version": 1, "findings": [], "runs": []},
        {"version": 1, "findings": [{"code": "x"}], "runs": [], "ledger": []},
    ):
        assert not validator.is_valid(broken)
    bad = document(example())
    bad["findings"][0]["status"] = "sure"  # type: ignore[index]
    assert not validator.is_valid(bad)


def test_findings_json_reads_back_as_findings() -> None:
    analysis = make_analysis([learning("r")], [alarm("r"), fine("r", "spike")])
    data = findings_json(analysis.findings, summarize(analysis))
    read = msgspec.convert(json.loads(data)["findings"], list[Finding])
    assert read == sorted(analysis.findings, key=lambda f: f.code)


def test_bytes_do_not_depend_on_order() -> None:
    analysis = example()
    runs = summarize(analysis)
    backwards = dict(reversed(runs.items()))
    assert findings_json(analysis.findings[::-1], backwards) == findings_json(analysis.findings, runs)
    assert summary_csv(backwards) == summary_csv(runs)


def test_summary_csv_reads_back() -> None:
    rows = list(csv.DictReader(io.StringIO(summary_csv(summarize(example())))))
    assert [r["run"] for r in rows] == ["a one", "b/two"]
    two = rows[1]
    assert (two["outcome"], two["points"], two["last_step"], two["warning"], two["critical"]) == (
        "finished",
        "440",
        "39900",
        "3",
        "0",
    )
    assert float(two["wasted_gpu_s"]) == 32_760.0
    assert two["held_out_tag"] == "val/loss"
    assert rows[0]["train_last"] == "Infinity"
    assert (rows[0]["train_best"], rows[0]["held_out_best"], rows[0]["wasted_gpu_s"]) == ("1.0", "", "")
    polars = pl.read_csv(io.StringIO(summary_csv(summarize(example()))), null_values=[""])
    assert polars["last_step"].dtype == pl.Int64


def test_text_cells_are_no_formulas_and_numbers_are_untouched() -> None:
    parts = [
        make_tables({"=HYPERLINK(1)": (range(2), [-1.0, -1.5])}, run=name)
        for name in ("=1+1", "+x", "-x", "@x", "\tx", "plain")
    ]
    rows = list(csv.DictReader(io.StringIO(summary_csv(summarize(make_analysis(parts))))))
    assert {r["run"] for r in rows} == {"'=1+1", "'+x", "'-x", "'@x", "'\tx", "plain"}
    assert {r["train_tag"] for r in rows} == {"'=HYPERLINK(1)"}
    assert {r["train_last"] for r in rows} == {"-1.5"}


def test_tables_read_back_as_they_were(tmp_path: Path) -> None:
    tables = example().collection.tables
    paths = write_tables(tables, tmp_path / "data")
    assert [p.stem for p in paths] == list(Tables.names())
    for name, frame in tables.items():
        read = pl.read_parquet(tmp_path / "data" / f"{name}.parquet")
        assert read.schema == SCHEMAS[name]
        assert_frame_equal(read, frame, categorical_as_str=True)
        assert pl.read_parquet_metadata(tmp_path / "data" / f"{name}.parquet")["afterrun.table"] == name


def test_a_file_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("old")

    def fail() -> None:
        with replacing(path) as file:
            file.write(b"half")
            raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        fail()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_a_half_file_of_an_earlier_death_is_replaced(tmp_path: Path) -> None:
    (tmp_path / ".x.json.part").write_text("half")
    with replacing(tmp_path / "x.json") as file:
        file.write(b"new")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("x.json", "new")]


def test_the_report_is_complete_and_the_same_twice(tmp_path: Path) -> None:
    analysis = example()
    written = []
    for name in ("one", "two"):
        out = tmp_path / name
        drawn = [draw(out, "b/two", "curves", ("overfit", "spike"))]
        written.append(write_report(analysis, drawn, out, version="0.1.0", command="afterrun report x"))
    names = [p.relative_to(tmp_path / "one").as_posix() for p in written[0]]
    assert names == [
        *(f"data/{t}.parquet" for t in Tables.names()),
        "findings.json",
        "summary.csv",
        "report.md",
        "index.html",
    ]
    for one, two in zip(*written, strict=True):
        assert one.read_bytes() == two.read_bytes(), one.name
    found = json.loads((tmp_path / "one/findings.json").read_text())["findings"]
    assert {(f["code"], tuple(f["figures"])) for f in found if f["run"] == "b/two"} == {
        ("divergence", ()),
        ("overfit", ("curves",)),
        ("spike", ("curves",)),
    }
    assert not list(tmp_path.rglob("*.part"))


def test_bytes_depend_on_nothing_around_the_program(tmp_path: Path) -> None:
    """Another hash seed, time zone and locale: the same bytes (drawn by lot order of sets, clocks, separators)."""
    script = (
        "import pathlib, sys; from tests.plots.test_report_files import example; "
        "from afterrun.plots.report import write_report; "
        "write_report(example(), [], pathlib.Path(sys.argv[1]), version='0', command='x')"
    )
    for name, seed, zone, locale in (("one", "1", "UTC", "C"), ("two", "2", "Asia/Tokyo", "de_DE.UTF-8")):
        env = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": locale}
        root = Path(__file__).parents[2]
        subprocess.run([sys.executable, "-c", script, str(tmp_path / name)], env=env, cwd=root, check=True)
    files = [p.relative_to(tmp_path / "one") for p in (tmp_path / "one").rglob("*.*")]
    assert len(files) == 13
    for path in files:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes(), path


def test_hostile_names_leave_the_folder_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    parts = [make_tables({tag: (range(3), [3.0, 2.0, 1.0]) for tag in HOSTILE}, run="<b>run&1")]
    write_report(make_analysis(parts), [], out, version="0", command="x")
    assert sorted(p.name for p in out.iterdir()) == [
        "data",
        "findings.json",
        "index.html",
        "report.md",
        "summary.csv",
    ]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_path_that_is_no_utf8_is_written_in_words(tmp_path: Path) -> None:
    analysis = example()
    info = msgspec.structs.replace(summarize(analysis)["a one"], path="runs/\udc80x")
    data = findings_json([], {"a one": info})
    assert json.loads(data)["runs"][0]["path"] == "runs/\\udc80x"
