"""What figures of devices share: time axes, states of a device, names of rows, findings as notes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from afterrun.analyzer.finding import Finding, rank_order
from afterrun.analyzer.intervals import Intervals, Times
from afterrun.analyzer.trace.devices import DeviceTrace
from afterrun.analyzer.trace.idle import IDLE_CAUSES, Idle
from afterrun.analyzer.trace.words import device_name
from afterrun.plots.canvas.text import display_name
from afterrun.plots.spec import Key, Mark

MAX_ROWS = 8
"""Devices shown at most; the worst come first."""

STATE_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "compute": "computing",
        "comm": "collectives alone",
        "copy": "copies alone",
        "dataloader": "idle: waiting for data",
        "sync": "idle: synchronising",
        "memcpy": "idle: waiting on copies",
        "launch": "idle: launching",
        "checkpoint": "idle: checkpoint",
        "eval": "idle: evaluation",
        "compile": "idle: compiling",
        "gc": "idle: garbage collection",
        "comm_wait": "idle: waiting for ranks",
        "allocator": "idle: allocating",
        "kernel_gap": "idle: between kernels",
        "other": "idle: Python",
        "unobserved": "idle: not shown by the trace",
    }
)
"""States of a device in the order in which they are stacked, and their words in legends."""

ROLES: Mapping[str, str] = MappingProxyType({s: "python" if s == "other" else s for s in STATE_WORDS})


class Unit(NamedTuple):
    """A unit of time for an axis: ns of one unit, and its name."""

    ns: float
    name: str


def time_unit(span_ns: float) -> Unit:
    """The unit in which a stretch of time reads well."""
    for ns, name in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if span_ns >= 2 * ns:
            return Unit(ns, name)
    return Unit(1.0, "ns")


class Busy(NamedTuple):
    """When a device computes, communicates alone, and copies alone."""

    compute: Intervals
    comm: Intervals
    copy: Intervals


def busy_parts(device: DeviceTrace) -> Busy:
    """Activity in three disjoint sets."""
    compute = device.union_of("kernel", "graph")
    comm = device.union_of("comm") - compute
    return Busy(compute, comm, device.busy - compute - comm)


def states(device: DeviceTrace, idle: Idle, low: Times, high: Times) -> dict[str, Times]:
    """Time in each state inside each stretch ``[low, high)``, ns."""
    parts = busy_parts(device)
    busy = {"compute": parts.compute, "comm": parts.comm, "copy": parts.copy}
    inside = {name: x.covered(low, high) for name, x in busy.items()}
    return {**inside, **{name: ns for name, ns in idle.between(low, high).items() if name in IDLE_CAUSES}}


def state_keys(shown: Collection[str]) -> tuple[Key, ...]:
    """The legend of the states that occur, in stacking order."""
    return tuple(Key("box", ROLES[s], words) for s, words in STATE_WORDS.items() if s in shown)


def worst_first(devices: Sequence[DeviceTrace]) -> list[DeviceTrace]:
    """The devices with the largest idle share, at most ``MAX_ROWS``, then in their own order."""
    share = [-(d.idle_ns / max(d.span_ns, 1)) for d in devices]
    chosen = sorted(np.argsort(share, kind="stable")[:MAX_ROWS].tolist())
    return [devices[i] for i in chosen]


def row_names(devices: Sequence[DeviceTrace]) -> tuple[str, ...]:
    """Short names of rows, with the process where names alone would not tell."""
    names = [device_name(d) for d in devices]
    return tuple(
        f"{name}, pid {d.process}" if names.count(name) > 1 else name
        for name, d in zip(names, devices, strict=True)
    )


def left_out(devices: Sequence[DeviceTrace], shown: Sequence[DeviceTrace]) -> str:
    """What a note says where not all devices are drawn."""
    return f"; {len(shown)} of {len(devices)} devices, the most idle" if len(shown) < len(devices) else ""


def notes_of(findings: Sequence[Finding], codes: Collection[str]) -> tuple[Mark, ...]:
    """One note a code: the words of its worst finding, so that the page knows which figure shows it."""
    chosen: dict[str, Finding] = {}
    for f in sorted((f for f in findings if f.code in codes and f.is_alarm), key=rank_order):
        chosen.setdefault(f.code, f)
    return tuple(
        Mark(
            code=code,
            text=display_name(code.replace("-", " "), 40),
            shape="note",
            certain=f.status == "confirmed",
        )
        for code, f in chosen.items()
    )
