"""Exports of Nsight Systems to a folder of parquet files: the same rows as from SQLite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from afterrun.analyzer.inventory import inventory
from afterrun.loaders.collect import collect
from tests.support.loading import claimed
from tests.support.nsys import Export, as_parquet, steady


def exported(folder: Path, export: Export) -> tuple[Path, Path]:
    """The same export as SQLite and as a folder of parquet."""
    database = export.write(folder / "report1.sqlite")
    return database, as_parquet(database, folder / "runs" / "report1_pqtdir")


def run(path: Path) -> dict[str, Any]:
    (found,) = inventory(collect([path]))["runs"]
    return dict(found)


def test_the_folder_is_one_run_with_the_rows_of_sqlite(tmp_path: Path) -> None:
    export = (
        steady(50).copy(0, 10).range(0, 90, "step 3", registered=True).range(5, 6, "forward").os_call(1, 2)
    )
    export.add("DIAGNOSTIC_EVENT", timestamp=50, timestampType=1, severity=3, text="bad")
    database, folder = exported(tmp_path, export)
    ours, theirs = collect([folder]).tables, collect([database]).tables
    same = [c for c in theirs.spans.columns if c not in ("run", "source")]
    assert ours.spans.select(same).equals(theirs.spans.select(same))
    assert ours.marks["text"].to_list() == ["error: bad"]
    found = run(folder.parent)
    assert found["params"] == run(database)["params"]
    assert found["devices"] == run(database)["devices"]


def test_each_file_says_with_which_it_was_read(tmp_path: Path) -> None:
    _, folder = exported(tmp_path, steady(2).add("META_DATA_CAPTURE", name="HF_TOKEN", value="hunter2"))
    assert {claimed(path) for path in folder.iterdir()} == {"nsys-parquet"}
    sources = {s["path"]: s for s in run(folder)["sources"]}
    assert sources["StringIds.parquet"]["rows"]["spans"] == 4
    kernels, environment = sources["CUPTI_ACTIVITY_KIND_KERNEL.parquet"], sources["META_DATA_CAPTURE.parquet"]
    assert (kernels["status"], kernels["note"]) == ("read", "read with StringIds.parquet")
    assert (environment["status"], environment["note"]) == ("skipped", "a table that is not read")


def test_a_damaged_table_costs_itself(tmp_path: Path) -> None:
    _, folder = exported(tmp_path, steady(20).range(0, 10, "forward"))
    table = folder / "CUPTI_ACTIVITY_KIND_RUNTIME.parquet"
    table.write_bytes(table.read_bytes()[:-9])
    found = run(folder)
    leader = next(s for s in found["sources"] if s["path"] == "StringIds.parquet")
    assert found["devices"][0]["kernels"] == 20
    assert (leader["status"], leader["damaged"]) == ("partial", 1)
    assert "CUPTI_ACTIVITY_KIND_RUNTIME.parquet" in leader["note"]


def test_a_folder_without_strings_has_kernels_without_names(tmp_path: Path) -> None:
    _, folder = exported(tmp_path, steady(3))
    (folder / "StringIds.parquet").unlink()
    spans = collect([folder]).tables.spans.filter(pl.col("lane") == "kernel")
    assert spans["name"].cast(pl.String).to_list() == ["(unnamed)"] * 3
