"""Idle time and its causes: jobs of a few events whose answer can be added up by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.gpu_idle import GpuIdle
from afterrun.analyzer.trace.trace import Trace
from afterrun.analyzer.view import RunView
from tests.support.traces import MAIN, TraceBook


def only(view: RunView) -> Finding:
    (found,) = GpuIdle().run(view)
    return found


def causes(view: RunView) -> dict[str, int]:
    """Idle microseconds by cause, those that are not zero."""
    return {k: v // 1000 for k, v in only(view).values["by_cause_ns"].items() if v}


def loader_job(wait_us: float, lane: str = "data") -> TraceBook:
    """Two kernels of 100 us; between them the host waits ``wait_us`` for a batch, then launches within 4 us."""
    book = TraceBook()
    book.work(0, 100, called_us=-5)
    book.span(lane, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100, wait_us)
    book.work(100 + wait_us + 6, 100, called_us=100 + wait_us + 1, call_us=3)
    return book


def test_a_wait_for_data_is_charged_to_the_loader() -> None:
    found = only(loader_job(5000).view())
    by = found.values["by_cause_ns"]
    assert found.values["span_ns"] == 5_206_000
    assert found.values["idle_ns"] == 5_006_000
    assert by["dataloader"] == 5_000_000
    assert by["launch"] == 6_000  # 1 us of dispatch, 3 us in the call, 2 us until the kernel starts
    assert sum(by.values()) == found.values["idle_ns"]
    assert (found.status, found.severity) == ("confirmed", "critical")
    assert found.values["ceiling_speedup"] == pytest.approx(5206 / 206)
    assert "waiting for data" in found.title


def test_work_that_was_queued_before_the_gap_is_no_fault_of_the_host() -> None:
    book = TraceBook()
    for k in range(3):
        book.work(k * 150, 100, called_us=-30 + k * 5)
    assert causes(book.view()) == {"kernel_gap": 100}
    assert only(book.view()).severity == "info"  # nothing that the host could win


def test_a_blocking_read_back_owns_the_gap_and_its_refill() -> None:
    book = TraceBook()
    book.work(0, 100, called_us=-5)
    book.span("runtime", "cudaStreamSynchronize", 10, 95)  # until 105: the device runs dry at 100
    book.span("cpu_op", "aten::add", 106, 30)
    book.work(133, 100, called_us=128, call_us=3)
    assert causes(book.view()) == {"sync": 33}


def test_a_wait_behind_a_copy_of_real_size_is_the_copys() -> None:
    book = TraceBook()
    book.work(
        0,
        100,
        called_us=-10,
        lane="memcpy",
        name="Memcpy HtoD (Pageable -> Device)",
        bytes_=1 << 20,
        call="cudaMemcpyAsync",
    )
    book.span("runtime", "cudaStreamSynchronize", -6, 115)
    book.work(140, 100, called_us=130)
    assert causes(book.view()) == {"memcpy": 40}


def test_long_time_without_any_event_is_unobserved_and_short_is_python() -> None:
    book = TraceBook()
    book.work(0, 100, called_us=-5)
    book.span("cpu_op", "aten::add", 90, 20)
    book.work(5000, 100, called_us=4995)
    book.span("cpu_op", "aten::mul", 4990, 5)
    assert causes(book.view()) == {"unobserved": 4880, "launch": 20}


def test_a_long_hole_with_system_calls_inside_is_theirs() -> None:
    book = TraceBook()
    book.work(0, 100, called_us=-5)
    book.span("os", "pthread_cond_timedwait", 200, 4000)
    book.work(5005, 100, called_us=5000)
    assert causes(book.view())["dataloader"] == 4905 - 5


def test_without_launch_calls_the_time_is_unobserved() -> None:
    book = TraceBook()
    book.work(0, 100)
    book.work(1000, 100)
    found = only(book.view())
    assert found.values["by_cause_ns"]["unobserved"] == 900_000
    assert found.values["launches_known_pct"] == 0


def test_a_trace_without_gpu_activity_is_not_assessable() -> None:
    book = TraceBook()
    book.span("runtime", "cudaGetDeviceCount", 0, 10)
    found = only(book.view())
    assert found.status == "abstained"
    assert "neither 0 nor 100 %" in found.title


def test_a_gap_of_one_stream_is_no_gap_of_the_device() -> None:
    book = TraceBook()
    book.work(0, 1000, stream=7)
    book.work(50_000, 1000, stream=7)
    book.work(0, 51_000, stream=8)
    found = only(book.view())
    assert found.status == "refuted"
    assert found.values["idle_ns"] == 0


def test_devices_keep_their_own_numbers() -> None:
    book = TraceBook()
    for device in range(1, 8):
        for k in range(20):
            book.work(k * 100, 99, device=device)
    found = list(GpuIdle().run(book.view()))
    assert [f.where.device for f in found] == list(range(1, 8))
    assert {f.values["idle_ns"] for f in found} == {19_000}


def test_count_and_sum_are_of_the_same_gaps() -> None:
    book = TraceBook()
    t = 0.0
    for k in range(104):
        book.work(t, 1000)
        t += 1000 + (2000 if k in (20, 50, 80) else 100)
    values = only(book.view()).values
    assert values["gaps"] == 103
    assert values["idle_ns"] == 16_000_000
    assert values["by_size_ns"]["macro"] == 6_000_000
    assert values["by_size_ns"]["meso"] == 10_000_000


def test_one_large_gap_at_the_start_is_told_apart() -> None:
    book = TraceBook()
    book.work(0, 1000)
    for k in range(2000):
        book.work(600_000 + k * 1000, 980)
    found = only(book.view())
    assert found.values["span_ns"] == 2_599_980_000
    assert found.values["idle_ns"] == 599_000_000 + 1999 * 20_000
    assert "599 ms of it in one gap" in found.title


def test_b70_steps_without_gpu_events_make_the_share_unreliable() -> None:
    book = TraceBook()
    for k in range(32):
        book.span("annotation", f"ProfilerStep#{k}", k * 1000, 1000, step=k)
    book.work(0, 999)
    book.work(1000, 999)
    found = only(book.view())
    assert (found.status, found.severity) == ("possible", "warning")
    assert found.title.startswith("30 of 32 steps hold no event of GPU 0")


times = st.integers(0, 2000)


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(times, st.integers(1, 300), st.integers(0, 3), st.booleans()), min_size=2, max_size=25
    ),
    st.lists(
        st.tuples(st.sampled_from(["cpu_op", "data", "runtime", "os"]), times, st.integers(0, 900)),
        max_size=12,
    ),
    st.integers(-500, 10**12),
)
def test_causes_sum_to_the_gap_and_nothing_depends_on_order_stream_or_clock(
    work: list[tuple[int, int, int, bool]], host: list[tuple[str, int, int]], shift: int
) -> None:
    def made(by: int, stream: int, *, backwards: bool) -> Trace:
        book = TraceBook()
        for start, dur, on, called in work:
            book.work(
                start + by, dur, stream=(on + stream) % 4, called_us=start + by - 20 if called else None
            )
        names = {"runtime": "cudaDeviceSynchronize", "data": "next_batch", "cpu_op": "aten::mm", "os": "read"}
        for lane, start, dur in host:
            book.span(lane, names[lane], start + by, dur)
        if backwards:
            book.rows.reverse()
        return Trace(spans=book.frame())

    one = made(0, 0, backwards=False)
    idle = one.idle(one.devices[0])
    assert (idle.ns >= 0).all()
    assert idle.ns.sum(axis=1).tolist() == idle.gaps.durations.tolist()
    assert sum(idle.by_cause_ns.values()) == one.devices[0].idle_ns
    assert sum(idle.by_size_ns.values()) == one.devices[0].idle_ns
    for other in (made(shift, 1, backwards=False), made(0, 0, backwards=True)):
        again = other.idle(other.devices[0])
        assert again.by_cause_ns == idle.by_cause_ns
        assert np.array_equal(again.gaps.durations, idle.gaps.durations)


def test_threads_that_do_not_launch_explain_nothing() -> None:
    book = loader_job(5000, lane="cpu_op")
    book.rows[2]["name"] = "aten::stack"
    book.span("data", "DataPipe worker", 0, 9000, track=MAIN + 7)
    assert causes(book.view())["launch"] == 5005


def test_a_long_hole_before_code_is_loaded_is_compiling() -> None:
    book = TraceBook()
    book.work(0, 100, called_us=-5)
    book.span("runtime", "cuModuleLoadData", 5000, 300)
    book.work(5320, 100, called_us=5310, name="triton_poi_fused_add")
    by = causes(book.view())
    assert by["compile"] == 4900 + 300
    assert "unobserved" not in by


def test_a_trace_of_a_device_alone_and_a_very_short_one() -> None:
    book = TraceBook()
    book.work(0, 10)
    book.work(50, 10)
    found = only(book.view())
    assert found.severity == "info"  # 60 us are no training
    assert found.values["by_cause_ns"]["unobserved"] == 40_000
