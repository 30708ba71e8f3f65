"""What a pass says: one frozen record a person can check.

A finding knows nothing of figures. It carries the estimate, its interval, what it was computed from
and every number its prose uses, so that a report, a gate and a notebook all read the same thing.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec

Status = Literal["confirmed", "possible", "refuted", "abstained"]
"""``refuted`` = looked and found healthy; ``abstained`` = could not look, with the missing input named."""

Severity = Literal["critical", "warning", "info"]

SEVERITY_ORDER: dict[str, int] = {"critical": 0, "warning": 1, "info": 2}
STATUS_ORDER: dict[str, int] = {"confirmed": 0, "possible": 1, "abstained": 2, "refuted": 3}

Number = int | float | str | None
"""A number as JSON can hold it: non-finite ones are ``"NaN"``, ``"Infinity"``, ``"-Infinity"``."""


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """Where in the run it happened; null where unknown. ``step_start`` is the onset estimate."""

    step_start: int | None = None
    step_end: int | None = None
    t_start_ns: int | None = None
    t_end_ns: int | None = None
    device: int | None = None


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """Size of the effect with its confidence interval. ``unit`` names what ``value`` counts."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    level: float = 0.95
    """Coverage that ``low`` and ``high`` claim."""
    method: str = ""
    """How the interval was made, in a few words."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One observation that the verdict rests on, as it can be found in the input again."""

    source: str
    tag: str | None = None
    step: int | None = None
    value: Number = None
    line: int | None = None
    note: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One verdict of one pass about one run. JSON both ways (``encode`` and ``decode``)."""

    code: str
    status: Status
    severity: Severity
    run: str
    attempt: int | None = None
    rank: int | None = None
    where: Where = Where()
    title: str
    """One plain sentence with the numbers of this run."""
    effect: Effect | None = None
    evidence: tuple[Evidence, ...] = ()
    parameters: dict[str, Any] = {}
    """The thresholds that were in force."""
    wasted_gpu_s: float | None = None
    """GPU-seconds lost to it; null where wall clock or device count is not recorded."""
    advice: tuple[str, ...] = ()
    """What to try, in the order to try it."""
    values: dict[str, Any] = {}
    """Every number the prose uses, by name, units in the name."""
    figures: tuple[str, ...] = ()
    """Names of the figures that show it; filled by the report."""
    missing: tuple[str, ...] = ()
    """The inputs that were not there: for ``abstained`` those that a verdict needs, for ``possible`` those that would
    make it sure."""

    @property
    def is_alarm(self) -> bool:
        """Whether it claims a problem: confirmed or possible, and not merely information."""
        return self.status in ("confirmed", "possible") and self.severity != "info"


def jsonable(x: Any) -> Any:
    """The value as strict JSON can hold it: numpy scalars unwrapped, non-finite numbers as strings."""
    if isinstance(x, dict):
        return {str(k): jsonable(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [jsonable(v) for v in x]
    if hasattr(x, "tolist"):  # numpy scalars and arrays
        return jsonable(x.tolist())
    if isinstance(x, float) and not math.isfinite(x):
        return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"
    return x


def encode(findings: list[Finding]) -> bytes:
    """Findings as a JSON array; the same findings give the same bytes."""
    return msgspec.json.encode([jsonable(msgspec.to_builtins(f, enc_hook=jsonable)) for f in findings])


def decode(data: bytes) -> list[Finding]:
    """Findings from ``encode``. Raises ``msgspec.ValidationError`` where the contract is broken."""
    return msgspec.json.decode(data, type=list[Finding])


def onset_order(f: Finding) -> tuple[str, str, int, int, int]:
    """Sort key: run, code, attempt, then onset (unknown onsets last)."""
    onset = f.where.step_start
    return (f.run, f.code, f.attempt or 0, onset is None, onset or 0)


def rank_order(f: Finding) -> tuple[int, int, float, str, int]:
    """Sort key for people: alarms first, then by severity, then by what it cost."""
    return (
        STATUS_ORDER[f.status],
        SEVERITY_ORDER[f.severity],
        -(f.wasted_gpu_s or 0.0),
        f.code,
        f.where.step_start or 0,
    )
