"""What both stores of MLflow say of a run: states, times."""

from __future__ import annotations

import polars as pl

from afterrun.loaders.tables.cells import clock_unit_ns, moments, number

STATES = {"1": "RUNNING", "2": "SCHEDULED", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}
"""States of the file store, by the names that the database uses."""

_END_KINDS = {"FINISHED": "finish", "FAILED": "crash", "KILLED": "killed"}


def times_ns(times: pl.Series) -> pl.Series:
    """Int64 nanoseconds of times in milliseconds (or seconds, before MLflow 1); null where they are none."""
    unit_ns = clock_unit_ns(times)
    if unit_ns is None:
        return pl.repeat(None, len(times), dtype=pl.Int64, eager=True)
    return moments(times, unit_ns)


def marks(start: object, end: object, status: str) -> dict[str, pl.DataFrame]:
    """``marks`` of the start of a run and, by its state, of how it ended; none where nothing is recorded."""
    state = STATES.get(status, status.upper())
    rows: list[tuple[int | None, str, str]] = []
    started = _moment(start)
    if started is not None:
        rows.append((started, "start", "the run was created"))
    if state in _END_KINDS:
        rows.append((_moment(end), _END_KINDS[state], f"MLflow: {state}"))
    if not rows:
        return {}
    return {
        "marks": pl.DataFrame(
            rows, schema={"t_ns": pl.Int64, "kind": pl.String, "text": pl.String}, orient="row"
        )
    }


def _moment(value: object) -> int | None:
    read = number(str(value)) if value is not None else None
    if read is None:
        return None
    ns: int | None = times_ns(pl.Series([read], dtype=pl.Float64))[0]
    return ns
