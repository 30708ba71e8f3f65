"""Passes on traces: jobs of a few events whose shares can be added up by hand."""

from __future__ import annotations

import pytest

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.registry import pass_types
from afterrun.analyzer.steps.times import step_times
from afterrun.analyzer.view import RunView
from tests.support.traces import TraceBook

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
MIB = 1 << 20


def found(code: str, view: RunView) -> list[Finding]:
    return list(pass_types()[code]().run(view))


def only(code: str, view: RunView) -> Finding:
    (one,) = found(code, view)
    return one


def no_gpu() -> TraceBook:
    book = TraceBook()
    book.span("cpu_op", "aten::mm", 0, 10)
    return book


@pytest.mark.parametrize(
    "code",
    [
        "gpu-idle",
        "launch-bound",
        "transfer-bound",
        "exposed-comm",
        "straggler",
        "imbalance",
        "kernel-hotspot",
        "no-tensor-cores",
        "checkpoint-stall",
        "slow-start",
    ],
)
def test_a_trace_without_gpu_activity_is_no_answer(code: str) -> None:
    one = only(code, no_gpu().view())
    assert one.status == "abstained"
    assert one.missing


class TestTransferBound:
    @staticmethod
    def job(copy_us: float, *, hidden: bool = False, bytes_: int = 64 * MIB) -> RunView:
        book = TraceBook()
        name = "Memcpy HtoD (Pageable -> Device)"
        book.work(
            0,
            copy_us,
            lane="memcpy",
            name=name,
            bytes_=bytes_,
            stream=13,
            called_us=-8,
            call="cudaMemcpyAsync",
        )
        start = 0 if hidden else copy_us
        book.work(start, 1000, called_us=-4)
        return book.view()

    def test_share_of_copies_that_nothing_hides(self) -> None:
        one = only("transfer-bound", self.job(1000))
        assert (one.status, one.severity) == ("confirmed", "critical")
        assert one.values["exposed_ns"] == 1_000_000
        assert one.values["exposed_pct"] == pytest.approx(50)

    def test_a_copy_under_a_kernel_costs_nothing(self) -> None:
        assert only("transfer-bound", self.job(1000, hidden=True)).status == "refuted"

    def test_a_value_read_back_is_no_transfer(self) -> None:
        assert only("transfer-bound", self.job(1000, bytes_=4)).values["exposed_ns"] == 0

    def test_copies_of_a_checkpoint_belong_to_it(self) -> None:
        book = TraceBook()
        book.work(0, 1000, called_us=-4)
        book.span("checkpoint", "save_checkpoint", 1000, 5000)
        name = "Memcpy DtoH (Device -> Pageable)"
        book.work(
            1010, 4000, lane="memcpy", name=name, bytes_=100 * MIB, called_us=1005, call="cudaMemcpyAsync"
        )
        book.work(6010, 1000, called_us=6004)
        assert only("transfer-bound", book.view()).values["exposed_ns"] == 0
        assert (
            only("checkpoint-stall", book.view()).values["checkpoint_ns"] == 998_000
        )  # but for the last launch


class TestLaunchBound:
    def test_small_kernels_behind_slow_launches(self) -> None:
        book = TraceBook()
        for k in range(10):
            book.span("cpu_op", "aten::add", k * 20, 18)
            book.work(k * 20 + 18, 2, called_us=k * 20 + 12, call_us=5)
        one = only("launch-bound", book.view())
        # nine gaps of 18 us in a span of 182 us
        assert one.values["launch_idle_ns"] == 9 * 18_000
        assert one.values["launch_idle_pct"] == pytest.approx(100 * 162 / 182)
        assert (one.status, one.severity) == ("confirmed", "critical")
        assert one.values["median_kernel_ns"] == 2000

    def test_without_launch_calls_there_is_no_verdict(self) -> None:
        book = TraceBook()
        book.work(0, 2)
        book.work(20, 2)
        assert only("launch-bound", book.view()).status == "abstained"


