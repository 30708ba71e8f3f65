from __future__ import annotations

from pathlib import Path

import pytest

from afterrun.analyzer.failures import memory_numbers
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.crash import Crash
from afterrun.analyzer.pipeline import analyse, run_passes
from afterrun.loaders.collect import LoadOptions, collect
from tests.support.tables import make_view

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.12 GiB is "
    "free. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 512.00 MiB is reserved by PyTorch but unallocated."
)
WATCHDOG = "[rank1]:[E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=42)"
SAVED = "saving checkpoint to out\n"


def steps(first: int, last: int, at_s: int | None = None) -> str:
    """Healthy lines, one a second where ``at_s`` is given."""
    clock = "" if at_s is None else "2024-05-01 10:{m:02d}:{s:02d} "
    return "".join(
        (clock.format(m=(at_s or 0) // 60 + i // 60, s=i % 60) if clock else "")
        + f"step {i} loss={3 * 0.99**i:.5f}\n"
        for i in range(first, last + 1)
    )


def crash(folder: Path, now_ns: int | None = None, **logs: str) -> list[Finding]:
    """Findings of the pass on one run with these logs."""
    for name, text in logs.items():
        (folder / f"{name}.log").write_text(text)
    analysis = analyse(collect([folder], LoadOptions(now_ns=now_ns)), [Crash()])
    assert analysis.faults == ()
    return list(analysis.findings)


def test_the_first_cause_with_what_followed_and_what_it_cost(tmp_path: Path) -> None:
    text = (
        steps(1, 100)
        + SAVED
        + steps(101, 130)
        + OOM
        + "\n"
        + WATCHDOG
        + "\nMain process received SIGTERM, exiting\n"
    )
    (f,) = crash(tmp_path, train=text)
    assert (f.status, f.severity, f.where.step_start) == ("confirmed", "critical", 130)
    assert (
        f.title
        == "Died at step 130: GPU out of memory (train.log line 132); 30 steps after the last checkpoint are lost."
    )
    assert [(e.line, e.note.split(":")[0]) for e in f.evidence] == [
        (132, "first cause"),
        (133, "cascade"),
        (134, "cascade"),
    ]
    assert f.values["checkpoint_step"] == 100
    assert f.values["steps_lost"] == 30
    assert [c["kind"] for c in f.values["cascade"]] == ["nccl", "signal"]
    assert f.values["tried_bytes"] == 2 * 2**30
    assert f.values["capacity_bytes"] == int(79.15 * 2**30)
    assert f.values["free_bytes"] == int(1.12 * 2**30)
    assert f.values["allocated_bytes"] == 70 * 2**30
    assert f.values["reserved_bytes"] == 512 * 2**20
    assert f.wasted_gpu_s is None, "the number of GPUs is not recorded"
    assert f.advice[0].startswith("Lower the batch size")
    assert f.values["outcome"] == "oom"


def test_lost_work_is_billed_where_clock_and_gpus_are_known(tmp_path: Path) -> None:
    def rank(r: int) -> str:
        text = steps(1, 50, 0) + SAVED + steps(51, 60, 0)
        return "".join(f"[rank{r}]: {line}\n" for line in text.splitlines())

    (f,) = crash(tmp_path, now_ns=2**62, all=rank(0) + rank(1) + OOM + "\n")
    assert f.values["steps_lost"] == 10
    assert f.wasted_gpu_s == pytest.approx(20.0)
    assert "(20 GPU-s)" in f.title


@pytest.mark.parametrize(
    ("end", "status", "severity", "words"),
    [
        ("Killed\n", "possible", "warning", "Killed (SIGKILL)"),
        ("Killed\nslurmstepd: error: Detected 1 oom_kill event in StepId=1.0.\n", "confirmed", "critical", "Host out of memory"),
        (WATCHDOG + "\n", "possible", "warning", "A collective timed out"),
        ("slurmstepd: error: *** JOB 7 ON g1 CANCELLED AT 2024-05-01T10:00:00 DUE TO TIME LIMIT ***\n", "confirmed", "warning", "time limit"),
        ("slurmstepd: error: *** JOB 7 ON g1 CANCELLED AT 2024-05-01T10:00:00 ***\n", "confirmed", "info", "cancelled"),
        ("KeyboardInterrupt\n", "confirmed", "info", "Interrupted from the keyboard"),
        ("OSError: [Errno 28] No space left on device\n", "confirmed", "critical", "disk is full"),
        ("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n", "confirmed", "critical", "GPU fault (Xid)"),
        ('Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\nValueError: bad batch\n', "confirmed", "critical", "ValueError: bad batch"),
    ],
)  # fmt: skip
def test_ways_of_dying(tmp_path: Path, end: str, status: str, severity: str, words: str) -> None:
    (f,) = crash(tmp_path, train=steps(1, 20) + end)
    assert (f.status, f.severity) == (status, severity)
    assert words in f.title
    assert f.title.startswith("Died at step 20: ")
    assert f.advice
    assert all(e.line for e in f.evidence)


@pytest.mark.parametrize(
    "text",
    [
        steps(1, 20) + "Training finished\n",
        steps(1, 20) + "Epoch 12: early stopping\n",
        "".join(f"epoch {i}/5 loss=0.{i}\n" for i in range(1, 6)),
        steps(1, 20) + "Training finished\n" + OOM + "\n",
    ],
)
def test_an_end_record_refutes(tmp_path: Path, text: str) -> None:
    (f,) = crash(tmp_path, train=text)
    assert (f.status, f.severity) == ("refuted", "info")
    assert f.title.startswith("The run recorded its end at line ")


@pytest.mark.parametrize(
    "noise",
    [
        "number of nan iterations: 0\n", "No NaN found\n", "killed = 0\n", '    raise RuntimeError("CUDA out of memory")\n',
        "UserWarning: this may lead to CUDA out of memory errors\n", "Killing subprocess 12\n", "NCCL version 2.27.5\n",
    ],
)  # fmt: skip
def test_a_healthy_log_without_an_end_is_not_assessed(tmp_path: Path, noise: str) -> None:
    (f,) = crash(tmp_path, train=steps(1, 10) + noise * 3 + steps(11, 20))
    assert (f.status, f.severity) == ("abstained", "info")
    assert f.missing


def test_a_caught_failure_is_information(tmp_path: Path) -> None:
    found = crash(tmp_path, train=steps(1, 10) + OOM + "\n" + steps(11, 500))
    survived = [f for f in found if f.status == "possible"]
    assert [(f.severity, f.values["fate"], f.wasted_gpu_s) for f in survived] == [("info", "survived", None)]
    assert "training went on" in survived[0].title
    assert [f.status for f in found if f not in survived] == ["abstained"]
    assert not any(f.is_alarm for f in found)


def test_a_crash_that_was_restarted_from(tmp_path: Path) -> None:
    (f,) = crash(tmp_path, train=steps(1, 30) + OOM + "\n" + steps(21, 60) + "Training finished\n")
    assert (f.status, f.severity, f.values["fate"], f.values["resumed_step"]) == (
        "confirmed",
        "warning",
        "restarted",
        21,
    )
    assert "went on at step 21" in f.title
    assert f.wasted_gpu_s is None, "the restart finding bills the work done twice"


def test_of_many_survived_failures_a_few_are_told(tmp_path: Path) -> None:
    text = "".join(steps(10 * i, 10 * i + 9) + OOM + "\n" for i in range(1, 12)) + steps(120, 130)
    found = crash(tmp_path, train=text)
    assert len([f for f in found if f.status == "possible"]) == 5
    assert found[0].values["survived"] == 11


def test_the_rank_that_failed_first_explains_the_others(tmp_path: Path) -> None:
    (f,) = crash(tmp_path, rank_0=steps(1, 20) + WATCHDOG + "\n", rank_1=steps(1, 20) + OOM + "\n")
    assert (f.status, f.values["source"], f.values["kind"]) == ("confirmed", "rank_1.log", "oom")
    assert [e.source for e in f.evidence] == ["rank_1.log", "rank_0.log"]


def test_a_run_still_being_written_is_left_alone(tmp_path: Path) -> None:
    (f,) = crash(tmp_path, train=steps(1, 20, 0))
    assert (f.status, f.title) == ("abstained", "Still running.")


def test_without_a_text_log_nothing_is_said() -> None:
    view, faults = run_passes(make_view({"loss": ([1, 2, 3], [3.0, 2.0, 1.0])}), [Crash()])
    (f,) = view.earlier["crash"]
    assert (f.status, faults) == ("abstained", [])
    assert f.missing == ("a text log of the run",)


def test_no_number_of_gpus_at_all() -> None:
    assert memory_numbers("MemoryError") == {}
    assert memory_numbers(
        "Tried to allocate 20.00 MiB (GPU 0; 15.78 GiB total capacity; 14.5 GiB already allocated)"
    ) == {
        "tried_bytes": 20 * 2**20,
        "capacity_bytes": int(15.78 * 2**30),
        "allocated_bytes": int(14.5 * 2**30),
    }
