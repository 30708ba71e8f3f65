"""``nvidia-smi dmon`` and ``pmon``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.loading import claimed, write
from tests.support.sampled import sampled

SECOND = 10**9
DMON = "# gpu    pwr  gtemp  mtemp     sm    mem    enc   mclk   pclk \n# Idx      W      C      C      %      %      %    MHz    MHz \n"
PMON = "# gpu         pid   type     sm    mem    enc    command \n# Idx           #    C/G      %      %      %    name \n"


def test_columns_by_name_and_unit(tmp_path: Path) -> None:
    read = sampled(
        write(tmp_path, DMON + "    0    631     63      -    100     10      0   2619   1980 \n", "dmon.txt")
    )
    assert read.format == "nvidia-smi-dmon"
    expected = {
        "power_w": 631.0,
        "temp_c": 63.0,
        "gpu_util_pct": 100.0,
        "mem_util_pct": 10.0,
        "enc_util_pct": 0.0,
    }
    expected |= {"mem_clock_hz": 2.619e9, "sm_clock_hz": 1.98e9}
    assert dict(read.samples.select("counter", "value").iter_rows()) == expected
    assert read.said("no time is recorded (-o DT writes it)")


def test_b52_headers_come_again_and_a_missing_sensor_stays_missing(tmp_path: Path) -> None:
    """B52: a dash for a missing sensor, and both header lines in the middle of the rows."""
    head = "# gpu   pwr gtemp mtemp    sm   mem\n# Idx     W     C     C     %     %\n"
    lines = [f"    0   {111 - i}    60     -    {25 + i}     7\n" for i in range(8)]
    read = sampled(write(tmp_path, head + "".join(lines[:4]) + head + "".join(lines[4:]), "dmon.txt"))
    assert read.values("gpu_util_pct") == [25.0, 26.0, 27.0, 28.0, 29.0, 30.0, 31.0, 32.0]
    assert "mem_temp_c" not in read.counters()
    assert read.damaged == 0


def test_dates_in_front(tmp_path: Path) -> None:
    text = "#Date Time gpu pwr sm fb rxpci pviol tviol\n#YYYYMMDD HH:MM:SS Idx W % MB MB/s % bool\n"
    text += " 20260529 09:51:25 0 15 7 2 3 0 0\n 20260529 09:51:25 1 5 - 2 0 0 1\n"
    read = sampled(write(tmp_path, text, "dmon.log"))
    assert read.times("power_w", 1) == [1_780_048_285 * SECOND]
    assert (read.values("mem_used_bytes", 0), read.values("pcie_rx_bytes_per_s", 0)) == ([2.0 * 2**20], [3e6])
    assert (read.values("throttle_thermal", 1), read.values("gpu_util_pct", 1)) == ([1.0], [])
    assert read.said("without a zone")


def test_the_time_of_day_alone_counts_from_a_midnight(tmp_path: Path) -> None:
    text = (
        "#Time        gpu    pwr\n#HH:MM:SS    Idx      W\n 23:59:59      0     15\n 00:00:01      0     16\n"
    )
    read = sampled(write(tmp_path, text, "dmon.log"))
    assert read.times("power_w") == [86_399 * SECOND, 86_401 * SECOND]
    assert read.said("only the time of day")


def test_commas_and_no_units(tmp_path: Path) -> None:
    read = sampled(write(tmp_path, "#gpu, pwr, gtemp, sm\n0, 15, 40, 7\n1, 16, -, 8\n", "dmon.csv"))
    assert (read.values("power_w", 1), read.values("gpu_util_pct", 1), read.values("temp_c", 1)) == (
        [16.0],
        [8.0],
        [],
    )


def test_processes_and_how_many_there_were(tmp_path: Path) -> None:
    one = "    0      11327     C      -      -      -    memhog         \n    0      11345     C     99     10      -    gpu_burn       \n"
    two = "    0      11345     C     98     11      -    NVIDIA Share.exe\n    1          -     -      -      -      -    -              \n"
    read = sampled(write(tmp_path, PMON + one + PMON + two, "load.txt"))
    assert read.format == "nvidia-smi-pmon"
    assert read.values("process_gpu_util_pct", 0, 'pid="11345",process="gpu_burn"') == [99.0]
    assert read.values("process_mem_util_pct", 0, 'pid="11345",process="NVIDIA Share.exe"') == [11.0]
    assert (read.values("processes", 0), read.values("processes", 1)) == ([2.0, 1.0], [0.0])


def test_processes_with_dates(tmp_path: Path) -> None:
    text = "#Date Time gpu pid type sm mem command\n#YYYYMMDD HH:MM:SS Idx # C/G % % name\n"
    text += "20260101 00:01:42 0 - - - - -\n20260101 00:01:43 0 9876 C 5 4 [Not Found]\n"
    read = sampled(write(tmp_path, text, "pmon.log"))
    assert read.values("process_gpu_util_pct", 0, 'pid="9876"') == [5.0]
    assert (read.values("processes"), read.times("processes")) == (
        [0.0, 1.0],
        [1_767_225_702 * SECOND, 1_767_225_703 * SECOND],
    )


def test_torn_rows_are_counted(tmp_path: Path) -> None:
    text = (
        DMON
        + "    0    631     63      -    100     10      0   2619   1980 \n    0    631     6\n\0\0\0\n  x y\n"
    )
    read = sampled(write(tmp_path, text, "dmon.txt"))
    assert (read.values("power_w"), read.damaged, read.said("lines 4, 6")) == ([631.0], 2, True)


@pytest.mark.parametrize(
    "text",
    [
        "# pmon state dump\n# sink  volume  state\n  0  65536  RUNNING\n  1  32768  IDLE\n",
        "# pid type command\n 12 C python\n",
        "# gpu settings\nbatch 8\n",
    ],
)
def test_other_dumps_of_that_name_are_not_taken(tmp_path: Path, text: str) -> None:
    taken = claimed(write(tmp_path, text, "pmon.log"))
    assert taken not in ("nvidia-smi-pmon", "nvidia-smi-dmon")
