"""NVIDIA DCGM: the table of ``dcgmi dmon`` and the CSV of programs on its C interface."""

from __future__ import annotations

from pathlib import Path

from tests.support.loading import write
from tests.support.sampled import sampled

MIB = 2**20
T_US = 1_718_783_836_935_856


def test_the_printed_table(tmp_path: Path) -> None:
    head = (
        "#Entity         GPUTL             FBUSD             SMACT             TOTEC             POWER\nID\n"
    )
    text = (
        head + "GPU 0           98                24576             0.905             2500000000        N/A\n"
    )
    text += "GPU 1           0                 500               0.000             4000              60.5\n"
    text += (
        "GPU-I 5         N/A               10                0.250             N/A               N/A\n" + head
    )
    text += "GPU 0           97                24577             0.900             2500700000        700.1\nGPU 1    3\n"
    read = sampled(write(tmp_path, text, "dcgm.log"))
    assert read.format == "dcgm"
    assert (read.values("gpu_util_pct", 0), read.values("gpu_util_pct", 1)) == ([98.0, 97.0], [0.0])
    assert read.values("mem_used_bytes", 0) == [24576.0 * MIB, 24577.0 * MIB]
    assert read.values("sm_active_pct", 0) == [90.5, 90.0]
    assert read.values("energy_j", 0) == [2.5e6, 2_500_700.0]
    assert read.values("power_w", 0) == [700.1]
    assert read.values("sm_active_pct", None, 'gpu_i="5"') == [25.0]
    assert (read.damaged, read.said("line 9")) == (1, True)


def test_long_csv_is_not_in_order_of_time(tmp_path: Path) -> None:
    text = "GPUId,TimeStampUs,Field,Values\n"
    text += f"0,{T_US + 20},power_usage_instant,71.20\n0,{T_US + 40},power_usage_instant,70.49\n"
    text += f"0,{T_US},current_clock_throttle_reasons,1\n1,{T_US + 30},current_clock_throttle_reasons,4\n"
    text += (
        f"1,{T_US + 30},DCGM_FI_PROF_DRAM_ACTIVE,0.5\n1,{T_US + 30},DCGM_FI_DEV_GPU_UTIL,2147483632\n0,,x,3\n"
    )
    read = sampled(write(tmp_path, text, "dmon.csv"))
    assert read.format == "dcgm"
    assert (read.values("power_w"), read.times("power_w")) == (
        [71.2, 70.49],
        [(T_US + 20) * 1000, (T_US + 40) * 1000],
    )
    assert (read.values("throttle_reasons", 1), read.values("throttle_power", 1)) == ([4.0], [1.0])
    assert read.values("throttle_power", 0) == [0.0]
    assert read.values("dram_active_pct", 1) == [50.0]
    assert "gpu_util_pct" not in read.counters(), "blank is not recorded"
    assert read.damaged == 1


def test_wide_csv(tmp_path: Path) -> None:
    text = f"GPUId,TimeStampUs,Watts\n0,{T_US},71.12\n1,{T_US + 7},70.5\n"
    read = sampled(write(tmp_path, text, "result.csv"))
    assert (read.values("power_w", 0), read.values("power_w", 1)) == ([71.12], [70.5])
    assert read.times("power_w", 1) == [(T_US + 7) * 1000]