def ranks(late_us: float, who: int, *, steps: int = 12, of: int = 3, offset_us: float = 0.0) -> RunView:
    """Ranks that compute 1,000 us a step and then reduce for 100 us; one comes late. Clocks of rank k run ``k * offset_us`` ahead."""
    books = []
    for r in range(of):
        book = TraceBook(rank=r, process=r + 1)
        t = r * offset_us
        for _ in range(steps):
            own = 1000 + (late_us if r == who else 0)
            book.work(t, own, called_us=t - 10)
            book.work(t + own, 100 + 1000 + late_us - own, lane="comm", name=NCCL, stream=20, called_us=t - 5)
            t += 1100 + late_us + 1
        books.append(book)
    return books[0].view(*books[1:])


class TestStraggler:
    def test_the_rank_that_comes_last_is_named_with_its_cost_and_reason(self) -> None:
        one = only("straggler", ranks(150, 1))
        assert (one.status, one.severity, one.rank) == ("confirmed", "warning", 1)
        assert one.values["cost_ns"] == [0, 12 * 150_000, 0]
        assert one.values["last_share"][1] == 1.0
        assert one.values["wait_ns"] == [1_800_000, 0, 1_800_000]
        assert one.values["reason"] == "compute"
        assert one.wasted_gpu_s == pytest.approx(2 * 1.8e-3)

    def test_offsets_of_clocks_do_not_make_a_straggler(self) -> None:
        one = only("straggler", ranks(0, 0, offset_us=70_000))
        assert one.status == "refuted"
        assert one.values["clock_offset_ns"] == [0, 70_000_000, 140_000_000]

    def test_offsets_of_clocks_do_not_hide_one(self) -> None:
        one = only("straggler", ranks(200, 2, offset_us=-90_000))
        assert (one.status, one.rank) == ("confirmed", 2)

    def test_ranks_that_are_late_by_turns_are_no_straggler(self) -> None:
        books = [TraceBook(rank=r, process=r + 1) for r in range(3)]
        t = 0.0
        for step in range(12):
            for r, book in enumerate(books):
                own = 1200 if step % 3 == r else 1000
                book.work(t, own)
                book.work(t + own, 1300 - own, lane="comm", name=NCCL, stream=20)
            t += 1301
        view = books[0].view(*books[1:])
        assert only("straggler", view).status == "refuted"
        turns = only("imbalance", view)
        assert (turns.status, turns.severity) == ("possible", "info")
        assert turns.values["late_by_turns_pct"] == pytest.approx(100 * 12 * 200 / (12 * 1301 - 1))

    def test_one_rank_alone_is_no_answer(self) -> None:
        book = TraceBook(rank=0)
        book.work(0, 10, lane="comm", name=NCCL)
        assert only("straggler", book.view()).status == "abstained"

    def test_captures_that_begin_apart_are_matched_by_their_ends(self) -> None:
        view = ranks(200, 1)
        spans = view.tables.spans
        first = spans.filter((spans["rank"] == 2) & (spans["start_ns"] < 3 * 1_301_000))
        rest = spans.join(first, on=["rank", "start_ns", "lane"], how="anti")
        one = only("straggler", RunView(name="run", tables=view.tables.with_(spans=rest)))
        assert (one.rank, one.status) == (1, "confirmed")


class TestExposedComm:
    def test_moving_is_told_from_waiting(self) -> None:
        by_rank = {f.rank: f for f in found("exposed-comm", ranks(200, 1))}
        # 100 us of each 1,301 us step are exposed on the late rank; the others wait 200 us first
        assert by_rank[1].values["exposed_ns"] == 12 * 100_000
        assert by_rank[1].values["waiting_ns"] == 0
        assert by_rank[0].values["exposed_ns"] == 12 * 300_000
        assert by_rank[0].values["waiting_ns"] == 12 * 200_000
        assert {f.status for f in by_rank.values()} == {"refuted"}

    def test_one_rank_alone_can_only_suspect(self) -> None:
        book = TraceBook()
        for k in range(4):
            book.work(k * 1500, 1000)
            book.work(k * 1500 + 1000, 500, lane="comm", name=NCCL, stream=20)
        one = only("exposed-comm", book.view())
        assert (one.status, one.severity) == ("possible", "critical")
        assert one.values["exposed_pct"] == pytest.approx(100 / 3)

    def test_overlapped_communication_costs_nothing(self) -> None:
        book = TraceBook()
        book.work(0, 1000)
        book.work(100, 500, lane="comm", name=NCCL, stream=20)
        one = only("exposed-comm", book.view())
        assert one.status == "refuted"
        assert one.values["hidden_pct"] == 100


