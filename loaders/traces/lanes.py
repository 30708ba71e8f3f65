"""The one table of names that tells what a span of a trace is: lanes, steps, copies.

Names are those of tools: PyTorch's profiler, NVTX ranges that frameworks push, CUDA and HIP calls, kernels of
NCCL, RCCL and their kin. What no rule names is an ``annotation`` on the host and a ``kernel`` on a device.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

DEVICE_LANES = ("kernel", "comm", "memcpy", "memset", "graph")
"""Lanes that make a device busy, where ``device`` is not null."""

KERNEL_LANES = ("kernel", "comm")

EPOCH_FLOOR_NS = 10**17
"""A start below this (March 1973) counts from the file's own clock, not from 1970."""

COLLECTIVE = re.compile(
    r"nccl|rccl|oneccl|deepep|nvshmem|all_?(?:reduce|gather|to_?all)|reduce_?scatter", re.IGNORECASE
)
"""Kernels and host calls of collectives. The sources of NCCL 2.x name them ``ncclKernel_*`` and, since 2.18, ``ncclDevKernel_*``."""

_HOST = (
    (
        "checkpoint",
        re.compile(
            r"checkpoint(?!ed)|\btorch\.save\b|torch_save|save_(?:model|pretrained|state)|state_dict_save|\bdcp\b|orbax",
            re.IGNORECASE,
        ),
    ),
    (
        "data",
        re.compile(
            r"enumerate\(DataLoader\)|DataLoaderIter|DataPipe|data_?load(?:er|ing)|\bnext_batch\b|get_(?:train_)?batch"
            r"|fetch_(?:next_)?(?:batch|data)|load_(?:batch|data)\b|dataloader_next|batch_to_device|tf\.?data|IteratorGetNext"
            r"|Iterator::|infeed|input_pipeline|^data$|^next$|^(?:data|batch)[ _](?:wait|time|load|fetch|next)",
            re.IGNORECASE,
        ),
    ),
    (
        "comm",
        re.compile(
            r"^(?:nccl|gloo|mpi|ucc|c10d|horovod)\b|^ProcessGroup|record_param_comms|NEGOTIATE_|^(?:ALLREDUCE|ALLGATHER|BROADCAST|ALLTOALL)$",
            re.IGNORECASE,
        ),
    ),
    (
        # emit_nvtx pushes a range for each operator, with its number behind a comma
        "cpu_op",
        re.compile(r"^(?:aten|prim|torch|autograd|torchvision|xla)::|^\w+Backward\d*(?:,|$)"),
    ),
)
"""Rules in order; a name that says both is of the first."""

_STEP = re.compile(
    r"(?:ProfilerStep#|(?:train(?:ing)?[ _])?(?:global[ _])?(?:step|iter(?:ation)?)[ _#:]*)(\d{1,18})",
    re.IGNORECASE,
)

COPY_KINDS: Mapping[int, str] = MappingProxyType(
    {
        1: "HtoD",
        2: "DtoH",
        3: "HtoA",
        4: "AtoH",
        5: "AtoA",
        6: "AtoD",
        7: "DtoA",
        8: "DtoD",
        9: "HtoH",
        10: "PtoP",
    }
)
"""``CUpti_ActivityMemcpyKind``; 11 to 13 are moves of unified memory and no copies that a program asked for."""

MEMORY_KINDS: Mapping[int, str] = MappingProxyType(
    {1: "Pageable", 2: "Pinned", 3: "Device", 4: "Array", 5: "Managed", 6: "Device", 7: "Managed"}
)
"""``CUpti_ActivityMemoryKind`` as Kineto words them."""


def host_lane(name: str) -> str:
    """The lane of a host range by its name: checkpoint, data, comm, cpu_op, else ``annotation``."""
    for lane, rule in _HOST:
        if rule.search(name):
            return lane
    return "annotation"


def kernel_lane(name: str) -> str:
    """``comm`` for the kernel of a collective, else ``kernel``."""
    return "comm" if COLLECTIVE.search(name) else "kernel"


def step_of(name: str) -> int | None:
    """The number of a step mark (``ProfilerStep#7``, ``step 7``, ``iteration_7``); None where it is no mark."""
    found = _STEP.fullmatch(name.strip())
    return int(found[1]) if found else None


def copy_name(kind: str, source: str, target: str) -> str:
    """A copy as Kineto calls it: ``Memcpy HtoD (Pageable -> Device)``."""
    return f"Memcpy {kind} ({source} -> {target})"
