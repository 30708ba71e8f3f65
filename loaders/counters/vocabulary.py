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
        "gpu_util_pct": "utilization_gpu gpu_util gpu_utilization utilization_gpu_ratio dcgm_fi_dev_gpu_util sm gpu_use gpu_use_pct gpu_busy_percent util gpu_percent gpu_load load_gpu gpu_usage gpu_busy gfx_activity average_gfx_activity gfx_util gfx gputl utilization util_gpu gpu_core_load gpu% gfx%",
        # share of the period in which memory was read or written
        "mem_util_pct": "utilization_memory mem_util memory_utilization dcgm_fi_dev_mem_copy_util utilization_memory_ratio mem_copy_util memory_util umc_activity average_umc_activity mcutl memory_controller_load gpu_memory_read_write_activity gpu_mem_util gpu_memory_util gpu_memory_use",
        "enc_util_pct": "utilization_encoder enc encoder_util dcgm_fi_dev_enc_util encutl video_engine_load",
        "dec_util_pct": "utilization_decoder dec decoder_util dcgm_fi_dev_dec_util decutl",
        "jpg_util_pct": "utilization_jpeg jpg jpeg_util",
        "ofa_util_pct": "utilization_ofa ofa ofa_util",
        "mem_used_bytes": "memory_used mem_used fb_used fb dcgm_fi_dev_fb_used memory_used_bytes vram_total_used_memory used_memory used_gpu_memory gpu_memory_used gpu_mem gpu_mem_used gpu_memory vram_used used_vram fbusd vram",
        "mem_used_pct": "gpu_memory_allocated_vram% vram%",
        "mem_free_bytes": "memory_free fb_free dcgm_fi_dev_fb_free memory_free_bytes free_vram vram_free fbfre gpu_mem_free gpu_memory_free",
        "mem_total_bytes": "memory_total fb_total dcgm_fi_dev_fb_total memory_total_bytes vram_total_memory total_vram vram_total fbttl gpu_mem_total gpu_memory_total",
        "mem_reserved_bytes": "memory_reserved fb_reserved dcgm_fi_dev_fb_reserved",
        "bar1_used_bytes": "bar1 bar1_memory_usage_used",
        "power_w": "power_draw pwr power power_usage dcgm_fi_dev_power_usage power_draw_watts power_draw_instant power_draw_average instant_power_draw average_power_draw average_graphics_package_power average_graphics_package_power_w current_socket_graphics_package_power socket_power gpu_power_draw gpu_power power_draw_w pwr_draw board_power_draw powr gpu_power_usage instantaneous_power_draw avgpwr power_usage_instant",
        "power_limit_w": "power_limit enforced_power_limit current_power_limit max_graphics_package_power dcgm_fi_dev_power_mgmt_limit pwrcap power_cap gpu_power_limit pmlmt",
        "temp_c": "temperature_gpu gtemp temp gpu_temp temperature dcgm_fi_dev_gpu_temp gpu_temperature temperature_sensor_edge temperature_edge temperature_c tmptr edge gpu_t gpu_temperature_c temp_dieedge temperature_sensor_gpu",
        "temp_hotspot_c": "temperature_sensor_junction temperature_junction temperature_hotspot hotspot junction temperature_hotspot_c hotspot_temperature temp_junction",
        "mem_temp_c": "temperature_memory mtemp memory_temp dcgm_fi_dev_memory_temp temperature_sensor_memory mem_t mmtmp temperature_mem mem_temperature memory_temperature temperature_memory_c",
        "sm_clock_hz": "clocks_sm clocks_current_sm sm_clock pclk dcgm_fi_dev_sm_clock sclk_clock_speed smclk clock_sm sclk gpu_clock gpu_core_clock gfx_clk gfx_clock clk_sm clocks_sm_mhz gfx_0_clk gfx_clock_speed",
        "graphics_clock_hz": "clocks_gr clocks_current_graphics graphics_clock clock_graphics clocks_graphics graphics_clk",
        "mem_clock_hz": "clocks_mem clocks_current_memory mem_clock memory_clock mclk dcgm_fi_dev_mem_clock mclk_clock_speed mmclk clock_mem clock_memory clocks_memory gpu_memory_clock mem_0_clk mem_clk mem_clock_speed",
        "sm_clock_max_hz": "clocks_max_sm clocks_max_graphics_sm max_sm_clock",
        "fan_pct": "fan_speed fan fan_speed_pct fan_percent fan_1_speed gpu_fan_speed",
        "pcie_tx_bytes_per_s": "txpci pcie_tx tx_util dcgm_fi_prof_pcie_tx_bytes pcitx tx_throughput pcie_tx_util",
        "pcie_rx_bytes_per_s": "rxpci pcie_rx rx_util dcgm_fi_prof_pcie_rx_bytes pcirx rx_throughput pcie_rx_util",
        "pcie_gen": "pcie_link_gen_current current_link_gen",
        "pcie_width": "pcie_link_width_current current_link_width",
        "sm_active_pct": "dcgm_fi_prof_sm_active sm_active smact",
        "sm_occupancy_pct": "dcgm_fi_prof_sm_occupancy sm_occupancy smocc",
        "gr_active_pct": "dcgm_fi_prof_gr_engine_active gr_engine_active gract",
        "tensor_active_pct": "dcgm_fi_prof_pipe_tensor_active tensor_active tenso",
        "dram_active_pct": "dcgm_fi_prof_dram_active dram_active drama",
        "fp64_active_pct": "dcgm_fi_prof_pipe_fp64_active fp64a",
        "fp32_active_pct": "dcgm_fi_prof_pipe_fp32_active fp32a",
        "fp16_active_pct": "dcgm_fi_prof_pipe_fp16_active fp16a",
        "energy_j": "dcgm_fi_dev_total_energy_consumption total_energy_consumption totec total_energy",
        "pstate": "performance_state pstate perf dcgm_fi_dev_pstate",
        "throttle_reasons": "clocks_throttle_reasons_active clocks_event_reasons_active dcgm_fi_dev_clock_throttle_reasons dcgm_fi_dev_clocks_event_reasons current_clock_throttle_reasons dvcctr",
        "xid": "dcgm_fi_dev_xid_errors xid_errors xider",
        "ecc_sbe": "ecc_errors_corrected_volatile_total sbecc",
        "ecc_dbe": "ecc_errors_uncorrected_volatile_total dbecc",
        "cpu_pct": "cpu_percent cpu_util cpu_utilization cpu_usage",
        "iowait_pct": "iowait cpu_iowait usage_iowait",
        "rss_bytes": "rss process_resident_memory_bytes resident_memory",
    }
)

