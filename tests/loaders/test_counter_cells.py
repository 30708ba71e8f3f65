"""What stands in the cells of samplers: numbers with units, states, masks, times; and the names of counters."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterrun.loaders.counters.clocks import ctime_ns, is_ctime, times_of
from afterrun.loaders.counters.readings import label, mask, performance_state, reading, readings
from afterrun.loaders.counters.reasons import throttle_counters
from afterrun.loaders.counters.vocabulary import RAW, counter_of
from tests.support.sampled import BEGIN_NS


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [("92 %", 92.0, "%"), ("25073MiB", 25073.0, "MiB"), (" 33.09 W", 33.09, "W"), ("(300Mhz)", 300.0, "Mhz"),
     ("-8 C", -8.0, "C"), ("16x", 16.0, "x"), ("33,09 W", 33.09, "W"), ("35.0°C", 35.0, "°C"), ("7", 7.0, "")],
)  # fmt: skip
def test_a_reading_is_a_number_and_its_unit(text: str, value: float, unit: str) -> None:
    assert reading(text) == (value, unit)


@pytest.mark.parametrize(
    "text",
    ["[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "ERR!", "-", "", "0x00", "P8", "Default", "1 2"],
)
def test_what_is_not_recorded_is_no_reading(text: str) -> None:
    assert reading(text) is None


@given(st.lists(st.text(alphabet="0123456789.,-+eE %MiBWx[]N/A\n", max_size=10), max_size=8))
def test_a_column_reads_as_its_cells(cells: list[str]) -> None:
    numbers, units = readings(pl.Series(cells, dtype=pl.String))
    one_by_one = [reading(c) for c in cells]
    assert numbers.to_list() == [r and r.value for r in one_by_one]
    assert [u for u, r in zip(units, one_by_one, strict=True) if r] == [r.unit for r in one_by_one if r]


def test_labels_part_into_name_and_unit() -> None:
    assert label("utilization.gpu [%]") == ("utilization.gpu", "%")
    assert label("Temperature (Sensor edge) (C)") == ("Temperature (Sensor edge)", "C")
    assert label("memory.used") == ("memory.used", "")
    assert label("[%]") == ("[%]", "")


def test_masks_and_states() -> None:
    assert mask("0x0000000000000044") == 68.0
    assert mask("44") is None
    assert performance_state(" P8 ") == 8.0
    assert performance_state("8") is None


@pytest.mark.parametrize(
    ("bits", "thermal", "power"),
    [
        (0x0, 0, 0),
        (0x1, 0, 0),
        (0x4, 0, 1),
        (0x20, 1, 0),
        (0x40, 1, 0),
        (0x8, 1, 0),
        (0x88, 0, 1),
        (0xC8, 1, 1),
        (0x100, 0, 0),
    ],
)
def test_reasons_tell_heat_and_power(bits: int, thermal: int, power: int) -> None:
    expected = (("throttle_reasons", bits), ("throttle_thermal", thermal), ("throttle_power", power))
    assert throttle_counters(bits) == expected


@pytest.mark.parametrize(
    ("cells", "clock", "first"),
    [
        (["2026/01/03 15:36:53.507", "2026/01/03 15:36:54.512"], "local", BEGIN_NS),
        (["2026-01-03T15:36:53.507", "x"], "local", BEGIN_NS),
        (["2026-01-03T16:36:53.507+01:00"], "zoned", BEGIN_NS),
        (["Sat Jan  3 15:36:53 2026"], "local", BEGIN_NS - 507_000_000),
        (["20260103 15:36:53"], "local", BEGIN_NS - 507_000_000),
        (["1767454613.507"], "epoch", BEGIN_NS),
        (["1767454613507"], "epoch", BEGIN_NS),
        (["0.0", "1.5"], "elapsed", 0),
        (["", "n/a"], None, None),
    ],
)
def test_times_of_every_writing(cells: list[str], clock: str | None, first: int | None) -> None:
    times = times_of(pl.Series(cells))
    assert times.clock == clock
    assert (
        times.t_ns[0] == first or abs(times.t_ns[0] - first) < 1000
    )  # seconds as a float: to the microsecond


def test_a_torn_time_is_none_and_harms_no_other() -> None:
    times = times_of(pl.Series(["2026/01/03 15:36:53.507", "6/01/03 15:36:5", "2206/01/03 15:36:53.507"]))
    assert times.t_ns.to_list() == [BEGIN_NS, None, None]


def test_dates_as_ctime_writes_them() -> None:
    assert is_ctime("Tue Jul 14 08:12:53 2026       ")
    assert is_ctime("Tue Jul 14 08:12:53 CEST 2026")
    assert not is_ctime("Tue Jul 14 08:12:53 2026 step 1")
    assert ctime_ns("Tue Jul 14 08:12:53 UTC 2026") == 1_784_016_773_000_000_000
    assert ctime_ns("Tue Jul") is None


@pytest.mark.parametrize(
    ("raw", "unit", "name", "factor"),
    [
        ("utilization.gpu", "%", "gpu_util_pct", 1),
        ("memory.used", None, "mem_used_bytes", 2**20),
        ("memory.used", "GiB", "mem_used_bytes", 2**30),
        ("mem_used_gb", None, "mem_used_bytes", 2**30),
        ("memory_used_bytes", None, "mem_used_bytes", 1),
        ("power_mw", None, "power_w", 1e-3),
        ("clocks.sm", "MHz", "sm_clock_hz", 1e6),
        ("utilization_gpu_ratio", None, "gpu_util_pct", 100),
        ("DCGM_FI_PROF_SM_ACTIVE", None, "sm_active_pct", 100),
        ("SMACT", None, "sm_active_pct", 100),
        ("DCGM_FI_PROF_PCIE_TX_BYTES", None, "pcie_tx_bytes_per_s", 1),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", None, "energy_j", 1e-3),
        ("txpci", "MB/s", "pcie_tx_bytes_per_s", 1e6),
    ],
)
def test_counters_and_their_factors(raw: str, unit: str | None, name: str, factor: float) -> None:
    assert counter_of(raw, unit) == (name, factor)


@pytest.mark.parametrize(
    ("raw", "unit"), [("mem_used_pct", None), ("memory.used", "%"), ("loss", None), ("gpu_util", "MiB")]
)
def test_a_name_whose_unit_belies_it_is_unknown(raw: str, unit: str | None) -> None:
    assert counter_of(raw, unit) is None


def test_raw_names_are_written_as_they_are_looked_up() -> None:
    assert [raw for raw in RAW if counter_of(raw) is None or raw != raw.lower()] == []
