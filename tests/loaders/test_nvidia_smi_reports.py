"""Full reports of ``nvidia-smi``: ``-q`` as text and ``-q -x`` as XML."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import smireports
from tests.support.loading import claimed, write
from tests.support.sampled import Sampled, sampled

MIB = 2**20
DATE, LATER = "Tue Jul 14 08:12:53 2026", "Tue Jul 14 08:12:58 2026"
DATE_NS = 1_784_016_773_000_000_000


def xml(folder: Path, text: str | bytes) -> Sampled:
    read = sampled(write(folder, text, "gpu.xml"))
    assert read.format == "nvidia-smi-xml"
    return read


def test_text_reports_in_a_loop(tmp_path: Path) -> None:
    text = smireports.text(DATE, ("NVIDIA H100", 90), ("NVIDIA H100", 10)) + smireports.text(
        LATER, ("NVIDIA H100", 91), ("NVIDIA H100", 11)
    )
    read = sampled(write(tmp_path, text, "gpu.txt"))
    assert read.format == "nvidia-smi-q"
    assert (read.values("gpu_util_pct", 0), read.values("gpu_util_pct", 1)) == ([90.0, 91.0], [10.0, 11.0])
    assert read.times("gpu_util_pct", 1) == [DATE_NS, DATE_NS + 5 * 10**9]
    assert read.values("mem_used_bytes", 0) == [9000.0 * MIB, 9100.0 * MIB]
    assert read.values("power_w", 0) == [588.39, 588.39]
    assert read.params["trace.device.1.name"] == "NVIDIA H100"


def test_text_values_come_from_their_own_section(tmp_path: Path) -> None:
    read = sampled(write(tmp_path, smireports.text(DATE, ("H100", 90)), "gpu.txt"))
    found = dict(read.samples.filter(series="").select("counter", "value").iter_rows())
    assert found == {
        "pcie_gen": 5.0, "pcie_tx_bytes_per_s": 3.092e6, "pstate": 2.0, "mem_total_bytes": 81559.0 * MIB,
        "mem_used_bytes": 9000.0 * MIB, "gpu_util_pct": 90.0, "temp_c": 59.0, "power_w": 588.39, "power_limit_w": 700.0,
        "sm_clock_hz": 1.98e9, "sm_clock_max_hz": 1.985e9, "throttle_reasons": 68.0, "throttle_thermal": 1.0, "throttle_power": 1.0,
    }  # fmt: skip
    assert read.values("mem_used_bytes", 0, 'mig="3"') == [11.0 * MIB]
    assert read.values("process_mem_used_bytes", 0, 'pid="11320",process="memhog"') == [2566.0 * MIB]


@pytest.mark.parametrize("old", [True, False])
def test_xml_of_old_and_new_schemas_says_the_same(tmp_path: Path, old: bool) -> None:
    read = xml(tmp_path, smireports.xml(DATE, smireports.device_xml("RTX 3080", "65 %", old=old)))
    found = dict(read.samples.filter(series="").select("counter", "value").iter_rows())
    assert found == {
        "pstate": 8.0, "mem_total_bytes": 10240.0 * MIB, "mem_used_bytes": 50.0 * MIB, "gpu_util_pct": 65.0, "temp_c": 27.0,
        "power_w": 61.5, "power_limit_w": 250.0, "throttle_reasons": 33.0, "throttle_thermal": 1.0, "throttle_power": 0.0,
    }  # fmt: skip
    assert read.times("temp_c") == [DATE_NS]
    assert read.values("mem_used_bytes", 0, 'mig="4"') == [12.0 * MIB]
    assert read.values("process_mem_used_bytes", 0, 'pid="77",process="python"') == [40.0 * MIB]
    assert read.params == {"trace.device.0.name": "RTX 3080", "trace.driver_version": "535.54.03"}


def test_many_xml_documents_one_cut_short(tmp_path: Path) -> None:
    one = smireports.xml(DATE, smireports.device_xml("A", "1 %"), smireports.device_xml("B", "2 %"))
    cut = one[: one.rindex("<temperature>")]
    two = smireports.xml(LATER, smireports.device_xml("A", "3 %"), smireports.device_xml("B", "N/A"))
    read = xml(tmp_path, one + cut + two)
    assert (read.values("gpu_util_pct", 0), read.values("gpu_util_pct", 1)) == ([1.0, 1.0, 3.0], [2.0, 2.0])
    assert (read.values("temp_c", 1), read.damaged) == ([27.0, 27.0], 1)


@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">',
        '<!ENTITY secret SYSTEM "file:///etc/hostname">',
        '<!ENTITY % remote SYSTEM "http://127.0.0.1:9/x.dtd"> %remote;',
    ],
)
def test_no_entity_is_expanded(tmp_path: Path, declaration: str) -> None:
    text = smireports.xml(DATE, smireports.device_xml("&b;&secret;", "1 %"))
    text = text.replace('SYSTEM "nvsmi_device_v12.dtd"', f"[{declaration}]")
    read = xml(tmp_path, text)
    assert (len(read.samples), read.params, read.damaged) == (0, {}, 1)


def test_depth_and_length_are_bounded(tmp_path: Path) -> None:
    deep = smireports.xml(DATE, smireports.device_xml("A", "1 %")).replace(
        "<temperature>", "<x>" * 100 + "<temperature>"
    )
    long = smireports.xml(DATE, smireports.device_xml("A" * 100_000, "2 %"))
    read = xml(tmp_path, deep + long)
    assert (read.values("gpu_util_pct"), read.damaged) == ([1.0, 2.0], 1)
    assert len(read.params["trace.device.0.name"]) < 5000


def test_xml_in_utf16(tmp_path: Path) -> None:
    read = xml(tmp_path, smireports.xml(DATE, smireports.device_xml("A", "7 %")).encode("utf-16"))
    assert read.values("gpu_util_pct") == [7.0]


def test_other_xml_is_not_taken(tmp_path: Path) -> None:
    assert claimed(write(tmp_path, "<?xml version='1.0'?><log><gpu>1</gpu></log>", "gpu.xml")) is None
