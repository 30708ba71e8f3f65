"""The document of ``inspect`` as tables on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from afterrun.analyzer.prose import count, percent, span_time
from afterrun.cli.console import out, plain, printable

MAX_ROWS = 200
"""Metrics, devices and counters shown of one run."""
NAME_CHARS = 60
"""Longest tag or name shown."""

_UNITS = (
    ("_bytes", "GiB", 2**30),
    ("_hz", "MHz", 1e6),
    ("_pct", "%", 1),
    ("_w", "W", 1),
    ("_c", "\N{DEGREE SIGN}C", 1),
    ("_ns", "s", 1e9),
    ("_s", "s", 1),
)
"""Ending of a counter's name, its unit as shown, and that unit in the one recorded."""


def show(document: dict[str, Any]) -> None:
    """Print the document of ``inspect --json`` as tables."""
    console = out()
    for number, run in enumerate(document["runs"]):
        if number:
            console.print()
        for part in _run(run):
            console.print(part)
    if any(m["superseded"] for run in document["runs"] for m in run["metrics"]):
        console.print(plain("  (+n): values that a restart or a rewrite replaced, kept but not drawn", "dim"))
    if document["unclaimed"]:
        console.print()
        console.print(plain(f"Not read ({len(document['unclaimed'])})", "bold"))
        table = _table("file", "why")
        for file in document["unclaimed"]:
            table.add_row(plain(file["path"]), plain(file["reason"], "dim"))
        console.print(table)
    if not document["runs"]:
        console.print(plain("No training log found."))


def _run(run: dict[str, Any]) -> Iterator[Any]:
    """What is printed of one run, in order."""
    yield plain("") + plain(run["run"], "bold") + plain("  " + _heading(run), "dim")
    for note in run["notes"]:
        yield plain(f"  {note}", "dim")
    yield _sources(run)
    counted = [
        m for m in run["metrics"] if m["points"] or not m["superseded"]
    ]  # the others are told as notes
    for rows, table in ((counted, _metrics), (run["devices"], _devices), (run["samples"], _counters)):
        if rows:
            yield table(rows[:MAX_ROWS])
        if len(rows) > MAX_ROWS:
            yield plain(f"  +{len(rows) - MAX_ROWS:,} more (--json has all)", "dim")
    if others := _others(run):
        yield plain(f"  also {others}", "dim")


def _heading(run: dict[str, Any]) -> str:
    parts = [
        f"{run['attempts']} attempts" if run["attempts"] > 1 else "",
        "" if run["outcome"] == "unknown" else run["outcome"],
        run["grouped_by"],
    ]
    return " · ".join(p for p in parts if p)


def _table(*columns: str, right: tuple[str, ...] = ()) -> Any:
    from rich.table import Table  # noqa: PLC0415  # tables only

    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
    for name in columns:
        # what is cut short can be seen whole with --json
        long = name in ("note", "why", "file")
        side: Literal["left", "right"] = "right" if name in right else "left"
        table.add_column(name, justify=side, overflow="fold" if long else "ellipsis", no_wrap=not long)
    return table


def _sources(run: dict[str, Any]) -> Any:
    table = _table("  source", "format", "read", "note", right=("read",))
    for s in run["sources"]:
        rows = sum(s["rows"].values())
        read = f"{rows:,}" if rows else s["status"]
        notes = [s["note"], f"{s['damaged']:,} damaged" if s["damaged"] else ""]
        style = "" if s["status"] == "read" else "yellow" if s["status"] == "partial" else "dim"
        name = s["path"].removeprefix(run["run"] + "/")
        table.add_row(
            plain("  " + name, style), s["format"], read, plain("; ".join(n for n in notes if n), "dim")
        )
    return table


def _metrics(metrics: list[dict[str, Any]]) -> Any:
    ranks = any(m["rank"] is not None for m in metrics)
    columns = ["  metric", *(["rank"] if ranks else []), "split", "points", "steps", "last", "range", "tag"]
    table = _table(*columns, right=("points", "last"))
    for m in metrics:
        ends = ["?" if m[k] is None else f"{m[k]:,}" for k in ("first_step", "last_step")]
        steps = "" if ends == ["?", "?"] else " .. ".join(ends)
        points = f"{m['points']:,}" + (f" (+{m['superseded']:,})" if m["superseded"] else "")
        strange = [f"{m[k]:,} {word}" for k, word in (("nan", "NaN"), ("inf", "infinite")) if m[k]]
        limits = [] if m["min"] is None else [f"{_short(m['min'])} .. {_short(m['max'])}"]
        rank = [plain("" if m["rank"] is None else str(m["rank"]))] if ranks else []
        split = "" if m["split"] == "none" else m["split"]
        spread = plain(", ".join([*limits, *strange]), "yellow" if strange else "")
        name = plain("  " + _cut(m["metric"] or "?"), "" if m["metric"] else "dim")
        table.add_row(
            name, *rank, split, points, steps, _short(m["last"]), spread, plain(_cut(m["tag"]), "dim")
        )
    return table


def _devices(devices: list[dict[str, Any]]) -> Any:
    """Devices of a trace: what ran on them, over what time, and how much of it they were busy."""
    ranks = any(d["rank"] is not None for d in devices)
    columns = [*(["rank"] if ranks else []), "kernels", "covers", "busy", "idle", "largest gap"]
    table = _table("  device", *columns, right=tuple(columns))
    for d in devices:
        rank = ["" if d["rank"] is None else str(d["rank"])] if ranks else []
        shares = [percent(100 * d[k] / d["span_ns"]) if d["span_ns"] else "" for k in ("busy_ns", "idle_ns")]
        times = [span_time(d[k]) for k in ("span_ns", "largest_gap_ns")]
        table.add_row(f"  GPU {d['device']}", *rank, f"{d['kernels']:,}", times[0], *shares, times[1])
    return table


def _counters(samples: list[dict[str, Any]]) -> Any:
    table = _table("  counter", "device", "points", "mean", "max", right=("device", "points", "mean", "max"))
    for s in samples:
        device = "" if s["device"] is None else str(s["device"])
        mean, most = ("" if s[k] is None else _measured(s["counter"], s[k]) for k in ("mean", "max"))
        table.add_row(plain("  " + _cut(s["counter"])), device, f"{s['points']:,}", mean, most)
    return table


def _others(run: dict[str, Any]) -> str:
    """What was read beside metrics, devices and counters, in one line."""
    parts = [
        count(run["kernels"]["launches"], "profiled kernel launch", "profiled kernel launches"),
        *(count(n, f"'{printable(kind)}' event") for kind, n in run["marks"].items()),
        count(len(run["params"]), "setting"),
    ]
    return ", ".join(p for p in parts if not p.startswith("0 "))


def _measured(counter: str, value: Any) -> str:
    """A value with the unit that ends the counter's name."""
    if isinstance(value, str):
        return printable(value)
    if counter.endswith("_bytes") and value < 2**30:
        return f"{value / 2**20:,.4g} MiB"
    for ending, unit, size in _UNITS:
        if counter.endswith(ending):
            return f"{value / size:,.4g} {unit}"
    return _short(value)


def _cut(name: str) -> str:
    """A name at no more than ``NAME_CHARS``; the middle gives way, because both ends tell names apart."""
    half = NAME_CHARS // 2
    return name if len(name) <= NAME_CHARS else f"{name[:half]}…{name[1 - half :]}"


def _short(x: Any) -> str:
    return "" if x is None else printable(x) if isinstance(x, str) else f"{x:,.4g}"