RAW: Mapping[str, str] = MappingProxyType({raw: name for name, raws in _RAW.items() for raw in raws.split()})
"""Raw name, normalised -> canonical counter."""

_DIMENSIONS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "_bytes": {
            "b": 1,
            "byte": 1,
            "bytes": 1,
            "kb": KIB,
            "kib": KIB,
            "mb": MIB,
            "mib": MIB,
            "gb": GIB,
            "gib": GIB,
        },
        "_per_s": {"b/s": 1, "kb/s": 1e3, "mb/s": 1e6, "gb/s": 1e9},
        "_hz": {"hz": 1, "khz": 1e3, "mhz": 1e6, "ghz": 1e9},
        "_pct": {"%": 1, "pct": 1, "percent": 1, "ratio": 100},
        "_w": {"w": 1, "watt": 1, "watts": 1, "mw": 1e-3, "kw": 1e3},
        "_c": {"c": 1, "°c": 1, "celsius": 1},
        "_j": {"j": 1, "mj": 1e-3},
    }
)
"""Ending of a counter -> its units and their factors. Samplers of GPUs mean powers of two by MB and KB of memory."""

_UNITS = frozenset(unit for units in _DIMENSIONS.values() for unit in units)

_ENDINGS = re.compile(
    r"(.+)_(bytes|kib|kb|mib|mb|gib|gb|w|watts|mw|c|celsius|pct|percent|mhz|khz|hz|mj|j|ratio)"
)
"""Names that end with their unit: ``mem_used_gb``, ``power_watts``, ``utilization_gpu_ratio``."""

_RATIOS = re.compile(r"dcgm_fi_prof_\w+_(?:active|occupancy)|(?:gr|sm)act|smocc|tenso|drama|fp(?:16|32|64)a")
_BYTE_RATES = re.compile(r"dcgm_fi_prof_pcie_[rt]x_bytes|pci[rt]x")
_MILLIJOULES = frozenset({"dcgm_fi_dev_total_energy_consumption", "totec"})

_ASSUMED: Mapping[str, str] = MappingProxyType({"_bytes": "mib", "_hz": "mhz", "_per_s": "mb/s"})
"""The unit of numbers that came without one: what ``nvidia-smi --format=csv,nounits`` and dmon mean."""

_DIVIDERS = re.compile(r"[\s.\-/():]+")


def normal(raw: str) -> str:
    """A raw name as the table has it: lower case, dividers as ``_``; ``utilization.gpu`` -> ``utilization_gpu``."""
    return _DIVIDERS.sub("_", raw.strip().lower()).strip("_")


def counter_of(raw: str, unit: str | None = None) -> Counter | None:
    """The counter of a raw name and the factor to its unit; None where the name is not known.

    ``unit`` is what the file says (``MiB``, ``%``, ``ratio``, ``mW``); else the name itself may say it
    (``mem_used_gb``, the fields of DCGM). Without any, memory is MiB, clocks MHz, PCIe MB/s.
    """
    bare, said = normal(raw), (unit or "").strip().lower()
    ending = _ENDINGS.fullmatch(bare)
    name = RAW.get(bare) or (RAW.get(ending[1]) if ending else None)
    if name is None:
        return None
    said = said or _native(bare) or (ending[2] if ending else "")
    if not said:
        said = next((u for end, u in _ASSUMED.items() if name.endswith(end)), "")
    units = next((units for end, units in _DIMENSIONS.items() if name.endswith(end)), {})
    if said in _UNITS and said not in units:
        return _rate_named_by_size(name, said)
    return Counter(name, float(units.get(said, 1.0)))


def _rate_named_by_size(name: str, said: str) -> Counter | None:
    """A per-second counter whose name or unit leaves the second out; nothing else may be of a foreign unit."""
    size = _DIMENSIONS["_bytes"].get(said)
    return Counter(name, float(size)) if name.endswith("_per_s") and size else None


def _native(bare: str) -> str:
    """The unit in which DCGM counts a field."""
    if _RATIOS.fullmatch(bare):
        return "ratio"
    if _BYTE_RATES.fullmatch(bare):
        return "b/s"
    return "mj" if bare in _MILLIJOULES else ""
