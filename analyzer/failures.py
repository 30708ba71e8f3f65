"""What people do about each way of dying, and the numbers a message carries."""

from __future__ import annotations

import re
from collections.abc import Mapping

from afterrun.loaders.textlog.incidents import Incident

_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "KB": 1e3, "MB": 1e6, "GB": 1e9}
_SIZE = r"([\d.]+) ?([KMG]i?B|bytes|B)\b"
_OOM_NUMBERS = {
    "tried_bytes": re.compile(rf"[Tt]ried to allocate {_SIZE}"),
    "capacity_bytes": re.compile(rf"(?:total capacity of {_SIZE}|{_SIZE} total capacity)"),
    "free_bytes": re.compile(rf"(?:of which {_SIZE} is free|{_SIZE} free)"),
    "allocated_bytes": re.compile(
        rf"(?:{_SIZE} is allocated by PyTorch|{_SIZE} already allocated|{_SIZE} memory in use)"
    ),
    "reserved_bytes": re.compile(
        rf"(?:{_SIZE} is reserved by PyTorch|{_SIZE} reserved in total|{_SIZE} cached)"
    ),
}

_ADVICE: Mapping[str, tuple[str, ...]] = {
    "GPU out of memory": (
        "Lower the batch size for each GPU, or accumulate gradients over more of them.",
        "Recompute activations (gradient checkpointing), or shard optimizer and parameters over the ranks.",
        "Where much memory is reserved but not allocated: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
    ),
    "host out of memory": (
        "Ask for more host memory, or use fewer loader workers and a smaller prefetch.",
        "Look for a list that grows with every step (losses kept with their graph, cached samples).",
    ),
    "oom": (
        "Ask for more host memory, or use fewer loader workers and a smaller prefetch.",
        "Plot the memory of the host over time: a steady rise is a leak.",
    ),
    "time_limit": (
        "Save a checkpoint before the limit (a signal can be asked for ahead of it) and resume in the next job.",
        "Ask for a longer limit, or plan the length from the step time.",
    ),
    "preempted": (
        "Save on SIGTERM and let the scheduler put the job back in the queue.",
        "Save checkpoints often enough for the notice the scheduler gives.",
    ),
    "disk_full": (
        "Free space or raise the quota; then check that the last checkpoint is whole.",
        "Keep only the last few checkpoints, and write large logs elsewhere.",
    ),
    "dataloader": (
        "Look for the kernel's log: workers are mostly killed for memory. Use fewer workers, or more host memory.",
        "Raise the shared memory (the container's --shm-size), or set the sharing strategy to file_system.",
        "Run the loader alone with num_workers=0 to see the exception itself.",
    ),
    "nccl": (
        "Find the rank that stopped first: its own log tells why; the others only waited for it.",
        "Look for a rank that took longer than the timeout: a checkpoint, an evaluation, an uneven last batch.",
        "Check the network and the GPU of that node (Xid, link errors); run with NCCL_DEBUG=INFO.",
    ),
    "xid": (
        "Take the node out of the queue and have its GPU checked (dcgmi diag); restart on another one.",
        "Look up the Xid number: some are faults of the program, some of the hardware.",
    ),
    "nan": (
        "See the findings on non-finite values: they name the curve that broke first.",
        "Go back to a checkpoint before it, and lower the learning rate or clip the gradients.",
    ),
    "interrupted from the keyboard": ("Nothing is wrong if it was stopped on purpose.",),
    "the job was cancelled": (
        "Nothing is wrong if it was cancelled on purpose; the scheduler's records say by whom.",
    ),
    "killed (SIGKILL)": (
        "Look at the kernel's log and the scheduler's record of the job: a process killed without a word mostly ran out of host memory.",
    ),
    "terminated (SIGTERM)": (
        "Look at the scheduler's record of the job: a time limit, a preemption or a person sent the signal.",
    ),
    "traceback": (
        "Read the traceback in the log from its first line; the last frame of your own code is the place to look.",
        "Resume from the last checkpoint once the cause is fixed.",
    ),
    "signal": ("Look at the scheduler's record of the job and at the kernel's log of that node.",),
}


def advice_for(incident: Incident) -> tuple[str, ...]:
    """What to try, by what was found to be the cause."""
    cause = incident.cause
    found = _ADVICE.get(cause.what) or _ADVICE.get(cause.kind) or _ADVICE["traceback"]
    if cause.kind != "nccl" and incident.of_role("cascade"):
        return (*found, "Fix this first: the other messages follow from it.")
    return found


def memory_numbers(text: str) -> dict[str, int]:
    """Bytes that an out-of-memory message tells, by name; a number it does not tell is left out."""
    found: dict[str, int] = {}
    for name, pattern in _OOM_NUMBERS.items():
        match = pattern.search(text)
        if match:
            size, unit = [g for g in match.groups() if g is not None][:2]
            try:
                found[name] = int(float(size) * _UNITS.get(unit, 1))
            except (ValueError, OverflowError):
                continue
    return found
