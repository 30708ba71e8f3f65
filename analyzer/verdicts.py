"""The two answers every pass owes when it raises nothing: looked and found healthy, or could not look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from afterrun.analyzer.finding import Finding, Severity, Status, Where, jsonable
from afterrun.analyzer.prose import percent
from afterrun.analyzer.registry import Pass
from afterrun.analyzer.trace.devices import DeviceTrace
from afterrun.analyzer.trace.words import HOST_RANGES, device_name
from afterrun.analyzer.view import RunView


def refuted(check: Pass, view: RunView, title: str, values: Mapping[str, Any] | None = None) -> Finding:
    """The pass looked and found nothing wrong; ``values`` hold what it looked at."""
    return Finding(
        code=check.code,
        status="refuted",
        severity="info",
        run=view.name,
        title=title,
        parameters=check.parameters(),
        values=dict(values or {}),
    )


def abstained(
    check: Pass, view: RunView, title: str, missing: tuple[str, ...], values: Mapping[str, Any] | None = None
) -> Finding:
    """The pass could not look; ``missing`` names each input that was not there, with the line to paste."""
    return Finding(
        code=check.code,
        status="abstained",
        severity="info",
        run=view.name,
        title=title,
        parameters=check.parameters(),
        values=dict(values or {}),
        missing=missing,
    )


def about_device(
    check: Pass, view: RunView, device: DeviceTrace, verdict: tuple[Status, Severity], **said: Any
) -> Finding:
    """A finding about one device of a trace: rank, device and the stretch of its activity are filled in.

    ``said`` are further fields of the finding; ``values`` may hold numpy numbers.
    """
    return Finding(
        code=check.code,
        status=verdict[0],
        severity=verdict[1],
        run=view.name,
        rank=device.rank,
        where=Where(t_start_ns=device.low_ns, t_end_ns=device.high_ns, device=device.device),
        parameters=check.parameters(),
        **{**said, "values": jsonable(said.get("values", {}))},
    )


def unseen(
    check: Pass, view: RunView, device: DeviceTrace, warn_pct: float, values: Mapping[str, Any]
) -> Finding | None:
    """Abstains where host work that the trace does not show may hide the cause; None where it is too little for that.

    For a pass whose cause is named nowhere on the host. ``warn_pct`` is the share of the span from which the cause would
    be a warning.
    """
    hidden_pct = 100.0 * view.trace.idle(device).by_cause_ns.get("unobserved", 0) / max(device.span_ns, 1)
    if hidden_pct < warn_pct:
        return None
    title = f"Not assessable: {device_name(device)} is idle {percent(hidden_pct)} of the time beside host work that the trace does not show."
    said = {"title": title, "missing": HOST_RANGES, "values": {**values, "unobserved_pct": hidden_pct}}
    return about_device(check, view, device, ("abstained", "info"), **said)
