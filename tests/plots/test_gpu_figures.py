"""Figures of traces and counters: what is prepared, checkable by hand, and that it can be drawn."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

from afterrun.analyzer.passes.gpu_idle import GpuIdle
from afterrun.analyzer.registry import pass_types
from afterrun.analyzer.view import RunView
from afterrun.loaders.schema import SCHEMAS
from afterrun.plots.registry import Prepared, Skip, figures
from afterrun.plots.spec import FRAME
from afterrun.plots.theme import SCREEN, paper
from tests.analyzer.test_counter_passes import view as counters
from tests.analyzer.test_gpu_passes import ranks
from tests.support.tables import make_tables, make_view
from tests.support.traces import TraceBook

TRACE_FIGURES = ("gpu-timeline", "gap-waterfall", "step-stack", "kernel-table", "loader-time")
GIB = 2.0**30


def job() -> RunView:
    """Three steps of 1,000 us: 400 us computing, 500 us waiting for data, the rest launching."""
    book = TraceBook()
    for k in range(3):
        book.span("annotation", f"ProfilerStep#{k}", k * 1000, 1000, step=k)
        book.span("data", "next_batch", k * 1000 + 400, 500)
        book.work(k * 1000, 400, called_us=k * 1000 - 90, call_us=80, name="void big<float>(int)")
    return book.view()


def prepared(name: str, view: RunView) -> Prepared:
    made = figures()[name].prepare(view, list(GpuIdle().run(view)))
    assert isinstance(made, Prepared), made
    assert made.frame.schema == FRAME
    return made


def test_the_waterfall_adds_up_to_the_span() -> None:
    made = prepared("gap-waterfall", job())
    boxes = made.frame.filter(pl.col("layer") == "box")
    assert boxes.select("name", pl.col("x", "x_end").round(6)).rows() == [
        ("compute", 0.0, 1.2),
        ("dataloader", 1.2, 2.2),
        ("launch", 2.2, 2.4),
    ]
    assert made.x.label == "time, ms"
    assert made.panels[0].rows == ("computing", "idle: waiting for data", "idle: launching")
    assert "gpu-idle" in made.codes


def test_the_timeline_stacks_to_one_row_a_device() -> None:
    made = prepared("gpu-timeline", ranks(200, 1))
    assert len(made.panels[0].rows) == 3
    areas = made.frame.filter(pl.col("layer") == "area")
    height = (
        areas.with_columns(pl.col("low").round(0).alias("row"))
        .group_by("row", "x")
        .agg((pl.col("low") - pl.col("high")).sum())
    )
    assert height["low"].max() == pytest.approx(0.8)
    assert height.filter(pl.col("x") < 15)["low"].min() == pytest.approx(0.8)


def test_steps_are_made_of_their_parts() -> None:
    boxes = prepared("step-stack", job()).frame
    by = boxes.group_by("name").agg((pl.col("high") - pl.col("low")).sum().round(6)).sort("name")
    # the last step has no gap behind its work
    assert by.rows() == [("compute", 1200), ("dataloader", 1000), ("launch", 200)]


def test_steps_of_a_host_that_runs_ahead_are_those_of_the_device() -> None:
    """Steps are queued in 100 us each and take the device 1,000 us; the second one 3,000 us."""
    book = TraceBook()
    start = 200.0
    for k, dur in enumerate((1000, 3000, 1000)):
        book.span("annotation", f"ProfilerStep#{k}", k * 100, 100, step=k)
        book.work(start, dur, called_us=k * 100 + 20)
        start += dur
    made = prepared("step-stack", book.view())
    boxes = made.frame.sort("x")
    assert (boxes["high"] - boxes["low"]).to_list() == [1000, 3000, 1000]
    assert "median 1 ms, from the end of the GPU work of one to that of the next" in made.note
    alone = TraceBook()
    for k in range(3):
        alone.span("annotation", f"ProfilerStep#{k}", k * 1000, 1000, step=k)
        alone.work(k * 1000, 400)
    assert "as the host marks them" in prepared("step-stack", alone.view()).note


def test_clocks_of_ranks_are_aligned_on_the_timeline() -> None:
    """Without that the 16 ms of work would lie in a capture of 156 ms."""
    together, apart = (prepared("gpu-timeline", ranks(0, 0, offset_us=by)) for by in (0, 70_000))
    assert apart.x.high == pytest.approx(together.x.high)
    assert "clocks aligned on the ends of collectives" in apart.note
    assert "clocks" not in together.note


def test_kernels_by_their_share() -> None:
    made = prepared("kernel-table", job())
    assert made.panels[0].rows == ("big",)
    (label,) = made.frame.filter(pl.col("layer") == "label")["name"]
    assert label == "100 % · 3 launches · median 400 us"


def test_kernels_of_one_template_are_told_apart() -> None:
    book = TraceBook()
    for k, functor in enumerate(("FillFunctor<float>", "AddFunctor<float>")):
        name = f"void at::native::vectorized_elementwise_kernel<4, at::native::{functor}, at::detail::Array<char*, 1> >(int)"
        book.work(k * 1000, 400 - k, name=name)
    assert prepared("kernel-table", book.view()).panels[0].rows == (
        "vectorized_elementwise_kernel · FillFunctor",
        "vectorized_elementwise_kernel · AddFunctor",
    )


def test_ranks_that_share_no_collective_leave_holes() -> None:
    """Many collectives, most of them without rank 2: no mean of nothing is taken."""
    books = [TraceBook(rank=r) for r in range(3)]
    for k in range(600):
        for r in range(3 if k < 3 else 2):
            books[r].work(k * 100, 50, lane="comm", name="ncclDevKernel_AllReduce_Sum_f32", device=r)
    made = prepared("rank-heat", books[0].view(*books[1:]))
    drawn = made.frame.group_by((pl.col("low") + 0.46).round(0).alias("row")).len().sort("row")
    assert drawn["len"].to_list() == [240, 240, 1]


def test_the_late_rank_is_dark() -> None:
    made = prepared("rank-heat", ranks(200, 1))
    dark = (
        made.frame.group_by((pl.col("low") + 0.46).round(0).alias("row")).agg(pl.col("y").max()).sort("row")
    )
    assert dark["y"].to_list() == [0.0, 1.0, 0.0]
    assert made.panels[0].rows == ("rank 0", "rank 1", "rank 2")


def test_loader_calls_and_the_idle_time_inside() -> None:
    made = prepared("loader-time", job())
    calls = made.frame.filter(pl.col("name") == "call")["high"]
    idle = made.frame.filter(pl.col("name") == "idle")["high"]
    assert calls.to_list() == [500, 500, 500]
    assert idle.to_list() == [500, 500, 0]  # behind the last kernel there is no gap
    assert made.panels[0].y_label == "time in the call, us"


def test_memory_of_the_allocator_stays_until_it_changes() -> None:
    def drawn(counter: str) -> list[tuple[float, float | None]]:
        made = prepared("memory", counters((0, counter, [0.0, GIB, 2 * GIB])))
        return made.frame.select("x", "y").rows()

    assert drawn("mem_alloc_bytes") == [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (2, 2)]
    assert drawn("mem_used_bytes") == [(0, 0), (1, 1), (2, 2)]


def test_no_memory_is_drawn_where_none_was_recorded() -> None:
    made = prepared("memory", counters((0, "mem_used_bytes", [GIB, GIB, np.nan, GIB, GIB])))
    assert [y is None or np.isnan(y) for y in made.frame["y"]] == [False, False, True, False, False]


def test_names_of_four_panels_stand_apart_and_are_whole() -> None:
    rows = [(0, c, [1.0, 2.0]) for c in ("gpu_util_pct", "mem_used_bytes", "sm_clock_hz", "temp_c")]
    figure = figures()["utilization"].draw(prepared("utilization", counters(*rows)), SCREEN)
    names = [t for t in figure.texts if str(t.get_gid()).startswith("ylabel-")]
    assert [t.get_text() for t in names] == ["utilisation, %", "memory, GiB", "clock, MHz", "temp., °C"]
    boxes = [t.get_window_extent() for t in names]
    assert all(above.y0 > below.y1 for above, below in itertools.pairwise(boxes))


def test_counters_have_units_and_keep_holes() -> None:
    run = counters(
        (0, "gpu_util_pct", [90.0] * 30),
        (0, "mem_used_bytes", [GIB * 3] * 30),
        (1, "gpu_util_pct", [10.0] * 30),
    )
    made = figures()["utilization"].prepare(run, [])
    assert isinstance(made, Prepared)
    assert [p.y_label for p in made.panels] == ["utilisation, %", "memory, GiB"]
    assert made.frame.filter(pl.col("panel") == "mem_used_bytes")["y"].max() == 3
    memory = figures()["memory"].prepare(run, [])
    assert isinstance(memory, Prepared)
    assert memory.panels[0].y_label == "memory, GiB"


@pytest.mark.parametrize("name", TRACE_FIGURES)
def test_without_a_trace_there_is_a_reason_and_no_figure(name: str) -> None:
    found = figures()[name].prepare(counters((0, "temp_c", [1.0])), [])
    assert isinstance(found, Skip)
    assert len(found.reason) > 10


@pytest.mark.parametrize("theme", [SCREEN, paper(1)], ids=["screen", "paper"])
@pytest.mark.parametrize("name", TRACE_FIGURES)
def test_every_figure_can_be_drawn(name: str, theme: object) -> None:
    drawn = figures()[name].draw(prepared(name, job()), theme)  # type: ignore[arg-type]
    assert drawn.axes


def test_hostile_names_of_kernels_are_drawn_as_text() -> None:
    book = TraceBook()
    for k, name in enumerate(
        ["$\\frac{1}{0}$", "<script>alert(1)</script>", "漢字カーネル", "a\nb\x00c", "", "x" * 5000]
    ):
        book.work(k * 10, 10, name=name)
    made = prepared("kernel-table", book.view())
    assert len(made.panels[0].rows) == 6
    assert figures()["kernel-table"].draw(made, SCREEN).axes


def test_categories_of_memory_stack_to_what_is_held() -> None:
    """4 GiB of before, 2 GiB of the forward pass for a while, 1 GiB of gradients."""
    held = [("before the record", 0, 4.0), ("forward", 0, 2.0), ("backward", 1, 1.0), ("forward", 2, 0.0)]
    samples = pl.DataFrame(
        [
            {
                **dict.fromkeys(SCHEMAS["samples"]),
                "run": "run",
                "source": "s.pickle",
                "device": 0,
                "series": f'category="{name}"',
                "counter": "mem_category_bytes",
                "t_ns": at * 10**6,
                "value": gib * GIB,
            }
            for name, at, gib in held
        ],
        schema=SCHEMAS["samples"],
    )
    made = figures()["memory-by-category"].prepare(
        RunView(name="run", tables=make_tables({}).with_(samples=samples)), []
    )
    assert isinstance(made, Prepared)
    tops = {
        name: made.frame.filter(pl.col("name") == name).select("x", "high").rows()
        for name in ("before the record", "backward", "forward")
    }
    assert [y for _, y in tops["before the record"]] == [4.0, 4.0, 4.0, 4.0]
    assert [y for _, y in tops["forward"]] == [4.0, 6.0, 7.0, 5.0]
    assert [x for x, _ in tops["forward"]] == [0.0, 0.0, 1.0, 2.0]
    assert made.note.startswith(
        "peak of 7.00 GiB in tensors: before the record 57 %, forward 29 %, backward 14 %"
    )
    assert figures()["memory-by-category"].draw(made, SCREEN) is not None


def test_times_of_logged_steps_with_the_onset_of_a_drift() -> None:
    """0.1 s a step, 0.2 s from step 300 on, half of it waiting."""
    n = 600
    seconds = np.where(np.arange(n) < 300, 0.1, 0.2)
    run = make_view({"train/step_time": (range(n), seconds), "train/data_time": (range(n), seconds / 2)})
    drift = list(pass_types()["throughput-drift"]().run(run))
    made = figures()["step-time"].prepare(run, drift)
    assert isinstance(made, Prepared)
    assert made.panels[0].y_label == "time a step, ms"
    usual = made.frame.filter(pl.col("name") == "usual").sort("x")["y"]
    assert (usual[0], usual[-1]) == (pytest.approx(100.0), pytest.approx(200.0))
    (flag,) = made.marks
    assert (flag.code, flag.shape, flag.xs[0]) == ("throughput-drift", "flag", pytest.approx(300, abs=10))
    assert made.frame.filter(pl.col("name") == "data")["y"].max() == pytest.approx(100.0)
    assert figures()["step-time"].draw(made, SCREEN) is not None


def test_steps_of_a_trace_are_left_to_their_own_figure() -> None:
    assert isinstance(figures()["step-time"].prepare(job(), []), Skip)


def test_kernels_stand_in_the_field_of_their_limit() -> None:
    numbers = [("gemm", 90.0, 20.0, 5e6), ("copy", 5.0, 85.0, 2e6)]
    names = (
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "gpu__time_duration.sum",
    )
    kernels = pl.DataFrame(
        [
            {
                "run": "run",
                "source": "k.csv",
                "attempt": 1,
                "rank": None,
                "device": 0,
                "name": name,
                "launch": i,
                "metric": metric,
                "unit": "",
                "value": value,
            }
            for i, (name, *values) in enumerate(numbers)
            for metric, value in zip(names, values, strict=True)
        ],
        schema=SCHEMAS["kernels"],
    )
    tables = make_tables({"epoch": ([0], [0.0])}).with_(kernels=kernels)
    made = prepared("roofline", RunView(name="run", tables=tables.validate()))
    fields = made.frame.filter(pl.col("layer") == "heat").select("x", "x_end", "low", "high").rows()
    words = made.frame.filter(pl.col("layer") == "label")["name"].to_list()
    inside = [
        words[i]
        for _, x, y, _ in numbers
        for i, (left, right, low, high) in enumerate(fields)
        if left <= x <= right and low <= y <= high
    ]
    assert inside == ["limited by computing", "limited by memory"]
    assert words[4:] == ["  gemm, 5 ms", "  copy, 2 ms"]
