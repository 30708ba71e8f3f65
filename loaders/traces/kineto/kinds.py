"""What a Kineto event is, by its category and name. Categories changed words and case over the years.

2021: Operator, Kernel, Runtime, Memcpy, Memset, with step marks among the operators. Since: cpu_op, kernel,
cuda_runtime, gpu_memcpy, gpu_memset, user_annotation, gpu_user_annotation (names of libkineto's ActivityType).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from afterrun.loaders.traces.lanes import host_lane, kernel_lane, step_of

Side = Literal["host", "call", "device", "range", "none"]
"""What is read from an event: time of the host, of a call into CUDA or of a device, or values; ``none`` is no activity."""


class Kind(NamedTuple):
    """The lane of an event, and the number of the step it marks."""

    side: Side
    lane: str = ""
    step: int | None = None


_FIXED: dict[str, Kind] = {
    "memcpy": Kind("device", "memcpy"),
    "memset": Kind("device", "memset"),
    "user_annotation": Kind("device", "annotation"),
    "python_function": Kind("host", "python"),
    "collective_comm": Kind("host", "comm"),
    "cuda_profiler_range": Kind("range"),
    # the window of the capture, the profiler's own cost, and links between records
    "trace": Kind("none"),
    "overhead": Kind("none"),
    "external_correlation": Kind("none"),
    "cuda_event": Kind("none"),
}
"""Categories that say all, lower case and without ``gpu_``; only with it, ``user_annotation`` is the projection."""

_ENDINGS = (("runtime", "runtime"), ("driver", "runtime"), ("_sync", "sync"))
"""Calls into CUDA, HIP and their kin: ``cuda_runtime``, ``xpu_driver``, ``cuda_sync``."""

_KERNELS = frozenset({"kernel", "concurrent_kernel"})
_OPERATORS = frozenset({"operator", "cpu_op"})
_OF_OPERATORS = frozenset({"data", "comm"})
"""Lanes an operator's name may tell. Not ``checkpoint``: there it means recomputing activations."""


def fixed_kind(category: str) -> Kind | None:
    """The kind of all complete events (``ph`` X) of a category; None where their names matter."""
    cat = category.lower()
    lane = next((lane for ending, lane in _ENDINGS if cat.endswith(ending)), None)
    if lane:
        return Kind("call", lane)
    return None if cat == "user_annotation" else _FIXED.get(cat.removeprefix("gpu_"))


def named_kind(category: str, name: str) -> Kind:
    """The kind of a complete event of a category whose names matter."""
    cat = category.lower()
    if cat in _KERNELS:
        return Kind("device", kernel_lane(name))
    step = step_of(name)
    if step is not None:
        return Kind("host", "annotation", step)
    lane = host_lane(name)
    return Kind("host", "cpu_op" if cat in _OPERATORS and lane not in _OF_OPERATORS else lane)
