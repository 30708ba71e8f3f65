"""What a full report of ``nvidia-smi -q`` says of one device, as text or as XML, whatever the version of its schema.

Both are trees of the same names (``FB Memory Usage``/``Used``, ``fb_memory_usage``/``used``); a value is known by its own
name and that of the section around it. Limits, thresholds, clocks that could be set and the like are not samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from afterrun.loaders.counters.readings import performance_state, reading
from afterrun.loaders.counters.reasons import BITS, STATES, throttle_counters
from afterrun.loaders.counters.samples import Samples, series_text
from afterrun.loaders.counters.smi.drawn import basename
from afterrun.loaders.counters.vocabulary import counter_of, normal

_SECTIONS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "utilization": {
            "gpu": "utilization_gpu", "gpu_util": "utilization_gpu",
            "memory": "utilization_memory", "memory_util": "utilization_memory",
            "encoder": "encoder_util", "encoder_util": "encoder_util",
            "decoder": "decoder_util", "decoder_util": "decoder_util",
            "jpeg": "utilization_jpeg", "jpeg_util": "utilization_jpeg",
            "ofa": "utilization_ofa", "ofa_util": "utilization_ofa",
        },
        "fb_memory_usage": {
            "total": "memory_total", "reserved": "memory_reserved", "used": "memory_used", "free": "memory_free",
        },
        "bar1_memory_usage": {"used": "bar1"},
        "temperature": {
            "gpu_temp": "temperature_gpu", "gpu_current_temp": "temperature_gpu", "gpu": "temperature_gpu",
            "memory_temp": "temperature_memory", "memory_current_temp": "temperature_memory",
        },
        "clocks": {
            "graphics_clock": "graphics_clock", "graphics": "graphics_clock", "sm_clock": "sm_clock", "sm": "sm_clock",
            "mem_clock": "mem_clock", "memory": "mem_clock",
        },
        "max_clocks": {"sm_clock": "clocks_max_sm", "sm": "clocks_max_sm"},
        "pci": {
            "tx_util": "pcie_tx", "tx_throughput": "pcie_tx", "rx_util": "pcie_rx", "rx_throughput": "pcie_rx",
        },
        "pcie_gen": {"current_link_gen": "pcie_link_gen_current"},
        "pcie_generation": {"current": "pcie_link_gen_current"},
        "link_widths": {"current_link_width": "pcie_link_width_current"},
        "link_width": {"current": "pcie_link_width_current"},
        "": {"fan_speed": "fan_speed"},
    }
)  # fmt: skip
"""Section -> name in it -> raw name of the vocabulary."""

_POWER = {
    "power_draw": 0, "instant_power_draw": 1, "instantaneous_power_draw": 1, "average_power_draw": 2,
}  # fmt: skip
"""Names of the power drawn; the one with the lowest number is taken."""
_LIMIT = {"current_power_limit": 0, "enforced_power_limit": 1, "power_limit": 2}
_POWER_SECTIONS = frozenset({"power_readings", "gpu_power_readings"})
_REASON_SECTIONS = frozenset({"clocks_event_reasons", "clocks_throttle_reasons"})
_REASON_PREFIXES = ("clocks_event_reason_", "clocks_throttle_reason_")
_MEMORY = {"used": "mem_used_bytes", "total": "mem_total_bytes", "free": "mem_free_bytes"}


@dataclass(slots=True)
class DeviceReport:
    """Collects the values of one device; ``finish`` turns them into samples."""

    name: str = ""
    values: dict[str, float] = field(default_factory=dict)
    reasons: int | None = None
    mig: list[tuple[str, dict[str, float]]] = field(default_factory=list)
    processes: list[dict[str, str]] = field(default_factory=list)
    _power: dict[str, tuple[int, float]] = field(default_factory=dict)

    def take(self, section: str, key: str, text: str) -> None:
        """One value: names as ``normal`` makes them, its section empty where it stands on its own."""
        if section == "" and key == "product_name":
            self.name = text
        elif section == "" and key == "performance_state":
            state = performance_state(text)
            if state is not None:
                self.values["pstate"] = state
        elif section in _REASON_SECTIONS:
            self._reason(key, text)
        elif section in _POWER_SECTIONS:
            self._take_power(key, text)
        elif raw := _SECTIONS.get(section, {}).get(key):
            value = reading(text)
            known = counter_of(raw, value.unit if value else None)
            if value is not None and known is not None:
                self.values[known.name] = value.value * known.factor

    def _take_power(self, key: str, text: str) -> None:
        value = reading(text)
        for counter, ranks in (("power_w", _POWER), ("power_limit_w", _LIMIT)):
            rank = ranks.get(key)
            if value is not None and rank is not None and rank < self._power.get(counter, (9, 0.0))[0]:
                self._power[counter] = (rank, value.value)

    def _reason(self, key: str, text: str) -> None:
        for prefix in _REASON_PREFIXES:
            key = key.removeprefix(prefix)
        bit, state = BITS.get(key), STATES.get(text.strip().lower())
        if bit is not None and state is not None:
            self.reasons = (self.reasons or 0) | (bit if state else 0)

    def start_mig(self) -> None:
        """A MIG device follows."""
        self.mig.append(("", {}))

    def take_mig(self, section: str, key: str, text: str) -> None:
        """One value of the last MIG device."""
        memory = self.mig[-1][1]
        if section in ("", "mig_device") and key == "index":
            self.mig[-1] = (text, memory)
        elif section in ("fb_memory_usage", "shared_fb_memory_usage") and key in _MEMORY:
            value = reading(text)
            known = counter_of("memory_used", value.unit if value else None)
            if value is not None and known is not None:
                memory[_MEMORY[key]] = value.value * known.factor

    def finish(self, samples: Samples, device: int, t_ns: int | None) -> None:
        """All samples of the device."""
        counters = {**self.values, **{c: v for c, (_, v) in self._power.items()}}
        if self.reasons is not None:
            counters |= dict(throttle_counters(self.reasons))
        for counter, value in counters.items():
            samples.add(counter, value, device=device, t_ns=t_ns)
        for index, memory in self.mig:
            for counter, value in memory.items():
                samples.add(counter, value, device=device, t_ns=t_ns, series=series_text({"mig": index}))
        for process in self.processes:
            self._process(process, samples, device, t_ns)

    @staticmethod
    def _process(process: Mapping[str, str], samples: Samples, device: int, t_ns: int | None) -> None:
        memory = reading(process.get("used_memory", process.get("used_gpu_memory", "")))
        pid = process.get("pid", process.get("process_id", ""))
        known = counter_of("used_memory", memory.unit if memory else None)
        if memory is None or known is None or not pid:
            return
        name = basename(process.get("process_name", process.get("name", "")))
        series = series_text({"pid": pid, **({"process": name} if name else {})})
        samples.add(
            "process_mem_used_bytes", memory.value * known.factor, device=device, t_ns=t_ns, series=series
        )


def key_of(text: str) -> str:
    """A name of a report as the tables here have it."""
    return normal(text)
