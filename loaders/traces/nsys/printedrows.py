"""Printed tables as rows of the schema: summaries become ``kernels``, traces ``spans``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence

import polars as pl

from afterrun.loaders.schema import LOADER_COLUMNS, Batch
from afterrun.loaders.traces.lanes import copy_name, host_lane, kernel_lane, step_of
from afterrun.loaders.traces.nsys.printed import SIZE_UNITS, TIME_UNITS, Report
from afterrun.loaders.traces.repair import repair

_METRICS = {
    "total time": "time_total_ns",
    "instances": "instances",
    "avg": "time_avg_ns",
    "med": "time_med_ns",
    "min": "time_min_ns",
    "max": "time_max_ns",
    "std": "time_std_ns",
}
_COPY = re.compile(r"\[CUDA (?:Unified Memory )?memcpy (?P<kind>[\w -]+)\]", re.IGNORECASE)
_SET = re.compile(r"\[CUDA memset\]", re.IGNORECASE)
_DEVICE = re.compile(r"(?P<name>.*?)\s*\((?P<number>\d{1,4})\)")
_VERSION = re.compile(r"_v\d+$")
_ENDS = {
    "host": "H",
    "device": "D",
    "array": "A",
    "peer": "P",
    "htod": "HtoD",
    "dtoh": "DtoH",
    "dtod": "DtoD",
    "ptop": "PtoP",
}
_SHORTENED = ("…", "...")

Cells = Sequence[str]


class Tables:
    """Collects the reports of one file. ``without_data`` counts those for which there was nothing."""

    def __init__(self) -> None:
        self.without_data = 0
        self._damaged = 0
        self._kernels: list[dict[str, object]] = []
        self._summarised = 0
        self._summary = ""
        self._spans: list[pl.DataFrame] = []
        self._devices: dict[int, str] = {}
        self._left: dict[str, None] = {}
        self._shortened = False
        self._rounded = False

    def add(self, report: Report) -> None:
        """One table, or a part of one."""
        kind = report.kind
        self._shortened |= any(row[-1].endswith(_SHORTENED) for row in report.rows)
        if kind == "kernels" and self._summary in ("", report.name or "-"):
            self._summary = report.name or "-"
            self._damaged += report.cut
            self._summarise(report)
        elif kind in ("activity", "calls", "ranges"):
            self._damaged += report.cut
            row = {"activity": self._activity, "calls": _call, "ranges": _range}[kind]
            self._trace(report, row)
        else:
            self._left[report.name or "a table without a name"] = None

    def batches(self) -> Iterator[Batch]:
        """All that was collected, and what a person should know of it."""
        notes = []
        frames: dict[str, pl.DataFrame] = {}
        damaged = self._damaged
        if self._kernels:
            frames["kernels"] = pl.DataFrame(self._kernels, schema_overrides={"unit": pl.String})
        if self._spans:
            done = repair(pl.concat(self._spans))
            frames["spans"], damaged = done.spans, damaged + done.damaged
            notes += [*done.notes, "times count from the start of the capture"]
        if self._devices:
            keys = [f"trace.device.{number}.name" for number in self._devices]
            values = [json.dumps(name, ensure_ascii=False) for name in self._devices.values()]
            frames["params"] = pl.DataFrame({"key": keys, "value": values})
        if self._left:
            notes.append(f"not taken: {', '.join(self._left)}")
        if self.without_data:
            notes.append(f"the profiler had no data for {self.without_data} of its reports")
        if self._shortened:
            notes.append("long names are cut in this report")
        if self._rounded:
            notes.append("sizes are rounded to the digits of this report")
        yield Batch(frames=frames, damaged=damaged, notes=tuple(notes))

    def _summarise(self, report: Report) -> None:
        at = {label: report.place(label) for label in (*_METRICS, "name")}
        for cells in report.rows:
            found = {}
            for label, metric in _METRICS.items():
                place = at[label]
                scale = (
                    1
                    if place is None or label == "instances"
                    else TIME_UNITS.get(report.columns[place].unit, 1)
                )
                value = _number(cells, place, scale)
                if value is not None:
                    found[metric] = value
            name = at["name"]
            if name is None or not {"time_total_ns", "instances"} <= found.keys():
                self._damaged += 1
                continue
            self._summarised += 1
            for metric, value in found.items():
                unit = None if metric == "instances" else "ns"
                row = {"name": cells[name], "launch": self._summarised, "metric": metric, "unit": unit}
                self._kernels.append({**row, "value": value})

    def _trace(self, report: Report, row_of: Callable[[Report, Cells], dict[str, object]]) -> None:
        start, length = report.place("start"), report.place("duration")
        assert start is not None
        assert length is not None
        scales = [TIME_UNITS.get(report.columns[i].unit, 1) for i in (start, length)]
        rows = []
        for cells in report.rows:
            start_ns, dur_ns = (
                _number(cells, i, scale) for i, scale in zip((start, length), scales, strict=True)
            )
            if start_ns is None or dur_ns is None:
                self._damaged += 1
            else:
                rows.append({**row_of(report, cells), "start_ns": round(start_ns), "dur_ns": round(dur_ns)})
        if rows:
            self._spans.append(pl.DataFrame(rows, schema=_SPANS))

    def _activity(self, report: Report, cells: Cells) -> dict[str, object]:
        name = _text(report, cells, "name")
        told = _DEVICE.fullmatch(_text(report, cells, "device"))
        device = int(told["number"]) if told else 0
        if told:
            self._devices.setdefault(device, told["name"])
        size = report.place("bytes")
        row: dict[str, object] = {
            "device": device,
            "track": _whole(report, cells, "strm") or 0,
            "corr": _whole(report, cells, "corrid"),
        }
        if (copy := _COPY.match(name)) or _SET.match(name):
            unit = report.columns[size].unit if size is not None else "b"
            moved = _number(cells, size, SIZE_UNITS.get(unit, 1))
            self._rounded |= unit not in ("b", "bytes")
            row["bytes"] = None if moved is None else round(moved)
        ends = [_text(report, cells, label) or "Unknown" for label in ("srcmemkd", "dstmemkd")]
        if copy:
            return row | {"lane": "memcpy", "name": copy_name(_direction(copy["kind"]), *ends)}
        if _SET.match(name):
            return row | {
                "lane": "memset",
                "name": f"Memset ({ends[0] if ends[0] != 'Unknown' else 'Device'})",
            }
        return row | {"lane": kernel_lane(name), "name": name}


def _call(report: Report, cells: Cells) -> dict[str, object]:
    return {
        "process": _whole(report, cells, "pid"),
        "track": _whole(report, cells, "tid") or 0,
        "corr": _whole(report, cells, "corrid"),
        "lane": "runtime",
        "name": _VERSION.sub("", _text(report, cells, "name")),
    }


def _range(report: Report, cells: Cells) -> dict[str, object]:
    name = _text(report, cells, "name").removeprefix(":")
    return {
        "process": _whole(report, cells, "pid"),
        "track": _whole(report, cells, "tid") or 0,
        "lane": host_lane(name),
        "name": name,
        "step": step_of(name),
    }


_SPANS = pl.Schema(
    {name: dtype for name, dtype in LOADER_COLUMNS["spans"].items() if name not in ("rank", "group")}
)


def _direction(words: str) -> str:
    """``Host-to-Device`` and ``HtoD`` as ``HtoD``."""
    parts = [_ENDS.get(word, word) for word in words.strip().lower().split("-to-")]
    return "to".join(parts)


def _text(report: Report, cells: Cells, label: str) -> str:
    place = report.place(label)
    return "" if place is None else cells[place].strip()


def _whole(report: Report, cells: Cells, label: str) -> int | None:
    value = _number(cells, report.place(label), 1)
    return None if value is None else round(value)


def _number(cells: Cells, place: int | None, scale: float) -> float | None:
    """A cell as a number, commas between thousands taken out."""
    text = "" if place is None else cells[place].strip().replace(",", "")
    try:
        value = float(text) * scale
    except ValueError:
        return None
    return value if abs(value) < 4e18 else None