class TestUnseenHost:
    """Late launches without a word about what the host did: no cause that would be named there is denied."""

    @staticmethod
    def book(gap_us: float) -> TraceBook:
        book = TraceBook()
        for k in range(6):
            start = k * (1000 + gap_us)
            book.work(start + 20, 980, called_us=start)
        return book

    @pytest.mark.parametrize("code", ["loader-stall", "checkpoint-stall", "slow-start"])
    def test_the_cause_is_not_denied(self, code: str) -> None:
        one = only(code, self.book(gap_us=2000).view())
        assert one.status == "abstained"
        assert "NVTX" in one.missing[0]
        # five gaps of 2,020 us in a span of 15,980 us; 20 us of each are the launch
        assert one.values["unobserved_pct"] == pytest.approx(100 * 5 * 2000 / 15_980, rel=0.01)

    @pytest.mark.parametrize("code", ["loader-stall", "checkpoint-stall", "slow-start"])
    def test_a_busy_device_is_not_waiting(self, code: str) -> None:
        assert only(code, self.book(gap_us=0).view()).status == "refuted"

    def test_what_is_named_is_judged_by_its_name(self) -> None:
        """Loader calls and steps are recorded: what else the host did is neither loading nor, at this rhythm, saving."""
        book = self.book(gap_us=2000)
        for k in range(6):
            book.span("annotation", f"ProfilerStep#{k}", k * 3000, 3000, step=k)
            book.span(
                "data", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", k * 3000 + 10, 5
            )
        assert only("loader-stall", book.view()).status == "refuted"
        assert only("checkpoint-stall", book.view()).status == "refuted"


