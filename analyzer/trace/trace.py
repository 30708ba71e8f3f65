"""The trace of one run: devices, the host threads that feed them, explained gaps, steps. Built once, shared by all passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from afterrun.analyzer.trace.collectives import Collectives, collectives_of
from afterrun.analyzer.trace.devices import DeviceTrace, devices_of
from afterrun.analyzer.trace.host import classed
from afterrun.analyzer.trace.idle import Idle, explain
from afterrun.analyzer.trace.steps import Steps, device_steps, steps_of


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace:
    """All spans of one run, seen by device. ``spans`` is the table of the schema, of this run alone."""

    spans: pl.DataFrame
    _idle: dict[int, Idle] = field(default_factory=dict, repr=False)
    _steps: dict[int, Steps | None] = field(default_factory=dict, repr=False)
    _host: dict[tuple[int | None, int | None], pl.DataFrame] = field(default_factory=dict, repr=False)

    @cached_property
    def devices(self) -> tuple[DeviceTrace, ...]:
        """Devices with activity, by rank, process and device."""
        return tuple(devices_of(self.spans))

    def host(self, device: DeviceTrace) -> pl.DataFrame:
        """Host spans of the process of a device (of its rank where the format knows no processes), ``class`` and ``end_ns`` added."""
        key = (device.rank, device.process)
        if key not in self._host:
            rows = self.spans.filter(
                pl.col("device").is_null()
                & pl.col("rank").eq_missing(pl.lit(device.rank, pl.Int32))
                & pl.col("process").eq_missing(pl.lit(device.process, pl.Int64))
            )
            self._host[key] = classed(rows, device.of_lanes("memcpy").select("corr", "bytes"))
        return self._host[key]

    def feeding(self, device: DeviceTrace) -> pl.DataFrame:
        """Host spans of the threads that launch work on the device or carry step marks."""
        host = self.host(device)
        mine = device.rows.select("corr").drop_nulls().unique()
        launching = host.filter(pl.col("lane") == "runtime").join(mine, on="corr", how="semi")["track"]
        marked = host.filter(pl.col("step").is_not_null())["track"]
        return host.filter(pl.col("track").is_in(pl.concat([launching, marked]).unique().implode()))

    def idle(self, device: DeviceTrace) -> Idle:
        """The gaps of a device, each explained."""
        key = self.devices.index(device)
        if key not in self._idle:
            host = self.feeding(device)
            self._idle[key] = explain(device, launch_calls(host), host)
        return self._idle[key]

    @cached_property
    def collectives(self) -> Collectives | None:
        """Collectives matched over the devices; None where fewer than two took part in any."""
        return collectives_of(self.devices)

    def steps(self, device: DeviceTrace) -> Steps | None:
        """The step marks of the process of a device; None where nothing marks steps."""
        return steps_of(self.host(device))

    def device_steps(self, device: DeviceTrace) -> Steps | None:
        """The steps as the device worked on them; None where the trace does not tell."""
        key = self.devices.index(device)
        if key not in self._steps:
            steps = self.steps(device)
            calls = launch_calls(self.host(device))
            self._steps[key] = None if steps is None else device_steps(steps, device.rows, calls)
        return self._steps[key]

    def paced_steps(self, device: DeviceTrace) -> Steps | None:
        """The steps by whose lengths a run is judged: as the device worked on them where that is known, else as the host marked them.

        A host that runs ahead marks many short steps and then a long one, in which it waits for the device.
        """
        return self.device_steps(device) or self.steps(device)


def launch_calls(host: pl.DataFrame) -> pl.DataFrame:
    """One row a correlation id: ``corr``, ``track``, ``start_ns``, ``end_ns`` of the call that launched; the last of several."""
    calls = host.filter((pl.col("lane") == "runtime") & pl.col("corr").is_not_null())
    return (
        calls.select("corr", "track", "start_ns", "end_ns")
        .sort("end_ns")
        .unique("corr", keep="last", maintain_order=True)
    )
