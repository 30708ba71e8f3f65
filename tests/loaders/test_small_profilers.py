"""Memory snapshots, profiler reports, XSpace: values by hand, and pickles that would run code."""

from __future__ import annotations

import pickle
from pathlib import Path

import polars as pl
import pytest

from afterrun.loaders.collect import collect
from afterrun.loaders.collection import Collection
from tests.support.golden_profiles import DEEPSPEED, LIGHTNING, START_S, SUMMARY, Evil, snapshot, xplane

MIB = 1 << 20


def samples(found: Collection, counter: str) -> list[float]:
    return found.tables.samples.filter(pl.col("counter") == counter)["value"].to_list()


def status(found: Collection) -> list[str]:
    return found.tables.sources["status"].cast(pl.String).to_list()


class TestSnapshot:
    def test_totals_are_counted_back_from_what_is_held_at_the_end(self, tmp_path: Path) -> None:
        (tmp_path / "s.pickle").write_bytes(pickle.dumps(snapshot(), protocol=4))
        found = collect([tmp_path])
        assert samples(found, "mem_alloc_bytes") == [2 * MIB, 3 * MIB, 4 * MIB, 3 * MIB]
        assert samples(found, "mem_reserved_bytes") == [4 * MIB]
        assert found.tables.samples["t_ns"].min() == START_S * 10**9

    @pytest.mark.parametrize("protocol", [2, 3, 4, 5])
    def test_b78_every_protocol_of_today(self, tmp_path: Path, protocol: int) -> None:
        (tmp_path / "s.pickle").write_bytes(pickle.dumps(snapshot(), protocol=protocol))
        assert len(samples(collect([tmp_path]), "mem_alloc_bytes")) == 4

    def test_a_lost_beginning_does_not_shift_the_end(self, tmp_path: Path) -> None:
        made = snapshot()
        made["device_traces"] = [made["device_traces"][0][2:]]  # type: ignore[index]  # plain data
        (tmp_path / "s.pickle").write_bytes(pickle.dumps(made, protocol=4))
        assert samples(collect([tmp_path]), "mem_alloc_bytes")[-1] == 3 * MIB

    def test_b78_a_pickle_that_asks_for_code_is_refused_by_name(self, tmp_path: Path) -> None:
        (tmp_path / "snapshot.pickle").write_bytes(
            pickle.dumps({"segments": [Evil()], "device_traces": []}, protocol=4)
        )
        found = collect([tmp_path])
        assert status(found) == ["unreadable"]
        assert (
            "posix.system" in found.tables.sources["note"][0]
            or "nt.system" in found.tables.sources["note"][0]
        )

    def test_a_cut_pickle_is_unreadable(self, tmp_path: Path) -> None:
        (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps(snapshot(), protocol=4)[:-20])
        assert status(collect([tmp_path])) == ["unreadable"]


def test_memory_summary(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text(SUMMARY)
    found = collect([tmp_path])
    assert samples(found, "mem_alloc_bytes") == [MIB]
    assert samples(found, "mem_alloc_peak_bytes") == [2048 * MIB]
    assert samples(found, "mem_reserved_freed_bytes") == [3584 * MIB]
    assert samples(found, "alloc_retries") == [2]
    assert samples(found, "ooms") == [1]


def test_lightning_simple_and_advanced(tmp_path: Path) -> None:
    (tmp_path / "simple.txt").write_text(LIGHTNING)
    (tmp_path / "advanced.txt").write_text(
        "FIT Profiler Report\nProfile stats for: train_dataloader_next\n         55557 function calls (55515 primitive calls) in 0.846 seconds\n\n   Ordered by: cumulative time\n"
    )
    found = collect([tmp_path])
    assert samples(found, "action_calls") == [1, 10]
    assert sorted(samples(found, "action_total_s")) == [0.846, 2.0, 16.0]


def test_deepspeed_figures_in_base_units(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text(DEEPSPEED)
    rows = collect([tmp_path]).tables.params
    got = dict(zip(rows["key"].cast(pl.String), rows["value"], strict=True))
    assert float(got["trace.deepspeed.params_per_gpu"]) == pytest.approx(336.23e6)
    assert float(got["trace.deepspeed.fwd_latency_ns"]) == pytest.approx(76.67e6)
    assert float(got["trace.deepspeed.step_latency_ns"]) == pytest.approx(34_090)
    assert got["trace.deepspeed.step"] == "10"


class TestXPlane:
    def test_streams_of_a_device_and_threads_of_the_host(self, tmp_path: Path) -> None:
        planes = [
            (
                "/device:GPU:1",
                [
                    (
                        "Stream #13(Compute)",
                        [("fusion", 0, 40_000_000), ("MemcpyH2D", 60_000_000, 40_000_500)],
                    ),
                    ("XLA Modules", [("jit_step", 0, 100_000_000)]),
                ],
            ),
            ("/host:CPU", [("python", [("next_batch", 40_000_000, 15_000_000)])]),
        ]
        (tmp_path / "h.xplane.pb").write_bytes(xplane(planes, START_S * 10**9))
        found = collect([tmp_path])
        rows = found.tables.spans.with_columns(pl.col("lane", "name").cast(pl.String)).sort(
            "start_ns", "lane"
        )
        assert rows.select("device", "lane", "track", "name", "dur_ns").rows() == [
            (1, "kernel", 13, "fusion", 40_000),
            (None, "data", 1, "next_batch", 15_000),
            (1, "memcpy", 13, "Memcpy HtoD (Pageable -> Device)", 40_000),
        ]
        assert rows["start_ns"][0] == START_S * 10**9
        assert "1 derived lines" in found.tables.sources["note"][0]

    def test_a_file_that_was_decoded_as_text_says_so(self, tmp_path: Path) -> None:
        data = xplane([("/device:GPU:0", [("Stream #1", [("k", 0, 10)])])], 200_000) * 3
        (tmp_path / "h.xplane.pb").write_bytes(
            bytes([0xFF]).join([data]).decode("utf-8", "replace").encode() + b"\xef\xbf\xbd" * 40
        )
        found = collect([tmp_path])
        assert status(found) == ["unreadable"]
        assert "decoded as text" in found.tables.sources["note"][0]

    def test_a_cut_file_is_unreadable_or_partial_and_never_raises(self, tmp_path: Path) -> None:
        data = xplane([("/device:GPU:0", [("Stream #1", [("k", 0, 10_000)] * 50)])], 0)
        for cut in range(3, len(data), 17):
            (tmp_path / "h.xplane.pb").write_bytes(data[:cut])
            assert status(collect([tmp_path]))[0] in ("unreadable", "partial", "empty", "read")
