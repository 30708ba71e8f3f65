"""One export to batches: facts, activity of devices, the host, samples; then what was not read and what was lost."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from afterrun.loaders.schema import LOADER_COLUMNS, Batch
from afterrun.loaders.traces.lanes import KERNEL_LANES
from afterrun.loaders.traces.nsys import device, facts, host, metrics
from afterrun.loaders.traces.nsys.names import Names
from afterrun.loaders.traces.nsys.store import Store
from afterrun.loaders.traces.repair import NEGATIVE, repair, without_negative

TABLES = (
    *device.TABLES,
    *host.TABLES,
    metrics.VALUES,
    "StringIds",
    facts.SESSION,
    facts.DETAILS,
    facts.DIAGNOSTICS,
)
"""Tables with what happened, and those without which it cannot be told."""

DESCRIBING = (*facts.EXPORT, *facts.DEVICES, metrics.NAMES, device.MEMORY_ENUM)
"""Small tables with names and numbers of devices, versions, counters."""

UNREAD = ("SCHED_EVENTS", "COMPOSITE_EVENTS")
"""Thread states and samples of call stacks: large, and no pass asks for them."""

NO_ACTIVITY = "no GPU activity recorded: the capture holds no kernels, copies or graphs"


_NEEDED = ("process", "device", "lane", "track", "name", "start_ns", "dur_ns", "corr")
_EMPTY = pl.DataFrame(schema={name: LOADER_COLUMNS["spans"][name] for name in _NEEDED})


def batches(store: Store) -> Iterator[Batch]:
    """Everything of one export that has a place in the schema."""
    began_ns = facts.clock_ns(store)
    names = Names(store)
    clock_ns = began_ns or 0
    devices, cpu = device.Devices(store, names, clock_ns), host.Host(store, names, clock_ns)
    calls = _stacked(list(cpu.calls()))
    activity = _stacked(list(devices.spans()))
    yield Batch(
        frames={
            "marks": facts.diagnostics(store, began_ns),
            "params": facts.params(store, _numbers(activity)),
        }
    )
    waits = _stacked(list(cpu.waits(calls))) if not calls.is_empty() else _stacked([])
    lanes = frozenset(activity["lane"].unique().cast(pl.String))
    yield _repaired(activity, calls)
    del activity
    yield _repaired(calls)
    del calls
    yield _repaired(waits)
    for spans, marks in cpu.ranges():
        yield _repaired(spans)
        yield Batch(frames={"marks": marks})
    for spans in cpu.os_calls():
        yield _repaired(spans)
    for rows, damaged in metrics.samples(store, clock_ns):
        yield Batch(frames={"samples": rows}, damaged=damaged)
    yield Batch(
        damaged=devices.damaged + cpu.damaged, notes=tuple(_notes(store, began_ns, devices, cpu, lanes))
    )


def _notes(
    store: Store, began_ns: int | None, devices: device.Devices, cpu: host.Host, lanes: frozenset[str]
) -> Iterator[str]:
    if not lanes:
        yield NO_ACTIVITY
    elif lanes.isdisjoint(KERNEL_LANES):
        yield "no kernels recorded; copies or graphs alone make the devices busy"
    if began_ns is None:
        yield "times count from the start of the capture: the file does not say when that was"
    if devices.damaged + cpu.damaged:
        yield f"{devices.damaged + cpu.damaged} rows without credible times or device left out"
    if devices.expanded:
        yield f"{devices.expanded} graph launches counted by their kernels, which are recorded too"
    if cpu.unended:
        yield f"{cpu.unended} ranges were open when the capture ended and were left out"
    if store.height(metrics.VALUES) > metrics.MOST_VALUES:
        yield f"GPU metrics averaged over windows of {metrics.WINDOW_NS // 1_000_000} ms"
    if unread := [name for name in UNREAD if store.height(name)]:
        yield f"not read: {', '.join(unread)}"


def _stacked(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """The rows of frames that may lack columns; nothing is copied."""
    return pl.concat([f for f in frames if not f.is_empty()] or [_EMPTY], how="diagonal")


def _numbers(activity: pl.DataFrame) -> list[int]:
    return activity["device"].unique().to_list()


def _repaired(spans: pl.DataFrame, calls: pl.DataFrame = _EMPTY) -> Batch:
    if spans.is_empty():
        return Batch()
    if "device" not in spans.columns:
        spans, damaged = without_negative(spans)
        return Batch(
            frames={"spans": spans}, damaged=damaged, notes=(NEGATIVE.format(damaged),) if damaged else ()
        )
    done = repair(spans, calls)
    return Batch(frames={"spans": done.spans}, damaged=done.damaged, notes=done.notes)
