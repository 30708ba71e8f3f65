"""``rocm-smi`` and ``amd-smi``: JSON, CSV and printed tables."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.loading import claimed, load_claimed, write
from tests.support.sampled import sampled

MB = 2**20
CARD = {
    "Temperature (Sensor edge) (C)": "45.0",
    "Temperature (Sensor junction) (C)": "47.0",
    "Temperature (Sensor memory) (C)": "46.0",
    "mclk clock speed:": "(1200Mhz)",
    "sclk clock speed:": "(300Mhz)",
    "Average Graphics Package Power (W)": "36.0",
    "Max Graphics Package Power (W)": "290.0",
    "0": "16.0GT/s x16 *",
    "GPU use (%)": "7",
    "GPU Memory Allocated (VRAM%)": "12",
    "GPU Memory Read/Write Activity (%)": "3",
    "Memory Activity": "N/A",
    "VRAM Total Memory (B)": "34342961152",
    "VRAM Total Used Memory (B)": "6750208",
    "Card Series": "Instinct MI100",
    "Serial Number": "12345",
}


def test_rocm_json(tmp_path: Path) -> None:
    document = {"card0": CARD, "card1": {**CARD, "GPU use (%)": "N/A"}, "system": {"Driver version": "6.3.6"}}
    read = sampled(write(tmp_path, json.dumps(document, indent=1), "rocm.json"))
    assert read.format == "rocm-smi"
    found = dict(read.samples.filter(device=0).select("counter", "value").iter_rows())
    assert found == {
        "temp_c": 45.0, "temp_hotspot_c": 47.0, "mem_temp_c": 46.0, "mem_clock_hz": 1.2e9, "sm_clock_hz": 3e8,
        "power_w": 36.0, "power_limit_w": 290.0, "gpu_util_pct": 7.0, "mem_used_pct": 12.0, "mem_util_pct": 3.0,
        "mem_total_bytes": 34342961152.0, "mem_used_bytes": 6750208.0,
    }  # fmt: skip
    assert read.values("gpu_util_pct", 1) == []
    assert read.params["trace.device.1.name"] == "Instinct MI100"
    assert read.params["trace.driver_version"] == "6.3.6"


def test_rocm_json_in_a_loop_one_document_cut_short(tmp_path: Path) -> None:
    one = json.dumps({"card0": {"GPU use (%)": "1"}})
    two = json.dumps({"card0": {"GPU use (%)": "2"}})
    read = sampled(write(tmp_path, f"{one}\n{one[:20]}\n{two}\n", "rocm.json"))
    assert (read.values("gpu_util_pct"), read.damaged) == ([1.0, 2.0], 1)


def test_rocm_csv_of_several_tables(tmp_path: Path) -> None:
    text = "device,GPU use (%)\ncard0,42\ncard1,17\n\ndevice,Average Graphics Package Power (W)\ncard0,210.0\ncard1,198.5\n"
    read = sampled(write(tmp_path, text, "rocm.csv"))
    assert read.format == "rocm-smi"
    assert (read.values("gpu_util_pct", 0), read.values("gpu_util_pct", 1)) == ([42.0], [17.0])
    assert (read.values("power_w", 0), read.values("power_w", 1)) == ([210.0], [198.5])


def test_rocm_printed_tables_of_three_versions(tmp_path: Path) -> None:
    title = "======================= ROCm System Management Interface =======================\n"
    title += "================================= Concise Info =================================\n"
    old = "GPU  Temp (DieEdge)  AvgPwr  SCLK    MCLK     Fan  Perf  PwrCap  VRAM%  GPU%  \n"
    old += "0    39.0c           102.0W  800Mhz  1600Mhz  0%   auto  560.0W    5%   31%   \n1    44.0c           N/A     800Mhz  1600Mhz  0%   auto  0.0W      0%   0%    \n"
    new = "Device  Node  IDs              Temp    Power     Partitions      SCLK    MCLK    Fan  Perf  PwrCap  VRAM%  GPU%  \n"
    new += "              (DID,     GUID)  (Edge)  (Socket)  (Mem, Compute)                                                  \n"
    new += "0       1     0x740f,   52509  35.0°C  133.0W    NPS1, SPX, 0    131Mhz  900Mhz  0%   auto  750.0W  2%     4%    \n"
    read = sampled(write(tmp_path, "Tue Jul 14 08:12:53 2026\n" + title + old + title + new, "rocm.log"))
    assert read.format == "rocm-smi"
    assert (read.values("gpu_util_pct", 0), read.values("gpu_util_pct", 1)) == ([31.0, 4.0], [0.0])
    assert (read.values("power_w", 0), read.values("power_w", 1)) == ([102.0, 133.0], [])
    assert (read.values("temp_c", 0), read.values("mem_used_pct", 0)) == ([39.0, 35.0], [5.0, 2.0])
    assert read.values("sm_clock_hz", 0) == [8e8, 1.31e8]
    assert read.times("temp_c", 0) == [1_784_016_773_000_000_000] * 2


def test_amd_json(tmp_path: Path) -> None:
    gpu = {
        "gpu": 1,
        "usage": {
            "gfx_activity": {"value": 40, "unit": "%"},
            "umc_activity": {"value": 5, "unit": "%"},
            "vcn_activity": ["N/A"],
        },
        "power": {"socket_power": {"value": 120, "unit": "W"}, "power_management": "ENABLED"},
        "clock": {
            "gfx_0": {"clk": {"value": 1400, "unit": "MHz"}, "max_clk": {"value": 2100, "unit": "MHz"}}
        },
        "temperature": {
            "edge": "N/A",
            "hotspot": {"value": 36, "unit": "C"},
            "mem": {"value": 30, "unit": "C"},
        },
        "mem_usage": {
            "total_vram": {"value": 294896, "unit": "MB"},
            "used_vram": {"value": 283, "unit": "MB"},
        },
    }
    for document in ({"gpu_data": [gpu]}, [gpu]):
        read = sampled(write(tmp_path, json.dumps(document), "amd.json"))
        assert read.format == "amd-smi"
        found = dict(read.samples.filter(device=1).select("counter", "value").iter_rows())
        assert found == {
            "gpu_util_pct": 40.0, "mem_util_pct": 5.0, "power_w": 120.0, "sm_clock_hz": 1.4e9, "temp_hotspot_c": 36.0,
            "mem_temp_c": 30.0, "mem_total_bytes": 294896.0 * MB, "mem_used_bytes": 283.0 * MB,
        }  # fmt: skip


def test_amd_csv_of_watch(tmp_path: Path) -> None:
    text = (
        "timestamp,gpu,gfx_activity,umc_activity,vcn_activity,socket_power,gfx_0_clk,mem_0_clk,edge,hotspot\n"
    )
    text += "1772939616,0,95,80,\"['N/A', 'N/A']\",350,1980,901,N/A,72\n1772939616,1,88,75,\"['N/A', 'N/A']\",300,1950,901,36,68\n"
    read = sampled(write(tmp_path, text, "amd.csv"))
    assert read.format == "amd-smi"
    assert (read.values("gpu_util_pct", 0), read.values("power_w", 1)) == ([95.0], [300.0])
    assert (read.values("temp_c", 0), read.values("temp_hotspot_c", 0)) == ([], [72.0])
    assert read.times("power_w", 1) == [1_772_939_616_000_000_000]


def test_amd_monitor_table(tmp_path: Path) -> None:
    text = "GPU  POWER  GPU_TEMP  MEM_TEMP  GFX_UTIL  GFX_CLOCK  VRAM_USED  VRAM_TOTAL\n"
    text += "  0   11 W     43 °C     58 °C      84 %   1814 MHz     227 MB    25476 MB\n  1  N/A\n"
    read = sampled(write(tmp_path, text, "monitor.txt"))
    assert read.format == "amd-smi"
    assert (read.values("power_w"), read.values("temp_c"), read.values("gpu_util_pct")) == (
        [11.0],
        [43.0],
        [84.0],
    )
    assert (read.values("mem_used_bytes"), read.damaged) == ([227.0 * MB], 1)


def test_nothing_whole_is_unreadable_and_other_json_not_taken(tmp_path: Path) -> None:
    from afterrun.loaders.collect import collect

    write(tmp_path, '{"card0": {"GPU use (%)": "1"', "rocm.json")
    (source,) = collect([tmp_path]).tables.sources.iter_rows(named=True)
    assert (source["status"], "no whole JSON document" in source["note"]) == ("unreadable", True)
    assert claimed(write(tmp_path, '{"card": {"use": 1}}', "x.json")) != "rocm-smi"
    assert load_claimed(write(tmp_path, '{"step": 1, "gpu": 0}\n' * 5, "x.jsonl"))[0] != "amd-smi"
