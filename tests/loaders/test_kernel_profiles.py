"""Nsight Compute: pages, printed reports, locales, units, failures."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from afterrun.loaders.collect import collect
from afterrun.loaders.collection import Collection
from afterrun.loaders.ncu.units import decimal_comma, number, to_base
from tests.support.golden_profiles import NCU_HEADER, ncu_details, ncu_printed


def read(folder: Path, name: str, text: str, encoding: str = "utf-8") -> Collection:
    (folder / name).write_text(text, encoding=encoding)
    return collect([folder])


def value(found: Collection, launch: int, metric: str) -> float | None:
    rows = found.tables.kernels.filter((pl.col("launch") == launch) & (pl.col("metric") == metric))
    return rows["value"][0] if len(rows) else None


def note(found: Collection) -> str:
    return str(found.tables.sources["note"][0])


class TestUnits:
    @pytest.mark.parametrize(
        ("unit", "base"),
        [
            ("nsecond", ("ns", 1)),
            ("us", ("ns", 1e3)),
            ("msecond", ("ns", 1e6)),
            ("second", ("ns", 1e9)),
            ("Kbyte", ("byte", 1e3)),
            ("Gbyte/s", ("byte/s", 1e9)),
            ("Gbyte/second", ("byte/s", 1e9)),
            ("Ghz", ("hz", 1e9)),
            ("cycle/nsecond", ("hz", 1e9)),
            ("byte/block", ("byte/block", 1)),
            ("%", ("%", 1)),
            ("register/thread", ("register/thread", 1)),
        ],
    )
    def test_go_to_their_base(self, unit: str, base: tuple[str, float]) -> None:
        assert to_base(unit) == (base[0], pytest.approx(base[1]))

    def test_one_file_has_one_locale(self) -> None:
        assert not decimal_comma(["10,776,576", "33.42", "1,234"])
        assert decimal_comma(["10.776.576", "33,42", "1.234"])
        assert not decimal_comma(["1,234"])  # both could mean it: the American reading
        assert number("1.234,5", comma=True) == 1234.5
        assert number("1,234.5", comma=False) == 1234.5
        assert number("(256, 1, 1)", comma=False) is None


class TestPages:
    def test_b64_details_with_lines_of_the_profiler_around(self, tmp_path: Path) -> None:
        text = ncu_details(
            [
                (0, "gemm<float, 4>(float*, int)", "Duration", "us", "1,234.56"),
                (0, "gemm<float, 4>(float*, int)", "Compute (SM) Throughput", "%", "61.2"),
            ]
        )
        found = read(
            tmp_path, "a.csv", "==WARNING== no stock section\nepoch 1\n" + text + "==PROF== Disconnected\n"
        )
        assert value(found, 0, "Duration") == 1_234_560
        assert value(found, 0, "Compute (SM) Throughput") == 61.2

    def test_b64_raw_page_has_its_units_below_the_header(self, tmp_path: Path) -> None:
        found = read(
            tmp_path,
            "raw.csv",
            '"ID","Process ID","Process Name","Kernel Name","Block Size","gpu__time_duration.sum","sm__throughput.avg.pct_of_peak_sustained_elapsed"\n'
            '"","","","","","ms","%"\n"0","7","python3","a(int)","(1, 1, 1)","1.5","61.2"\n"1","7","python3","b(int)","(1, 1, 1)","0.0123","n/a"\n',
        )
        assert value(found, 0, "gpu__time_duration.sum") == 1_500_000
        assert value(found, 1, "gpu__time_duration.sum") == pytest.approx(12_300)
        assert value(found, 1, "sm__throughput.avg.pct_of_peak_sustained_elapsed") is None
        assert "1 metrics whose values are no numbers" in note(found)

    def test_rows_of_rules_and_rows_that_leave_their_columns_out(self, tmp_path: Path) -> None:
        header = (
            NCU_HEADER
            + ',"Rule Name","Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup"'
        )
        start = '"0","7","p","h","k","1","7","(1, 1, 1)","(1, 1, 1)","0","8.0","S"'
        text = f'{header}\n{start},"Duration","ns","5",\n{start},"","","","Rule","OPT","two\nlines, one cell","global","12.5"\n'
        found = read(tmp_path, "a.csv", text)
        assert value(found, 0, "Duration") == 5
        assert "1 rows of rules" in note(found)
        assert found.tables.sources["damaged"][0] == 0

    def test_two_processes_in_one_file_keep_their_launches_apart(self, tmp_path: Path) -> None:
        text = ncu_details([(0, "k", "Duration", "ns", "5")])
        other = text.replace('"4242"', '"4243"').replace('"5"', '"6"')
        found = read(tmp_path, "a.csv", text + other)
        assert found.tables.kernels["value"].to_list() == [5, 6]
        assert found.tables.kernels["launch"].n_unique() == 2

    def test_utf16_as_powershell_writes_it(self, tmp_path: Path) -> None:
        found = read(tmp_path, "a.csv", ncu_details([(0, "k", "Duration", "ns", "5")]), "utf-16")
        assert value(found, 0, "Duration") == 5

    def test_a_row_that_was_cut_is_counted(self, tmp_path: Path) -> None:
        text = ncu_details([(0, "k", "Duration", "ns", "5"), (1, "k", "Duration", "ns", "7")])
        found = read(tmp_path, "a.csv", text[:-40])
        assert value(found, 0, "Duration") == 5
        assert found.tables.sources["damaged"][0] == 1


class TestPrinted:
    def test_sections_below_a_kernel(self, tmp_path: Path) -> None:
        text = ncu_printed(
            "void k<float>(float *)",
            [("Duration", "us", "777.95"), ("DRAM Frequency", "Ghz", "2.62"), ("Cluster Size", "", "0")],
        )
        found = read(tmp_path, "report.txt", text)
        assert value(found, 0, "Duration") == 777_950
        assert value(found, 0, "DRAM Frequency") == 2.62e9
        assert value(found, 0, "Cluster Size") == 0
        assert found.tables.kernels["name"].cast(pl.String)[0] == "void k<float>(float *)"
        assert found.tables.kernels["device"][0] == 0

    def test_a_failed_profile_says_why(self, tmp_path: Path) -> None:
        text = "==PROF== Connected to process 7 (/usr/bin/python3)\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n"
        found = read(tmp_path, "report.txt", text)
        assert found.tables.kernels.is_empty()
        assert "ERR_NVGPUCTRPERM" in note(found)


def test_the_container_is_named_with_how_to_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ncu_report", None)
    (tmp_path / "a.ncu-rep").write_bytes(b"NVR\0" + bytes(40))
    found = collect([tmp_path])
    assert found.tables.sources["status"].cast(pl.String).to_list() == ["unreadable"]
    assert "afterrun[ncu]" in note(found)
    assert "ncu --import a.ncu-rep" in note(found)
