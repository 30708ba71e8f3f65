"""The vocabulary of counters: one name and unit for what every sampler calls differently.

``counter_of(raw, unit)`` gives the canonical counter and the factor that turns the raw value into its unit. Raw names
are those of ``nvidia-smi`` queries, dmon and pmon, DCGM fields, exporters and amd/rocm tools, lower-cased, with
blanks, dots and dashes as ``_``. A name that is not known stays as it is: unknown is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

KIB, MIB, GIB = 2.0**10, 2.0**20, 2.0**30


class Counter(NamedTuple):
    """A canonical counter; raw values are multiplied by ``factor``."""

    name: str
    factor: float


_RAW: Mapping[str, str] = MappingProxyType(
    {
        # share of the last sampling period in which at least one kernel ran: an upper bound of busy
        "gpu_util_pct": "utilization_gpu gpu_util gpu_utilization utilization_gpu_ratio dcgm_fi_dev_gpu_util sm gpu_use gpu_use_pct gpu_busy_percent util gpu_percent",
        # share of the period in which memory was read or written
        "mem_util_pct": "utilization_memory mem_util memory_utilization dcgm_fi_dev_mem_copy_util utilization_memory_ratio mem_copy_util memory_util",
        "enc_util_pct": "utilization_encoder enc encoder_util dcgm_fi_dev_enc_util",
        "dec_util_pct": "utilization_decoder dec decoder_util dcgm_fi_dev_dec_util",
        "jpg_util_pct": "utilization_jpeg jpg",
        "ofa_util_pct": "utilization_ofa ofa",
        "mem_used_bytes": "memory_used mem_used fb_used fb dcgm_fi_dev_fb_used memory_used_bytes vram_total_used_memory used_memory used_gpu_memory gpu_memory_used",
        "mem_free_bytes": "memory_free fb_free dcgm_fi_dev_fb_free memory_free_bytes",
        "mem_total_bytes": "memory_total fb_total dcgm_fi_dev_fb_total memory_total_bytes vram_total_memory",
        "mem_reserved_bytes": "memory_reserved fb_reserved dcgm_fi_dev_fb_reserved",
        "bar1_used_bytes": "bar1 bar1_memory_usage_used",
        "power_w": "power_draw pwr power power_usage dcgm_fi_dev_power_usage power_draw_watts power_draw_instant power_draw_average instant_power_draw average_power_draw average_graphics_package_power average_graphics_package_power_w current_socket_graphics_package_power socket_power gpu_power_draw",
        "power_limit_w": "power_limit enforced_power_limit current_power_limit max_graphics_package_power dcgm_fi_dev_power_mgmt_limit",
        "temp_c": "temperature_gpu gtemp temp gpu_temp temperature dcgm_fi_dev_gpu_temp gpu_temperature temperature_sensor_edge temperature_edge",
        "temp_hotspot_c": "temperature_sensor_junction temperature_junction temperature_hotspot",
        "mem_temp_c": "temperature_memory mtemp memory_temp dcgm_fi_dev_memory_temp temperature_sensor_memory",
        "sm_clock_hz": "clocks_sm clocks_current_sm sm_clock pclk dcgm_fi_dev_sm_clock sclk_clock_speed",
        "graphics_clock_hz": "clocks_gr clocks_current_graphics graphics_clock",
        "mem_clock_hz": "clocks_mem clocks_current_memory mem_clock memory_clock mclk dcgm_fi_dev_mem_clock mclk_clock_speed",
        "sm_clock_max_hz": "clocks_max_sm",
        "fan_pct": "fan_speed fan fan_speed_pct",
        "pcie_tx_bytes_per_s": "txpci pcie_tx tx_util dcgm_fi_prof_pcie_tx_bytes",
        "pcie_rx_bytes_per_s": "rxpci pcie_rx rx_util dcgm_fi_prof_pcie_rx_bytes",
        "pcie_gen": "pcie_link_gen_current",
        "pcie_width": "pcie_link_width_current",
        "sm_active_pct": "dcgm_fi_prof_sm_active sm_active smact",
        "sm_occupancy_pct": "dcgm_fi_prof_sm_occupancy sm_occupancy smocc",
        "gr_active_pct": "dcgm_fi_prof_gr_engine_active gr_engine_active gract",
        "tensor_active_pct": "dcgm_fi_prof_pipe_tensor_active tensor_active tenso",
        "dram_active_pct": "dcgm_fi_prof_dram_active dram_active drama",
        "fp64_active_pct": "dcgm_fi_prof_pipe_fp64_active fp64a",
        "fp32_active_pct": "dcgm_fi_prof_pipe_fp32_active fp32a",
        "fp16_active_pct": "dcgm_fi_prof_pipe_fp16_active fp16a",
        "energy_j": "dcgm_fi_dev_total_energy_consumption total_energy_consumption",
        "xid": "dcgm_fi_dev_xid_errors xid_errors",
        "ecc_sbe": "ecc_errors_corrected_volatile_total sbecc",
        "ecc_dbe": "ecc_errors_uncorrected_volatile_total dbecc",
        "cpu_pct": "cpu_percent cpu_util cpu_utilization cpu_usage",
        "iowait_pct": "iowait cpu_iowait usage_iowait",
        "rss_bytes": "rss process_resident_memory_bytes resident_memory",
    }
)

RAW: Mapping[str, str] = MappingProxyType({raw: name for name, raws in _RAW.items() for raw in raws.split()})
"""Raw name, normalised -> canonical counter."""

_SCALE: Mapping[str, float] = MappingProxyType(
    {"b": 1, "byte": 1, "bytes": 1, "kb": KIB, "kib": KIB, "mb": MIB, "mib": MIB, "gb": GIB, "gib": GIB}
    | {"hz": 1, "khz": 1e3, "mhz": 1e6, "ghz": 1e9, "w": 1, "mw": 1e-3, "kw": 1e3, "c": 1, "%": 1, "pct": 1}
    | {"mb/s": 1e6, "kb/s": 1e3, "gb/s": 1e9, "b/s": 1, "j": 1, "mj": 1e-3, "ratio": 100}
)
"""Unit -> factor to the base unit. Samplers of GPUs mean powers of two by MB and KB of memory."""

_ASSUMED: Mapping[str, str] = MappingProxyType({"_bytes": "mib", "_hz": "mhz", "_per_s": "mb/s"})
"""The unit of numbers that came without one: what ``nvidia-smi --format=csv,nounits`` and dmon mean."""

_DIVIDERS = re.compile(r"[\s.\-/()]+")


def normal(raw: str) -> str:
    """A raw name as the table has it: lower case, dividers as ``_``; ``utilization.gpu`` -> ``utilization_gpu``."""
    return _DIVIDERS.sub("_", raw.strip().lower()).strip("_")


def counter_of(raw: str, unit: str | None = None) -> Counter | None:
    """The counter of a raw name and the factor to its unit; None where the name is not known.

    ``unit`` is what the file says (``MiB``, ``%``, ``ratio``, ``mW``); without one, memory is MiB, clocks MHz, PCIe MB/s.
    """
    name = RAW.get(normal(raw))
    if name is None:
        return None
    said = (unit or "").strip().lower()
    if not said:
        said = next((u for ending, u in _ASSUMED.items() if name.endswith(ending)), "")
    return Counter(name, _SCALE.get(said, 1.0))
