"""Slurm's accounting."""

from __future__ import annotations

from pathlib import Path

import pytest

from afterrun.loaders.counters.sacct import size_bytes, span_s
from tests.support.loading import claimed, write
from tests.support.sampled import sampled

HEAD = "JobID|JobName|User|State|ExitCode|Elapsed|Start|End|MaxRSS|ReqMem|NodeList|SubmitLine\n"
JOBS = (
    "100|train|jo|TIMEOUT|0:0|1-00:00:12|2024-06-24T12:00:00|2024-06-25T12:00:12||100Mc|node7|sbatch /home/jo/x.sh\n"
    "100.batch|batch||CANCELLED|0:15|1-00:00:13|2024-06-24T12:00:00|2024-06-25T12:00:13|1043168K||node7|\n"
    "101_3|eval|jo|CANCELLED by 1234|0:0|00:00:00|Unknown|2024-06-25T13:00:00||4Gn||\n"
)
END_NS = 1_719_316_812_000_000_000


def test_a_mark_a_job_and_step(tmp_path: Path) -> None:
    read = sampled(write(tmp_path, HEAD + JOBS, "jobs.txt"))
    assert read.format == "sacct"
    assert read.marks["kind"].to_list() == ["job", "job_step", "job"]
    assert read.marks["line"].to_list() == [2, 3, 4]
    assert read.marks["t_ns"].to_list()[:2] == [END_NS, END_NS + 10**9]
    first, step, array = read.marks["text"]
    assert first == (
        "TIMEOUT job=100 name=train exit_code=0:0 elapsed_s=86412 req_mem_per_cpu_bytes=104857600 "
        "start=2024-06-24T12:00:00 end=2024-06-25T12:00:12"
    )
    assert "max_rss_bytes=1068204032" in step
    assert array.startswith("CANCELLED job=101_3 name=eval")
    assert "req_mem_per_node_bytes=4294967296" in array
    assert read.params == {"slurm.jobs": 2, "slurm.states.TIMEOUT": 1, "slurm.states.CANCELLED": 1}
    assert not any(
        word in " ".join(read.marks["text"]) for word in ("jo ", "1234", "node7", "sbatch", "/home")
    )


def test_a_lone_job_is_told_as_settings(tmp_path: Path) -> None:
    read = sampled(
        write(tmp_path, "JobID|State|Elapsed|Timelimit|\n7|OUT_OF_MEMORY|00:10:05|02:00:00|\n", "job.txt")
    )
    assert read.params == {
        "slurm.state": "OUT_OF_MEMORY",
        "slurm.job": "7",
        "slurm.elapsed_s": 605,
        "slurm.timelimit_s": 7200,
    }


def test_any_columns_and_torn_rows(tmp_path: Path) -> None:
    text = "ConsumedEnergyRaw|ReqCPUS|Submit|State\n0|1|2024-06-24T12:33:26|FAILED\n1|1|2024-06\n|4|2024-06-24T12:33:27|COMPLETED\n5|5|x|12:00\n"
    read = sampled(write(tmp_path, text, "sacct.csv"))
    assert read.marks["text"].to_list() == [
        "FAILED req_cpus=1 submit=2024-06-24T12:33:26",
        "COMPLETED req_cpus=4 submit=2024-06-24T12:33:27",
    ]
    assert read.damaged == 2


@pytest.mark.parametrize(
    "text", ["step|loss\n1|2\n", "State|Country\nOhio|US\n", "a|b|c\n1|2|3\n", "State\nFAILED\n"]
)
def test_other_tables_with_bars_are_not_taken(tmp_path: Path, text: str) -> None:
    assert claimed(write(tmp_path, text, "x.csv")) != "sacct"


def test_sizes_and_lengths_of_time() -> None:
    assert (size_bytes("1043168K"), size_bytes("4Gn"), size_bytes("12.5M"), size_bytes("16?")) == (
        (1_068_204_032, ""), (4 * 2**30, "_per_node"), (13_107_200, ""), None,
    )  # fmt: skip
    assert (span_s("7-04:00:00"), span_s("07:59:00"), span_s("05:30"), span_s("02:03.123"), span_s("UNLIMITED")) == (
        619_200, 28_740, 330, 123, None,
    )  # fmt: skip
