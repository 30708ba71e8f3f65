"""Samples of ``nvidia-smi --format=csv`` and of loggers like it, in every shape they come in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.loading import claimed, write
from tests.support.sampled import BEGIN_NS, QUERY, Sampled, drawn, query, rows, sampled, stamp

MIB = 2**20


def look(folder: Path, text: str | bytes, name: str = "gpu.csv") -> Sampled:
    return sampled(write(folder, text, name))


def test_a_query_gives_samples_by_device(tmp_path: Path) -> None:
    read = look(tmp_path, rows(query(12, 2), QUERY))
    assert read.format == "nvidia-smi-csv"
    assert read.values("gpu_util_pct", 0) == [90.0 + s % 10 for s in range(12)]
    assert read.values("gpu_util_pct", 1) == [40.0 + s % 10 for s in range(12)]
    assert read.values("mem_used_bytes", 1) == [2000.0 * MIB] * 12
    assert read.values("power_w", 0) == [100.5] * 12
    assert read.times("power_w", 0)[:2] == [BEGIN_NS, BEGIN_NS + 10**9]
    assert read.params == {"trace.device.0.name": "NVIDIA H100", "trace.device.1.name": "NVIDIA H100"}
    assert (read.damaged, read.said("without a zone")) == (0, True)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-16-le"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_encodings_and_line_ends(tmp_path: Path, encoding: str, end: str) -> None:
    read = look(tmp_path, rows(query(5), QUERY).replace("\n", end).encode(encoding))
    assert read.values("gpu_util_pct") == [90.0, 91.0, 92.0, 93.0, 94.0]


@pytest.mark.parametrize("sep", [";", "\t", ",", "|"])
def test_other_delimiters(tmp_path: Path, sep: str) -> None:
    read = look(tmp_path, rows(query(5), QUERY, sep=sep))
    assert read.values("gpu_util_pct") == [90.0, 91.0, 92.0, 93.0, 94.0]


def test_a_decimal_comma_beside_semicolons(tmp_path: Path) -> None:
    read = look(
        tmp_path,
        rows([(stamp(0), "33,09 W"), (stamp(1), "34,5 W")], ("timestamp", "power.draw [W]"), sep=";"),
    )
    assert read.values("power_w") == [33.09, 34.5]


def test_units_in_the_header_in_the_cells_or_nowhere(tmp_path: Path) -> None:
    header = ("timestamp", "utilization.gpu [%]", "memory.used [MiB]", "clocks.current.sm [MHz]")
    bare = ("timestamp", "utilization.gpu", "memory.used", "clocks.current.sm")
    for labels, cells in (
        (header, ("7 %", "5 MiB", "1980 MHz")),
        (header, ("7", "5", "1980")),
        (bare, ("7 %", "5 MiB", "1980 MHz")),
        (bare, ("7", "5", "1980")),
    ):
        read = look(tmp_path, rows([(stamp(0), *cells)], labels))
        assert (read.values("gpu_util_pct"), read.values("mem_used_bytes")) == ([7.0], [5.0 * MIB])
        assert read.values("sm_clock_hz") == [1.98e9]


def test_missing_is_never_zero(tmp_path: Path) -> None:
    missing = ("[N/A]", "N/A", "[Not Supported]", "ERR!", "[Unknown Error]", "")
    cells = [(stamp(s), m, f"{s} MiB") for s, m in enumerate(missing)]
    read = look(tmp_path, rows(cells, ("timestamp", "utilization.gpu [%]", "memory.used [MiB]")))
    assert "gpu_util_pct" not in read.counters()
    assert read.values("mem_used_bytes") == [s * MIB for s in range(6)]
    assert read.damaged == 0


def test_a_header_before_every_row_and_after_restarts(tmp_path: Path) -> None:
    header = ", ".join(QUERY) + "\n"
    lines = rows(query(4)).splitlines(keepends=True)
    read = look(tmp_path, "".join(header + line for line in lines))
    assert read.values("gpu_util_pct") == [90.0, 91.0, 92.0, 93.0]
    assert read.said("header comes again: lines 3, 5, 7")


def test_a_header_that_changes(tmp_path: Path) -> None:
    second = rows([(stamp(9), "50 %")], ("timestamp", "utilization.gpu [%]"))
    read = look(tmp_path, rows(query(2), QUERY) + second)
    assert read.values("power_w") == [100.5, 100.5]
    assert sorted(read.samples.filter(counter="gpu_util_pct")["value"].to_list()) == [50.0, 90.0, 91.0]


def test_holes_of_zeros_and_torn_rows_cost_their_lines(tmp_path: Path) -> None:
    lines = rows(query(6), QUERY).splitlines(keepends=True)
    torn = lines[3][:30] + "\n"
    hole = "\0" * 500
    text = "".join([*lines[:3], torn, hole, lines[4], lines[5][:-12], hole, "\n", lines[6]])
    read = look(tmp_path, text)
    assert read.values("gpu_util_pct") == [90.0, 91.0, 93.0, 95.0]
    assert (read.damaged, read.said("torn rows left out: lines 4, 6")) == (2, True)
    assert read.said("stretches of zero bytes")


def test_hosts_appended_to_one_file(tmp_path: Path) -> None:
    header = ("index", "name", "utilization.gpu [%]")
    first = [(0, "Tesla V100-PCIE-32GB", f"{s} %") for s in range(20)]
    second = [(0, "Tesla V100-SXM2-32GB", f"{50 + s} %") for s in range(5)]
    torn = [(0, "Tesla Vsla V100-PCIE-32GB", "73 %")]
    read = look(tmp_path, rows([*first[:10], *second, *torn, *first[10:]], header))
    assert read.values("gpu_util_pct") == [float(s) for s in range(20)]
    assert read.values("gpu_util_pct", series='name="Tesla V100-SXM2-32GB"') == [50.0, 51.0, 52.0, 53.0, 54.0]
    assert len(read.samples) == 25
    assert (read.damaged, read.said("torn or missing device left out: line 17")) == (1, True)
    assert read.params["trace.device.0.name"] == "Tesla V100-PCIE-32GB"
    assert read.said("no time is recorded")


def test_uuids_number_devices_in_order_of_appearance(tmp_path: Path) -> None:
    cells = [(stamp(s), f"GPU-{'ba'[d]}", f"{10 * d} %") for s in range(3) for d in range(2)]
    read = look(tmp_path, rows(cells, ("timestamp", "uuid", "utilization.gpu [%]")))
    assert (read.values("gpu_util_pct", 0), read.values("gpu_util_pct", 1)) == ([0.0] * 3, [10.0] * 3)


@pytest.mark.parametrize("jitter", [0.0, 0.001])
def test_two_devices_in_turns_without_an_index(tmp_path: Path, jitter: float) -> None:
    cells = [
        (stamp(s - 0.507 + d * jitter), 5 + 16375 * (1 - d), 95 * (1 - d))
        for s in range(10)
        for d in range(2)
    ]
    read = look(tmp_path, rows(cells, ("timestamp", "memory.used", "utilization.gpu")))
    assert (read.values("gpu_util_pct", 0), read.values("gpu_util_pct", 1)) == ([95.0] * 10, [0.0] * 10)
    assert read.values("mem_used_bytes", 1) == [5.0 * MIB] * 10
    assert read.said("counted off as devices")


def test_two_samplings_a_second_in_whole_seconds_are_one_device(tmp_path: Path) -> None:
    cells = [(1_700_000_000 + s // 2, 40 + s % 7, 1000 + s % 3) for s in range(40)]
    read = look(tmp_path, rows(cells, ("timestamp", "gpu_util", "gpu_mem_used"), sep=","))
    assert read.devices() == {0}
    assert read.values("gpu_util_pct") == [40.0 + s % 7 for s in range(40)]


def test_fast_sampling_is_one_device(tmp_path: Path) -> None:
    cells = [(stamp(s * 0.01), f"{s % 50} W") for s in range(100)]
    read = look(tmp_path, rows(cells, ("timestamp", "power.draw [W]")))
    assert (read.devices(), len(read.samples)) == ({0}, 100)


def test_the_answer_for_several_devices_in_one_cell(tmp_path: Path) -> None:
    text = 'timestamp,gpu_util,mem_used\n1700000000,"95\n0","1000\n5"\n1700000001,"96\n1","1000\n6"\n'
    read = look(tmp_path, text)
    assert (read.values("gpu_util_pct", 0), read.values("gpu_util_pct", 1)) == ([95.0, 96.0], [0.0, 1.0])
    assert read.values("mem_used_bytes", 1) == [5.0 * MIB, 6.0 * MIB]


def test_a_line_break_in_one_cell_alone(tmp_path: Path) -> None:
    text = 'timestamp,gpu_util,power_draw\n1700000000,95,"26.11\n0"\n1700000001,96,27.5\n'
    read = look(tmp_path, text)
    assert (read.values("power_w"), read.values("gpu_util_pct")) == ([26.11, 27.5], [95.0, 96.0])


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("1746556382.5", 1_746_556_382_500_000_000),
        ("1746556382500", 1_746_556_382_500_000_000),
        ("0.5", 500_000_000),
    ],
)
def test_seconds_since_1970_or_since_the_start(tmp_path: Path, first: str, expected: int) -> None:
    read = look(tmp_path, f"time,gpu_util,gpu_temp\n{first},50,60\n")
    assert read.times("gpu_util_pct") == [expected]
    assert read.said("start of the sampling") is (first == "0.5")


def test_without_any_time_rows_stay_in_order(tmp_path: Path) -> None:
    read = look(tmp_path, rows([("3 %",), ("1 %",), ("2 %",)], ("utilization.gpu [%]",)))
    assert (read.values("gpu_util_pct"), read.times("gpu_util_pct")) == ([3.0, 1.0, 2.0], [None] * 3)


def test_rows_without_a_readable_time_are_given_up(tmp_path: Path) -> None:
    text = rows(query(4), QUERY).replace(stamp(2), "6/01/03 15:36:5")
    read = look(tmp_path, text)
    assert (read.values("gpu_util_pct"), read.damaged) == ([90.0, 91.0, 93.0], 1)
    assert read.said("without a readable time left out: line 4")


def test_without_a_header_units_tell_the_columns(tmp_path: Path) -> None:
    cells = [
        (stamp(s), "NVIDIA A100", 0, f"{s} %", f"{s // 2} %", f"{100 + s} MiB", "40960 MiB", f"{40860 - s} MiB", f"{60 + s}.5 W", "400.00 W", "P0")
        for s in range(5)
    ]  # fmt: skip
    read = look(tmp_path, rows(cells))
    assert read.said("no header")
    assert read.values("gpu_util_pct") == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert read.values("mem_util_pct") == [0.0, 0.0, 1.0, 1.0, 2.0]
    assert read.values("mem_used_bytes") == [(100.0 + s) * MIB for s in range(5)]
    assert read.values("mem_total_bytes") == [40960.0 * MIB] * 5
    assert read.values("power_limit_w") == [400.0] * 5
    assert read.values("power_w") == [60.5, 61.5, 62.5, 63.5, 64.5]


def test_without_header_and_units_numbers_keep_their_column(tmp_path: Path) -> None:
    cells = [(stamp(s), "NVIDIA A100", 40 + s, 90 - s) for s in range(5)]
    read = look(tmp_path, rows(cells))
    assert read.counters() == {"column 3", "column 4"}
    assert read.values("column 3") == [40.0, 41.0, 42.0, 43.0, 44.0]


def test_a_drawn_table_before_rows(tmp_path: Path) -> None:
    table = drawn([("Tesla V100", 23, 0, 0)], "Sun Nov 21 14:02:20 2021")
    read = look(tmp_path, table + rows(query(3), QUERY))
    assert read.format == "nvidia-smi-csv"
    assert read.values("temp_c") == [23.0]
    assert read.values("gpu_util_pct") == [0.0, 90.0, 91.0, 92.0]
    assert read.params["trace.driver_version"] == "550.54.15"


def test_reasons_as_masks_and_as_columns(tmp_path: Path) -> None:
    head = ("timestamp", "clocks_event_reasons.active", "clocks.sm [MHz]")
    read = look(
        tmp_path,
        rows([(stamp(0), "0x0000000000000004", "1410"), (stamp(1), "0x0000000000000040", "900")], head),
    )
    assert read.values("throttle_reasons") == [4.0, 64.0]
    assert (read.values("throttle_power"), read.values("throttle_thermal")) == ([1.0, 0.0], [0.0, 1.0])
    head = (
        "timestamp",
        "clocks_throttle_reasons.sw_power_cap",
        "clocks_throttle_reasons.hw_thermal_slowdown",
        "pstate",
    )
    cells = [
        (stamp(0), "Active", "Not Active", "P2"),
        (stamp(1), "Not Active", "Active", "P0"),
        (stamp(2), "[N/A]", "[N/A]", "P8"),
    ]
    read = look(tmp_path, rows(cells, head))
    assert read.values("throttle_reasons") == [4.0, 64.0]
    assert read.values("throttle_thermal") == [0.0, 1.0]
    assert read.values("pstate") == [2.0, 0.0, 8.0]


def test_one_counter_has_one_column(tmp_path: Path) -> None:
    head = ("timestamp", "power.draw.average [W]", "power.draw [W]", "power.draw.instant [W]")
    read = look(tmp_path, rows([(stamp(0), "1 W", "2 W", "3 W")], head))
    assert read.values("power_w") == [2.0]
    assert read.values("power.draw.average [W]") == [1.0]


def test_memory_of_processes(tmp_path: Path) -> None:
    head = ("timestamp", "gpu_uuid", "pid", "process_name", "used_gpu_memory [MiB]")
    cells = [
        (stamp(0), "GPU-a", 11, "/home/jo/venv/bin/python", "100 MiB"),
        (stamp(0), "GPU-b", 12, r"C:\tools\my app.exe", "7 MiB"),
    ]
    read = look(tmp_path, rows(cells, head))
    assert read.counters() == {"process_mem_used_bytes"}
    assert read.values("process_mem_used_bytes", 0, 'pid="11",process="python"') == [100.0 * MIB]
    assert read.values("process_mem_used_bytes", 1, 'pid="12",process="my app.exe"') == [7.0 * MIB]
    assert not any("jo" in s for s in read.samples["series"])


def test_loggers_of_ones_own(tmp_path: Path) -> None:
    head = (
        "timestamp",
        "gpu0_util",
        "gpu0_mem_used_gb",
        "gpu1_util",
        "gpu1_mem_used_gb",
        "cpu_percent",
        "ram_used",
    )
    read = look(tmp_path, rows([("2024-05-01T10:00:00", 50, 1.5, 60, 2, 12.5, 31)], head, sep=","))
    assert (read.values("gpu_util_pct", 0), read.values("gpu_util_pct", 1)) == ([50.0], [60.0])
    assert read.values("mem_used_bytes", 0) == [1.5 * 2**30]
    assert (read.values("cpu_pct", None), read.values("ram_used", None)) == ([12.5], [31.0])


def test_memory_that_can_only_be_bytes(tmp_path: Path) -> None:
    read = look(tmp_path, "timestamp,gpu_util,gpu_memory_used\n1700000000,5,25769803776\n")
    assert read.values("mem_used_bytes") == [24.0 * 2**30]


def test_gpu_z(tmp_path: Path) -> None:
    text = "Date , GPU Clock [MHz] , GPU Temperature [°C] , Memory Used [MB] , GPU Load [%] , Board Power Draw [W] , PerfCap Reason [] ,\n"
    text += "2021-03-10 10:50:32 , 1410.0 , 37.0 , 395 , 1 , 21.3 , 16 ,\n"
    read = look(tmp_path, text, "GPU-Z Sensor Log.txt")
    assert (read.values("gpu_util_pct"), read.values("sm_clock_hz"), read.values("temp_c")) == (
        [1.0],
        [1.41e9],
        [37.0],
    )
    assert (read.values("power_w"), read.damaged) == ([21.3], 0)


def test_messages_of_the_tool_are_marks(tmp_path: Path) -> None:
    lost = "Unable to determine the device handle for GPU 0000:0A:00.0: GPU is lost.  Reboot the system to recover this GPU"
    lines = rows(query(3), QUERY).splitlines(keepends=True)
    read = look(tmp_path, "".join([*lines[:2], lost + "\n", *lines[2:]]))
    assert (read.marks["kind"].to_list(), read.marks["line"].to_list()) == (["diagnostic"], [3])
    assert (read.values("gpu_util_pct"), read.damaged) == ([90.0, 91.0, 92.0], 0)


@pytest.mark.parametrize(
    "text",
    [
        "step,loss,gpu_util\n1,2.5,90\n2,2.4,91\n3,2.3,92\n",
        "epoch,utilization.gpu [%],val_loss\n1,90 %,2.5\n2,91 %,2.4\n",
        "timestamp,loss,memory.used [MiB]\n1700000000,2.5,90\n1700000001,2.4,91\n",
        "iteration,gpu_mem\n1,90\n2,91\n3,92\n",
        "gpu_util,accuracy\n1,0.5\n2,0.6\n",
        "Date,Temperature [C],Humidity [%]\n2024-01-01 00:00:00,21.5 C,40 %\n2024-01-01 01:00:00,21.5 C,40 %\n",
        "time,power,temp\n1,90,30\n2,91,31\n",
        "name,price\nNVIDIA H100,30000\nNVIDIA A100,10000\n",
        "2026/01/03 15:36:53, 40 %\n2026/01/03 15:36:54, 41 %\n",
    ],
)
def test_curves_and_other_tables_stay_with_others(tmp_path: Path, text: str) -> None:
    assert claimed(write(tmp_path, text, "log.csv")) != "nvidia-smi-csv"


def test_a_blank_file_of_a_header_alone_holds_nothing(tmp_path: Path) -> None:
    read = look(tmp_path, ", ".join(QUERY) + "\n")
    assert (len(read.samples), read.damaged) == (0, 0)


def test_rows_over_many_blocks_are_all_there(tmp_path: Path) -> None:
    from afterrun.loaders.counters.smi.reader import read_smi

    path = write(tmp_path, rows(query(200, 2), QUERY))
    whole = [b.frames["samples"] for b in read_smi(path) if "samples" in b.frames]
    cut = [b.frames["samples"] for b in read_smi(path, block_bytes=100) if "samples" in b.frames]
    assert len(cut[0]) == 200 * 2 * 3
    assert cut[0].equals(whole[0])


def test_b50_two_devices_give_two_lines_a_sample(tmp_path: Path) -> None:
    """Two series, 95 % and 0 %; not one that jumps between them."""
    cells = [
        (stamp(s - 0.507), d, 16380 if d == 0 else 5, 95 if d == 0 else 0)
        for s in range(10)
        for d in range(2)
    ]
    read = look(tmp_path, rows(cells, ("timestamp", "index", "memory.used", "utilization.gpu")))
    assert (read.values("gpu_util_pct", 0), read.values("gpu_util_pct", 1)) == ([95.0] * 10, [0.0] * 10)
    assert (read.values("mem_used_bytes", 0), read.values("mem_used_bytes", 1)) == (
        [16380.0 * MIB] * 10,
        [5.0 * MIB] * 10,
    )