class TestLoaderStall:
    def test_idle_time_in_the_loader_by_device(self) -> None:
        book = TraceBook()
        for k in range(6):
            book.span("annotation", f"ProfilerStep#{k}", k * 2000, 2000, step=k)
            book.span("data", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", k * 2000, 990)
            book.work(k * 2000 + 1000, 1000, called_us=k * 2000 + 995)
        one = only("loader-stall", book.view())
        # five gaps of 1,000 us, 990 us of each inside next(), in a span of 11,000 us
        assert one.values["data_idle_ns"] == 5 * 990_000
        assert one.values["data_idle_pct"] == pytest.approx(45)
        assert (one.status, one.severity) == ("confirmed", "critical")
        assert one.values["stalls"] == 5

    def test_a_trace_of_the_host_alone_can_only_suspect(self) -> None:
        book = TraceBook()
        for k in range(5):
            book.span("data", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", k * 1000, 400)
            book.span("cpu_op", "aten::mm", k * 1000 + 400, 600)
        one = only("loader-stall", book.view())
        assert (one.status, one.severity) == ("possible", "critical")
        assert one.values["host_share_pct"] == pytest.approx(100 * 1600 / 4600)

    def test_logged_data_time_against_step_time(self) -> None:
        steps = list(range(1, 31))
        curves = {"train/data_time": (steps, [0.03] * 30), "train/step_time": (steps, [0.1] * 30)}
        one = only("loader-stall", TraceBook().view(curves=curves))
        assert (one.status, one.severity) == ("confirmed", "critical")
        assert one.values["share_pct"] == pytest.approx(30)


class TestKernels:
    def test_the_kernel_that_dominates(self) -> None:
        book = TraceBook()
        for k in range(4):
            book.work(k * 100, 80, name="void big<float>(int)")
            book.work(k * 100 + 80, 20, name="small")
        one = only("kernel-hotspot", book.view())
        assert one.values["share_pct"] == pytest.approx(80)
        assert one.values["top"][0]["short"] == "big"
        assert one.status == "confirmed"

    def test_plain_matrix_kernels(self) -> None:
        book = TraceBook()
        book.work(0, 60, name="ampere_sgemm_128x64_tn")
        book.work(60, 40, name="ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn")
        one = only("no-tensor-cores", book.view())
        assert one.values["plain_matrix_pct"] == pytest.approx(60)
        assert one.values["tensor_pct"] == pytest.approx(40)
        assert (one.status, one.severity) == ("possible", "info")


def test_compiling_is_a_slow_start() -> None:
    book = TraceBook()
    book.work(0, 10, called_us=-5)
    book.span("cpu_op", "inductor_compile", 20, 900_000)
    for k in range(10):
        book.work(900_100 + k * 1000, 1000, called_us=900_090 + k)
    one = only("slow-start", book.view())
    assert one.values["compile_ns"] == 900_000_000
    assert (one.status, one.severity) == ("confirmed", "critical")


def test_steps_that_copy_much_and_stand_still_look_like_checkpoints() -> None:
    book = TraceBook()
    for k in range(12):
        saves = k % 4 == 3
        at = k * 20_000.0
        book.span("annotation", f"ProfilerStep#{k}", at, 20_000, step=k)
        book.work(at, 10_000, called_us=at - 5)
        if saves:
            name = "Memcpy DtoH (Device -> Pageable)"
            book.work(
                at + 10_000,
                1000,
                lane="memcpy",
                name=name,
                bytes_=200 * MIB,
                called_us=at + 5,
                call="cudaMemcpyAsync",
            )
        else:
            book.work(at + 10_000, 9_900, called_us=at + 5)
    one = only("checkpoint-stall", book.view())
    assert one.status == "possible"
    assert one.values["copying_steps"]["step"] == [
        3,
        7,
    ]  # behind the last one nothing follows, so there is no gap


def test_a_device_starved_by_work_that_nobody_recorded() -> None:
    book = TraceBook()
    for k in range(5):
        book.work(k * 10_000, 1000, called_us=k * 10_000 - 5)
    low = only("low-utilization", book.view())
    assert (low.status, low.severity) == ("confirmed", "critical")
    assert low.values["busy_pct"] == pytest.approx(100 * 5 / 41)


def test_less_than_a_millisecond_is_no_warning() -> None:
    book = TraceBook()
    for k in range(5):
        book.work(k * 100, 20, called_us=k * 100 - 5)
    low = only("low-utilization", book.view())
    assert (low.status, low.severity) == ("confirmed", "info")
    assert low.values["span_ns"] == 420_000


def test_b70_use_is_not_known_where_the_capture_missed_steps() -> None:
    book = TraceBook()
    for k in range(32):
        book.span("annotation", f"ProfilerStep#{k}", k * 1000, 1000, step=k)
    book.work(0, 999)
    book.work(1000, 999)
    view = book.view()
    after = view.with_earlier(found("gpu-idle", view))
    assert only("low-utilization", after).status == "abstained"
    assert only("low-utilization", view).status == "refuted"


def test_a_host_that_runs_ahead_has_no_slow_steps() -> None:
    """40 steps of 1 ms on the device; the host queues nine in 0.1 ms each and waits in every tenth."""
    book = TraceBook()
    host = 0.0
    for k in range(40):
        dur = 100.0 if k % 10 else 9100.0
        book.span("annotation", f"ProfilerStep#{k}", host, dur, step=k)
        book.work(200 + k * 1000, 1000, called_us=host + 50)
        host += dur
    times = step_times(book.view())
    assert times is not None
    assert set(times.seconds) == {1e-3}
    assert only("step-outliers", book.view()).status == "refuted"
