"""Why clocks are held down: NVML's clock event reasons (until driver 535: throttle reasons) as counters.

Bits are those of ``nvml.h`` (``nvmlClocksEventReason*``). ``throttle_thermal`` and ``throttle_power`` are 0 or 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

HW_SLOWDOWN, SW_THERMAL, HW_THERMAL = 0x8, 0x20, 0x40
SW_POWER_CAP, HW_POWER_BRAKE = 0x4, 0x80

BITS: Mapping[str, int] = MappingProxyType(
    {
        "gpu_idle": 0x1,
        "idle": 0x1,
        "applications_clocks_setting": 0x2,
        "sw_power_cap": SW_POWER_CAP,
        "hw_slowdown": HW_SLOWDOWN,
        "sync_boost": 0x10,
        "sw_thermal_slowdown": SW_THERMAL,
        "hw_thermal_slowdown": HW_THERMAL,
        "hw_power_brake_slowdown": HW_POWER_BRAKE,
        "display_clocks_setting": 0x100,
        "display_clock_setting": 0x100,
    }
)
"""Reason as ``nvidia-smi`` words it (normalised) -> its bit."""

STATES: Mapping[str, bool] = MappingProxyType({"active": True, "not active": False})
"""What stands in a cell of one reason, lower case."""


def thermal(mask: int) -> bool:
    """Whether heat holds the clocks down. A hardware slowdown counts unless the power brake explains it alone."""
    if mask & (SW_THERMAL | HW_THERMAL):
        return True
    return bool(mask & HW_SLOWDOWN) and not mask & HW_POWER_BRAKE


def power(mask: int) -> bool:
    """Whether a power limit or the power brake holds the clocks down."""
    return bool(mask & (SW_POWER_CAP | HW_POWER_BRAKE))


def throttle_counters(mask: float) -> tuple[tuple[str, float], ...]:
    """The three counters that a mask of reasons gives."""
    bits = int(mask)
    return (
        ("throttle_reasons", float(bits)),
        ("throttle_thermal", float(thermal(bits))),
        ("throttle_power", float(power(bits))),
    )
