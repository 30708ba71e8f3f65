"""Passes on counters: utilisation, clocks, memory. Values that can be added up by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from afterrun.analyzer.counters.series import CounterSeries, counter_series
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.registry import pass_types
from afterrun.analyzer.view import RunView
from afterrun.loaders.schema import SCHEMAS
from tests.support.tables import make_tables

GIB = 2.0**30
Row = tuple[int | None, str, Sequence[float] | np.ndarray]


def view(*rows: Row, every_s: float | None = 1.0, at_s: Sequence[float] | None = None) -> RunView:
    """A run with samples: (device, counter, values), one sample every ``every_s``, or ``at_s``."""
    frames = [
        pl.DataFrame(
            {
                "run": "run",
                "source": "gpu.csv",
                "attempt": 1,
                "rank": None,
                "host": None,
                "device": device,
                "series": "",
                "counter": counter,
                "t_ns": None
                if every_s is None
                else [
                    int((10**9 + (i * every_s if at_s is None else at_s[i])) * 10**9)
                    for i in range(len(values))
                ],
                "value": np.asarray(values, np.float64),
            },
            schema=SCHEMAS["samples"],
        )
        for device, counter, values in rows
    ]
    tables = make_tables({"epoch": ([0], [0.0])})
    return RunView(name="run", tables=tables.with_(samples=pl.concat(frames)).validate())


def of_series(of: RunView, device: int | None, series: str) -> RunView:
    """The view with the samples of one device told apart by ``series``."""
    mine = pl.col("device").eq_missing(device)
    samples = of.tables.samples.with_columns(
        series=pl.when(mine).then(pl.lit(series)).otherwise(pl.col("series").cast(pl.String))
    ).cast({"series": SCHEMAS["samples"]["series"]})
    return RunView(name="run", tables=of.tables.with_(samples=samples).validate())


def found(code: str, of: RunView) -> list[Finding]:
    return list(pass_types()[code]().run(of))


def one(values: Sequence[float], t_s: Sequence[float] | None = None) -> CounterSeries:
    return CounterSeries(
        counter="gpu_util_pct",
        device=0,
        rank=None,
        host=None,
        series="",
        source="x",
        t_ns=None if t_s is None else (np.asarray(t_s) * 1e9).astype(np.int64),
        value=np.asarray(values, np.float64),
    )


class TestSeries:
    def test_a_sample_stands_for_the_time_to_the_next(self) -> None:
        s = one([100, 0, 0], [0, 3, 4])  # held 3, 1 and (median) 2 s
        assert s.interval_s == 2
        assert s.weight_s.tolist() == [3, 1, 2]
        assert s.mean == pytest.approx(50)

    def test_a_hole_is_neither_idle_nor_busy(self) -> None:
        # samples each second, 90 s without any: the last before the hole stands for 3 s
        s = one([90, 90, 90, 0, 0], [0, 1, 2, 92, 93])
        assert s.weight_s.tolist() == [1, 1, 3, 1, 1]
        assert s.mean == pytest.approx(90 * 5 / 7)

    def test_quantiles_are_of_time(self) -> None:
        s = one([10, 20, 30], None)
        assert (s.quantile(0.3), s.quantile(0.5), s.quantile(1.0)) == (10, 20, 30)

    def test_b53_a_sample_that_is_no_number_ends_the_one_before_it(self) -> None:
        """Every 15 s, stale marks at 5 and 6, +Inf at 9, nothing from 11 to 15."""
        at = [*range(11), *range(16, 20)]
        values = [np.nan if i in (5, 6) else np.inf if i == 9 else 90.0 for i in at]
        (whole,) = counter_series(view((0, "gpu_util_pct", values), at_s=[15 * i for i in at]).tables.samples)
        assert len(whole) == 12
        # of the sample before a stale mark 15 s are known, of that before the gap 45 s (three intervals)
        assert whole.weight_s.tolist() == [15, 15, 15, 15, 15, 15, 15, 45, 15, 15, 15, 15]
        assert whole.holes.tolist() == [4, 6, 7]
        assert whole.unobserved_s == 30 + 15 + 75
        assert whole.part(5).weight_s.tolist() == [15, 15, 45, 15, 15, 15, 15]

    def test_devices_that_take_turns_are_two_series(self) -> None:
        both = view((0, "gpu_util_pct", [95] * 10), (1, "gpu_util_pct", [0] * 10))
        assert [(s.device, s.mean) for s in counter_series(both.tables.samples)] == [(0, 95), (1, 0)]


class TestLowUtilization:
    def test_little_use_is_suspected_and_never_confirmed_from_samples(self) -> None:
        (low,) = found("low-utilization", view((0, "gpu_util_pct", [20.0] * 100)))
        assert (low.status, low.severity) == ("possible", "critical")
        assert low.values["mean_pct"] == pytest.approx(20)
        assert low.wasted_gpu_s == pytest.approx(99 * 0.8)

    def test_start_up_is_left_out(self) -> None:
        (low,) = found("low-utilization", view((0, "gpu_util_pct", [0.0] * 60 + [95.0] * 60)))
        assert low.status == "refuted"
        assert low.values["mean_pct"] == pytest.approx(95)

    def test_b50_an_unused_device_is_told_apart(self) -> None:
        used, unused = found(
            "low-utilization", view((0, "gpu_util_pct", [95.0] * 50), (1, "gpu_util_pct", [0.0] * 50))
        )
        assert (used.status, unused.status, unused.severity) == ("refuted", "possible", "info")
        assert unused.where.device == 1
        assert "GPU 1 was never used while GPU 0 was in use 95 % of the time" in unused.title

    def test_an_unused_device_whose_memory_is_held_is_a_warning(self) -> None:
        busy, idle = [95.0] * 50, [0.0] * 50
        rows = [(0, "gpu_util_pct", busy), (1, "gpu_util_pct", idle), (1, "mem_used_bytes", [20 * GIB] * 50)]
        unused = found("low-utilization", view(*rows))[1]
        assert (unused.severity, unused.values["held_bytes"]) == ("warning", 20 * GIB)

    def test_devices_without_any_at_work_are_not_told_apart(self) -> None:
        both = found(
            "low-utilization", view((0, "gpu_util_pct", [0.0] * 50), (1, "gpu_util_pct", [0.0] * 50))
        )
        assert [f.status for f in both] == ["refuted", "refuted"]

    def test_a_total_of_all_devices_is_left_out_where_each_has_its_own(self) -> None:
        rows = [(0, "gpu_util_pct", [90.0] * 50), (None, "gpu_util_pct", [10.0] * 50)]
        assert [f.where.device for f in found("low-utilization", view(*rows))] == [0]
        assert found("low-utilization", view(rows[1]))[0].severity == "critical"

    def test_extremes_over_ranks_are_no_device(self) -> None:
        """The least used rank of every report is each time another one."""
        rows = [(0, "gpu_util_pct", [90.0] * 50), (None, "gpu_util_pct", [10.0] * 50)]
        both = of_series(view(*rows), None, 'extreme="min"')
        assert [(f.where.device, f.status) for f in found("low-utilization", both)] == [(0, "refuted")]
        alone = of_series(view(rows[1]), None, 'extreme="min"')
        assert [f.status for f in found("low-utilization", alone)] == ["abstained"]

    def test_nothing_recorded_is_no_answer(self) -> None:
        (low,) = found("low-utilization", view((0, "temp_c", [50.0] * 50)))
        assert low.status == "abstained"


class TestThrottled:
    @staticmethod
    def clocks(reasons: float | None, temp_slow: float = 84.0) -> RunView:
        n = 100
        slow = np.arange(n) >= 60
        rows: list[Row] = [
            (0, "sm_clock_hz", np.where(slow, 1.2e9, 1.5e9)),
            (0, "gpu_util_pct", np.full(n, 98.0)),
            (0, "temp_c", np.where(slow, temp_slow, 70.0)),
        ]
        if reasons is not None:
            rows.append((0, "throttle_reasons", np.where(slow, reasons, 0.0)))
        return view(*rows)

    def test_heat_is_confirmed_by_reasons_or_by_temperature(self) -> None:
        for reasons in (0x40, 0x20, None):
            (hot,) = found("throttled", self.clocks(reasons))
            assert (hot.status, hot.severity) == ("confirmed", "warning")
            assert hot.values["drop_pct"] == pytest.approx(20)
            assert hot.values["slow_share_pct"] == pytest.approx(40)
            assert hot.wasted_gpu_s == pytest.approx(40 * 0.2)

    def test_a_power_cap_is_named(self) -> None:
        (cap,) = found("throttled", self.clocks(0x4))
        assert "power limit" in cap.title

    def test_a_drop_without_any_reason_is_possible(self) -> None:
        (cold,) = found("throttled", self.clocks(None, temp_slow=60.0))
        assert cold.status == "possible"

    def test_low_clocks_of_an_idle_device_are_no_throttling(self) -> None:
        n = 100
        idle = np.arange(n) >= 60
        rows = (
            (0, "sm_clock_hz", np.where(idle, 2.1e8, 1.5e9)),
            (0, "gpu_util_pct", np.where(idle, 0.0, 98.0)),
        )
        (fine,) = found("throttled", view(*rows))
        assert fine.status == "refuted"


class TestMemory:
    def test_a_leak_goes_on_to_the_end(self) -> None:
        t = np.arange(400.0)
        used = 20 * GIB + 0.02 * GIB * t + 2 * GIB * ((t % 20) / 20)
        (leak,) = found(
            "memory-growth", view((0, "mem_used_bytes", used), (0, "mem_total_bytes", np.full(400, 80 * GIB)))
        )
        assert (leak.status, leak.severity) == ("confirmed", "warning")
        assert leak.values["bytes_per_s"] == pytest.approx(0.02 * GIB, rel=0.15)
        assert leak.values["seconds_until_full"] == pytest.approx(52 / 0.02, rel=0.2)

    def test_a_saw_whose_floor_stays_is_no_leak(self) -> None:
        t = np.arange(400.0)
        (saw,) = found("memory-growth", view((0, "mem_used_bytes", 20 * GIB + 8 * GIB * ((t % 57) / 57))))
        assert saw.status == "refuted"

    def test_growth_that_slows_down_is_not_called_a_leak(self) -> None:
        t = np.arange(600.0)
        (slow,) = found("memory-growth", view((0, "mem_used_bytes", 20 * GIB + GIB * np.log1p(t / 20))))
        assert (slow.status, slow.severity) == ("possible", "info")

    def test_too_few_samples_are_no_answer(self) -> None:
        (few,) = found("memory-growth", view((0, "mem_used_bytes", [1.0, 2.0, 3.0])))
        assert few.status == "abstained"

    @pytest.mark.parametrize(
        ("peak", "status", "severity"),
        [(78.5, "possible", "warning"), (75, "possible", "info"), (40, "refuted", "info")],
    )
    def test_how_near_to_full(self, peak: float, status: str, severity: str) -> None:
        used = [30 * GIB] * 49 + [peak * GIB]
        (limit,) = found(
            "memory-limit", view((0, "mem_used_bytes", used), (0, "mem_total_bytes", [80 * GIB] * 50))
        )
        assert (limit.status, limit.severity) == (status, severity)
        assert limit.values["peak_pct"] == pytest.approx(100 * peak / 80)

    def test_room_for_a_larger_batch(self) -> None:
        (room,) = found(
            "batch-headroom",
            view((0, "mem_used_bytes", [20 * GIB] * 50), (0, "mem_total_bytes", [80 * GIB] * 50)),
        )
        assert (room.status, room.severity) == ("possible", "info")
        assert room.values["batch_ratio"] == pytest.approx(0.92 * 80 / 20)

    def test_what_the_allocator_holds_and_does_not_use(self) -> None:
        rows = ((0, "mem_reserved_bytes", [10 * GIB, 20 * GIB]), (0, "mem_alloc_bytes", [9 * GIB, 10 * GIB]))
        (apart,) = found("fragmentation", view(*rows))
        assert (apart.status, apart.severity) == ("possible", "info")
        assert apart.values["unused_pct"] == pytest.approx(50)
        (pressed,) = found("fragmentation", view(*rows, (0, "alloc_retries", [0.0, 3.0])))
        assert pressed.severity == "warning"


class TestSampling:
    def test_a_slow_sampler_cannot_show_short_stalls(self) -> None:
        (slow,) = found("undersampled", view((0, "gpu_util_pct", [50.0] * 20), every_s=60.0))
        assert (slow.status, slow.severity) == ("possible", "info")
        assert slow.values["blind_below_s"] == 120

    def test_a_quick_one_is_fine(self) -> None:
        (fine,) = found("undersampled", view((0, "gpu_util_pct", [50.0] * 20), every_s=0.1))
        assert fine.status == "refuted"

    def test_without_a_clock_there_is_no_answer(self) -> None:
        (none,) = found("undersampled", view((0, "gpu_util_pct", [50.0] * 20), every_s=None))
        assert none.status == "abstained"

    def test_totals_and_extremes_are_not_judged(self) -> None:
        """The total of all devices comes each minute, the device itself each 0.1 s."""
        total = view((None, "gpu_util_pct", [50.0] * 20), every_s=60.0).tables.samples
        own = view((0, "gpu_util_pct", [50.0] * 20), every_s=0.1)
        both = own.tables.with_(samples=pl.concat([own.tables.samples, total]))
        (fine,) = found("undersampled", RunView(name="run", tables=both.validate()))
        assert (fine.status, fine.values["interval_s"]) == ("refuted", 0.1)
        extreme = of_series(view((None, "gpu_util_pct", [50.0] * 20)), None, 'extreme="max"')
        assert [f.status for f in found("undersampled", extreme)] == ["abstained"]

    def test_b53_stale_marks_and_gaps_are_time_without_a_sample(self) -> None:
        values = [np.nan if i in (5, 6) else 90.0 for i in range(20)]
        (told,) = found("undersampled", view((0, "gpu_util_pct", values)))
        assert told.values["holes_pct"] == pytest.approx(100 * 2 / 19)
        assert "11 % of the time has no sample" in told.title
