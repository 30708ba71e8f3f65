"""Words that findings about traces share: devices, causes, kernels, figures of a device."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from afterrun.analyzer.trace.devices import DeviceTrace

CAUSE_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "dataloader": "waiting for data",
        "sync": "host waits on the device (synchronisation)",
        "memcpy": "host waits on copies",
        "launch": "launching (the host issues work too slowly)",
        "checkpoint": "writing checkpoints",
        "eval": "evaluation",
        "compile": "compiling",
        "gc": "Python garbage collection",
        "comm_wait": "waiting for other ranks",
        "allocator": "allocating memory",
        "kernel_gap": "between queued kernels",
        "other": "Python between calls",
        "unobserved": "host work that the trace does not show",
    }
)

_SHOWN = 60


def device_name(device: DeviceTrace) -> str:
    """``GPU 0``, ``GPU 1 of rank 3``."""
    rank = f" of rank {device.rank}" if device.rank is not None else ""
    return f"GPU {device.device}{rank}"


def bare_name(kernel: str) -> str:
    """A kernel's name without return type, templates and arguments."""
    name = kernel.removeprefix("void ").replace("(anonymous namespace)::", "")
    return name.split("<")[0].split("(")[0] or kernel


def short_name(kernel: str) -> str:
    """A kernel's name without return type, templates and arguments, at most 60 characters."""
    name = bare_name(kernel)
    return name if len(name) <= _SHOWN else name[: _SHOWN - 1] + "\N{HORIZONTAL ELLIPSIS}"


NO_DEVICE = ("kernels, copies or graph launches in the trace",)
"""What is missing where a trace holds no GPU activity."""

HOST_RANGES = (
    "ranges of the host (NVTX, record_function), or its operating-system calls (nsys profile --trace=osrt)",
)
"""What is missing where a trace shows that the host was late, but not what it did."""
