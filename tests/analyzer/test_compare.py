"""Two traces side by side, and what cannot be set side by side."""

from __future__ import annotations

import pytest

from afterrun.analyzer.compare import compare
from afterrun.analyzer.view import RunView
from tests.support.traces import TraceBook


def job(wait_us: float, steps: int = 8, name: str = "kernel") -> RunView:
    book = TraceBook()
    for k in range(steps):
        at = k * (1000 + wait_us)
        book.span("annotation", f"ProfilerStep#{k}", at, 1000 + wait_us, step=k)
        book.work(at, 1000, called_us=at - 5, name=name)
        book.span("data", "next_batch", at + 1000, wait_us)
    return book.view()


def rows(base: RunView, candidate: RunView) -> dict[str, tuple[float | None, float | None]]:
    return {r.name: (r.base, r.candidate) for r in compare(base, candidate).rows}


def test_shares_steps_and_kernels() -> None:
    found = rows(job(1000), job(0, name="other"))
    # 8 kernels of 1,000 us, 7 gaps of 1,000 us
    assert found["busy"] == (pytest.approx(100 * 8 / 15), pytest.approx(100))
    assert found["waiting for data"] == (pytest.approx(100 * 7 * 998 / 15000), 0)
    assert found["median step"] == (2.0, 1.0)
    assert found["kernel"] == (pytest.approx(100), 0)
    assert found["other"] == (0, pytest.approx(100))


def test_a_capture_without_activity_is_not_comparable() -> None:
    empty = TraceBook()
    empty.span("cpu_op", "aten::mm", 0, 10)
    found = compare(job(1000), empty.view())
    assert not found.comparable
    assert any(text.startswith("no GPU activity") for text in found.missing)
    assert all(r.candidate is None for r in found.rows if r.group == "GPU time")


def test_the_document_is_strict_json() -> None:
    document = compare(job(1000), job(0)).document()
    assert document["version"] == 1
    assert document["comparable"] is True
    assert {"group", "name", "unit", "base", "candidate", "change_pct"} == set(document["rows"][0])
