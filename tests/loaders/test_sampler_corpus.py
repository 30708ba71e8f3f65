"""Files that real samplers wrote, held against numbers from independent readers."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from tests.support.loading import CORPUS, corpus_records, needs_corpus
from tests.support.sampled import Sampled, sampled

pytestmark = [pytest.mark.corpus, needs_corpus]

FORMATS = ("nvidia_smi", "nvidia_smi_capture", "nvidia_smi_xml", "dcgm", "rocm_smi", "straggler", "sacct")
RECORDS = {r["id"]: r for r in corpus_records(*FORMATS)}
MIB = 2**20


def named(*parts: str) -> tuple[Sampled, dict[str, Any]]:
    (record,) = [r for r in RECORDS.values() if all(p in r["path"] for p in parts)]
    return sampled(CORPUS / record["path"]), record["truth"]


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_every_file_is_read_without_loss_that_is_not_told(name: str) -> None:
    read = sampled(CORPUS / RECORDS[name]["path"])
    assert len(read.samples) + len(read.marks) > 0
    assert read.damaged == (3 if "seizure" in name else 0)


@pytest.mark.parametrize("name", sorted(n for n, r in RECORDS.items() if "stats" in r["truth"]))
def test_utilisation_of_each_device(name: str) -> None:
    read = sampled(CORPUS / RECORDS[name]["path"])
    for device, truth in RECORDS[name]["truth"]["stats"].items():
        values = read.values("gpu_util_pct", 0 if device == "all" else int(device))
        times = read.times("gpu_util_pct", 0 if device == "all" else int(device))
        assert len(values) == truth["n"]
        assert sum(values) / len(values) == pytest.approx(truth["util_mean"], abs=5e-5)
        assert max(values) == truth["util_max"]
        assert sum(v == 0 for v in values) / len(values) == pytest.approx(truth["zero_frac"], abs=5e-5)
        first, last = (
            pl.Series([t0], dtype=pl.String).str.to_datetime(time_unit="ns")[0]
            for t0 in (truth["t0"], truth["t1"])
        )
        span = pl.Series([times[0], times[-1]]).cast(pl.Datetime("ns"))
        assert (span[0], span[1]) == (first, last)


def test_holes_several_hosts_and_a_drawn_table_in_one_file() -> None:
    read, truth = named("seizure")
    rows, mean = truth["util_mean"]["Tesla V100-PCIE-32GB"]
    values = read.values("gpu_util_pct")
    assert len(values) == rows + truth["table_rows"]
    assert sum(values[1:]) / rows == pytest.approx(mean, abs=5e-5), "the first is that of the table, 0 %"
    rows, mean = truth["util_mean"]["Tesla V100-SXM2-32GB"]
    values = read.values("gpu_util_pct", series='name="Tesla V100-SXM2-32GB"')
    assert (len(values), sum(values) / rows) == (rows, pytest.approx(mean, abs=5e-5))
    assert len(read.samples.filter(counter="gpu_util_pct")) == truth["csv_rows"] - 3 + truth["table_rows"]


def test_drawn_tables_in_a_loop() -> None:
    read, truth = named("slurm-textloop")
    values, memory = read.values("gpu_util_pct"), read.values("mem_used_bytes")
    assert len(values) == truth["samples"]
    assert sum(values) / len(values) == pytest.approx(truth["util_mean"], abs=5e-4)
    assert sum(memory) / len(memory) / MIB == pytest.approx(truth["mem_mean"], abs=5e-3)


def test_power_at_twenty_hertz() -> None:
    read, truth = named("flame-power")
    values, times = read.values("power_w"), read.times("power_w")
    assert len(values) == truth["rows"]
    assert sum(values) / len(values) == pytest.approx(truth["power_mean"])
    assert (times[-1] - times[0]) / 1e9 == pytest.approx(truth["span_s"])  # type: ignore[operator]  # no nulls here


@pytest.mark.parametrize("name", sorted(n for n in RECORDS if "dmon_txt" in n))
def test_dmon(name: str) -> None:
    read, truth = sampled(CORPUS / RECORDS[name]["path"]), RECORDS[name]["truth"]
    assert read.values("power_w") == [float(x) for x in truth["pwr"]]
    assert read.values("gpu_util_pct") == [float(x) for x in truth["sm"] if x != "-"]


@pytest.mark.parametrize("name", sorted(n for n in RECORDS if "pmon_txt" in n))
def test_pmon(name: str) -> None:
    read, truth = sampled(CORPUS / RECORDS[name]["path"]), RECORDS[name]["truth"]
    assert sum(read.values("processes")) == truth["data_rows"]
    busy = [r for r in truth["rows"] if r[3] != "-"]
    per_process = read.samples.filter(counter="process_gpu_util_pct")
    for _, pid, _, sm in busy:
        assert (
            float(sm) in per_process.filter(pl.col("series").str.contains(f'pid="{pid}"'))["value"].to_list()
        )


@pytest.mark.parametrize("host", ["h100", "win-2080s"])
def test_the_shapes_of_one_sampler_agree(host: str) -> None:
    query, q, table = (named(f"/{host}/", f"load.{x}")[0] for x in ("query_gpu", "q.txt", "table"))
    for counter in ("mem_total_bytes", "mem_used_bytes", "gpu_util_pct", "power_limit_w", "pstate"):
        assert query.values(counter) == q.values(counter) == table.values(counter), counter
    assert query.values("sm_clock_hz") == q.values("sm_clock_hz")


def test_utilisation_under_mig_is_unknown_and_not_zero() -> None:
    for shape in ("query_gpu", "q.txt", "table"):
        assert "gpu_util_pct" not in named("h100-mig", f"load.{shape}")[0].counters()


@pytest.mark.parametrize("part", ["a100", "3080-v13"])
def test_xml(part: str) -> None:
    read, truth = named("nvidia_smi_xml", part)
    assert read.values("power_w") == [float(truth["power"][0].split()[0])]
    assert read.values("mem_used_bytes") == [float(truth["mem"][0].split()[0]) * MIB]
    assert read.values("gpu_util_pct") == [float(u.split()[0]) for u in truth["util"] if u != "N/A"]
    assert read.params["trace.driver_version"] == truth["driver"]


def test_dcgm_csv() -> None:
    read, truth = named("dcgm", "dmon.csv")
    fields = {"throttle_reasons": "current_clock_throttle_reasons", "power_w": "power_usage_instant"}
    for counter, field in fields.items():
        values = read.samples.filter(counter=counter)["value"]
        assert (len(values), values.mean()) == (
            truth["fields"][field]["count"],
            pytest.approx(truth["fields"][field]["mean"], abs=5e-5),
        )
    assert (read.samples["t_ns"].min(), read.samples["t_ns"].max()) == (
        truth["t0"] * 1000,
        truth["t1"] * 1000,
    )
    read, truth = named("dcgm", "result.csv")
    assert (len(read.samples), read.samples["value"].mean()) == (
        truth["rows"],
        pytest.approx(truth["watts_mean"]),
    )


def test_rocm() -> None:
    for part in ("mi100", "rx6700xt"):
        read, truth = named("rocm_smi", part)
        assert {
            f"card{d}": f"{read.values('gpu_util_pct', d)[0]:.0f}" for d in read.devices() if d is not None
        } == truth["use"]


def test_sacct_states() -> None:
    read, truth = named("sacct")
    assert len(read.marks) == truth["rows"]
    assert {k.removeprefix("slurm.states."): v for k, v in read.params.items() if "states" in k} == truth[
        "states"
    ]
