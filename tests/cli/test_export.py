"""``afterrun export`` and what reads its files again."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result
from polars.testing import assert_frame_equal

from afterrun.analyzer.inventory import inventory
from afterrun.cli import main
from afterrun.loaders.collect import LoadOptions, collect
from afterrun.loaders.errors import NothingToAnalyseError, UsageError
from afterrun.loaders.names import parse_map
from afterrun.loaders.schema import SCHEMAS, Tables
from tests.support.golden import GOLDEN
from tests.support.loading import ROOT

KINDS = ("parquet", "csv", "jsonl")
LOGS = ROOT / "sample_logs"


def run(*args: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in args], catch_exceptions=False, standalone_mode=False)


def same(a: Tables, b: Tables) -> None:
    for name, frame in a.items():
        assert_frame_equal(frame, getattr(b, name), categorical_as_str=True)


@pytest.mark.parametrize("kind", KINDS)
def test_an_export_of_the_sample_logs_reads_back_the_same(tmp_path: Path, kind: str) -> None:
    done = run("export", LOGS, "--format", kind, "-o", tmp_path / "tables")
    assert done.return_value == 0
    lines = done.output.splitlines()
    assert [line.split("  ")[0] for line in lines] == [f"{tmp_path}/tables/{t}.{kind}" for t in SCHEMAS]
    before, after = collect([LOGS]), collect([tmp_path / "tables"])
    same(before.tables, after.tables)
    assert {r: i.attempts for r, i in after.runs.items()} == {r: i.attempts for r, i in before.runs.items()}
    assert lines[0].endswith(f"  {len(before.tables.metrics):,} rows")


def test_every_golden_case_reads_back_the_same(tmp_path: Path) -> None:
    for case in sorted(
        p for p in GOLDEN.iterdir() if p.is_dir() and p.name not in ("no-log", "afterrun-export")
    ):
        assert run("export", case / "input", "-o", tmp_path / case.name).return_value == 0
        same(collect([case / "input"]).tables, collect([tmp_path / case.name]).tables)


def test_reports_can_be_merged(tmp_path: Path) -> None:
    for name, log in (("mon", "overfit"), ("tue", "healthy")):
        assert run("report", LOGS / log, "-o", tmp_path / name, "--no-figures").return_value == 0
    merged = collect([tmp_path / "mon", tmp_path / "tue"])
    assert merged.tables.run_names() == ["mon/overfit", "tue/healthy"]
    assert {u.path.rpartition("/")[2] for u in merged.unclaimed} >= {
        "findings.json",
        "index.html",
        "summary.csv",
    }
    single = collect([LOGS / "overfit"]).tables.metrics.drop("run")
    assert_frame_equal(
        merged.tables.metrics.filter(pl.col("run") == "mon/overfit").drop("run"),
        single,
        categorical_as_str=True,
    )
    assert merged.runs["mon/overfit"].grouped_by == "tables of an earlier analysis"


def test_several_reports_given_by_name(tmp_path: Path) -> None:
    for name in ("mon", "tue"):
        run("report", LOGS / "overfit", "-o", tmp_path / name, "--no-figures")
    merged = collect([tmp_path / "mon", tmp_path / "tue"])
    assert merged.tables.run_names() == ["mon/overfit", "tue/overfit"]


def test_an_export_of_an_export_is_the_same(tmp_path: Path) -> None:
    run("export", LOGS / "killed-and-resumed", "-o", tmp_path / "one")
    run("export", tmp_path / "one", "-o", tmp_path / "two", "--format", "csv")
    same(collect([tmp_path / "one"]).tables, collect([tmp_path / "two"]).tables)


def test_two_formats_in_one_folder_count_once(tmp_path: Path) -> None:
    for kind in KINDS:
        run("export", LOGS / "overfit", "-o", tmp_path, "--format", kind)
    same(collect([LOGS / "overfit"]).tables, collect([tmp_path]).tables)


def test_a_broken_table_costs_itself(tmp_path: Path) -> None:
    run("export", LOGS / "overfit", "-o", tmp_path / "t")
    (tmp_path / "t" / "params.parquet").write_bytes(b"PAR1 no more")
    document = inventory(collect([tmp_path / "t"]))
    runs = {r["run"]: r for r in document["runs"]}
    assert runs["overfit"]["metrics"]
    assert runs["overfit"]["params"] == {}
    (source,) = runs["t"]["sources"]
    assert (source["path"], source["status"]) == ("params.parquet", "unreadable")


def test_damaged_rows_of_an_export_are_told_with_its_runs(tmp_path: Path) -> None:
    run("export", LOGS / "overfit", "-o", tmp_path, "--format", "csv")
    path = tmp_path / "metrics.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:5], "overfit,x,one,,t,,,,,,,,,,,", *lines[5:]]) + "\n")
    again = collect([tmp_path])
    assert len(again.tables.metrics) == len(lines) - 1
    assert again.runs["overfit"].notes == ("metrics.csv: 1 damaged rows left out",)


def test_meanings_given_by_the_user_apply(tmp_path: Path) -> None:
    run("export", LOGS / "overfit", "-o", tmp_path)
    tag, name = parse_map("epoch=reward:test:max")
    metrics = collect([tmp_path], LoadOptions(overrides={tag: name})).tables.metrics
    assert metrics.filter(pl.col("tag") == tag).select("metric", "split").unique().rows() == [
        ("reward", "test")
    ]


def test_tables_without_rows_of_runs_still_make_runs(tmp_path: Path) -> None:
    run("export", LOGS / "overfit", "-o", tmp_path)
    for name in SCHEMAS:
        if name != "metrics":
            (tmp_path / f"{name}.parquet").unlink()
    (only,) = inventory(collect([tmp_path]))["runs"]
    assert (only["run"], only["outcome"], bool(only["metrics"])) == ("overfit", "unknown", True)


def test_nothing_to_export(tmp_path: Path) -> None:
    with pytest.raises(NothingToAnalyseError, match="no training log found"):
        run("export", tmp_path, "-o", tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        run("export", LOGS / "overfit", "-o", tmp_path / "file" / "x")


def test_some_tags_alone(tmp_path: Path) -> None:
    done = run("export", LOGS / "overfit", "-o", tmp_path, "--tag", "eval_*", "--tag", "no/such")
    assert done.return_value == 0
    assert (
        "warning: --tag: no run has a metric like 'no/such'; 'afterrun inspect' lists the tags"
        in " ".join(done.stderr.split())
    )
    every = collect([LOGS / "overfit"]).tables.metrics
    some = pl.read_parquet(tmp_path / "metrics.parquet")
    wanted = every.filter(pl.col("tag").cast(pl.String).str.starts_with("eval_"))
    assert 0 < len(some) < len(every)
    columns = ["tag", "step", "epoch", "wall_ns", "value"]
    assert_frame_equal(some.select(columns), wanted.select(columns), categorical_as_str=True)
