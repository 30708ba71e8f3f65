"""The table that ``nvidia-smi`` draws."""

from __future__ import annotations

from pathlib import Path

from tests.support.loading import claimed, write
from tests.support.sampled import drawn, sampled

MIB = 2**20
SECOND = 10**9


def test_a_loop_with_dates(tmp_path: Path) -> None:
    text = drawn([("NVIDIA L40S", 27, 0, 0), ("NVIDIA L40S", 30, 7, 1)], "Tue Oct 29 19:00:23 2024")
    text += drawn([("NVIDIA L40S", 53, 11948, 93), ("NVIDIA L40S", 31, 7, 2)], "Tue Oct 29 19:01:23 2024")
    read = sampled(write(tmp_path, text, "gpu.log"))
    assert read.format == "nvidia-smi-table"
    assert (read.values("gpu_util_pct", 0), read.values("gpu_util_pct", 1)) == ([0.0, 93.0], [1.0, 2.0])
    assert read.values("mem_used_bytes", 0) == [0.0, 11948.0 * MIB]
    assert read.values("power_limit_w", 1) == [350.0, 350.0]
    first, second = read.times("temp_c", 0)
    assert (first, second) == (1_730_228_423 * SECOND, 1_730_228_483 * SECOND)
    assert read.params == {
        "trace.device.0.name": "NVIDIA L40S",
        "trace.device.1.name": "NVIDIA L40S",
        "trace.driver_version": "550.54.15",
        "trace.cuda_version": "12.4",
    }


def test_old_layout_windows_and_what_is_missing(tmp_path: Path) -> None:
    head = "| NVIDIA-SMI 495.44       Driver Version: 495.44       CUDA Version: 11.5     |\n"
    old = (
        "|   0  Tesla V100-PCIE...  On   | 00000000:D8:00.0 Off |                    0 |\n"
        "| N/A   23C    P0    25W / 250W |      3MiB / 32510MiB |      7%      Default |\n"
        "|   1  NVIDIA GeForce ...  WDDM | 00000000:0C:00.0 Off |                  N/A |\n"
        "| 38%   ERR!   P2    N/A / N/A  |      0MiB /  8192MiB |     N/A      Default |\n"
    )
    read = sampled(write(tmp_path, head + old, "smi.txt"))
    assert (read.values("temp_c"), read.values("gpu_util_pct"), read.values("pstate")) == (
        [23.0],
        [7.0],
        [0.0],
    )
    assert read.samples.filter(device=1)["counter"].to_list() == [
        "fan_pct",
        "mem_used_bytes",
        "mem_total_bytes",
        "pstate",
    ]
    assert read.params["trace.device.0.name"] == "Tesla V100-PCIE..."


def test_processes_by_pid_and_executable(tmp_path: Path) -> None:
    text = drawn(
        [("NVIDIA L40S", 27, 2566, 0)],
        processes=(
            "11327      C   /opt/tools/memhog --gb 2     2566MiB",
            "  2056    C+G   C:\\Windows\\System32\\dwm.exe     N/A     ",
        ),
    )
    read = sampled(write(tmp_path, text, "smi.txt"))
    assert read.values("process_mem_used_bytes", 0, 'pid="11327",process="memhog"') == [2566.0 * MIB]
    assert len(read.samples.filter(counter="process_mem_used_bytes")) == 1


def test_mig_devices_are_series_of_their_own(tmp_path: Path) -> None:
    text = drawn([("NVIDIA H100", 27, 100, 0)])
    text += "|  0    2   0   0  |           11091MiB / 40448MiB    | 60      0 |  3   0    3    0    3 |\n"
    text += "|                  |               0MiB / 24739MiB    |           |                       |\n"
    text += "|  0    3   0   1  |              17MiB / 20096MiB    | 32      0 |  2   0    2    0    2 |\n"
    read = sampled(write(tmp_path, text, "smi.txt"))
    assert read.values("mem_used_bytes", 0) == [100.0 * MIB]
    assert read.values("mem_used_bytes", 0, 'mig="0"') == [11091.0 * MIB]
    assert read.values("mem_total_bytes", 0, 'mig="1"') == [20096.0 * MIB]


def test_a_torn_table_costs_its_device(tmp_path: Path) -> None:
    whole = drawn([("A100", 40, 1, 10), ("A100", 41, 1, 20)], "Tue Oct 29 19:00:23 2024")
    cut = whole[: whole.index("| N/A   41C")]
    read = sampled(write(tmp_path, whole + cut, "smi.txt"))
    assert (read.values("gpu_util_pct", 0), read.values("gpu_util_pct", 1)) == ([10.0, 10.0], [20.0])
    assert read.damaged == 1


def test_other_drawn_tables_are_not_taken(tmp_path: Path) -> None:
    text = "+-----+-----+\n| GPU | use |\n+-----+-----+\n|   0 | 90% |\n+-----+-----+\n"
    assert claimed(write(tmp_path, text, "table.txt")) is None
