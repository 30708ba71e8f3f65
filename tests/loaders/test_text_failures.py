"""Messages of dying runs: what each line is taken for, which lines are taken for nothing, how incidents are read."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from afterrun.loaders.collect import collect
from afterrun.loaders.formats.text.text_log import TextLog
from afterrun.loaders.textlog.failures import MAX_TEXT, one_line
from afterrun.loaders.textlog.incidents import Incident, incidents
from afterrun.loaders.textlog.signatures import SIGNATURES, signature_of
from tests.support.loading import Read, claimed, read, write

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.12 GiB is "
    "free. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 5.50 GiB is reserved by PyTorch but unallocated."
)
WATCHDOG = (
    "[rank1]:[E ProcessGroupNCCL.cpp:616] [PG 0 Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=42, "
    "OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600123 milliseconds before timing out."
)

MESSAGES = [
    (OOM, "oom", "root"),
    ("RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.78 GiB total capacity)", "oom", "root"),
    ("[rank3]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.5 GiB.", "oom", "root"),
    ("[CUDA ERROR] at file train_gpt2.cu:123: out of memory", "oom", "root"),
    ("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes.", "oom", "root"),
    ("tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[32,3]", "oom", "root"),
    ("RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.", "oom", "root"),
    ("OSError: [Errno 12] Cannot allocate memory", "oom", "root"),
    ("MemoryError", "oom", "root"),
    ("slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some of the step tasks have been OOM Killed.", "oom", "confirmation"),
    ("[12345.6] Out of memory: Killed process 4242 (python) total-vm:9kB", "oom", "confirmation"),
    ("srun: error: node3: task 7: Out Of Memory", "oom", "confirmation"),
    ("slurmstepd: error: *** JOB 7 ON g002 CANCELLED AT 2024-10-10T18:59:58 DUE TO TIME LIMIT ***", "time_limit", "root"),
    ("=>> PBS: job killed: walltime 3610 exceeded limit 3600", "time_limit", "root"),
    ("slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2024-10-10T18:59:58 DUE TO PREEMPTION ***", "preempted", "root"),
    ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2024-10-10T18:59:58 DUE TO NODE FAILURE ***", "signal", "root"),
    ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2024-10-10T18:59:58 ***", "signal", "root"),
    ("NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.", "xid", "root"),
    ("kernel: NVRM: Xid (PCI:0000:3b:00): 43, pid=1234, name=python, Ch 00000008", "xid", "cascade"),
    ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "xid", "root"),
    ("OSError: [Errno 28] No space left on device: 'ckpt/model.pt'", "disk_full", "root"),
    ("OSError: [Errno 122] Disk quota exceeded", "disk_full", "root"),
    ("cp: error writing 'a': No space left on device", "disk_full", "root"),
    ("RuntimeError: DataLoader worker (pid 4242) is killed by signal: Killed.", "dataloader", "root"),
    ("RuntimeError: DataLoader worker (pid(s) 4242, 4243) exited unexpectedly", "dataloader", "root"),
    (WATCHDOG, "nccl", "cascade"),
    ("[E ProcessGroupNCCL.cpp:1182] NCCL watchdog thread terminated with exception: CUDA error: an illegal memory access", "nccl", "cascade"),
    ("torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/ProcessGroupNCCL.cpp:1970, unhandled system error", "nccl", "cascade"),
    ("[Gloo] RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:3", "nccl", "cascade"),
    ("node1:123:456 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.2 with status=12 opcode=0", "nccl", "root"),
    ("Loss is nan, stopping training", "nan", "root"),
    ("FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding.", "nan", "root"),
    ("WARNING: NaN or Inf found in input tensor.", "nan", "notice"),
    ("Warning: non-finite gradients detected, skipping", "nan", "notice"),
    ("KeyboardInterrupt", "signal", "root"),
    ("/bin/run.sh: line 3:  4242 Segmentation fault      (core dumped) python train.py", "signal", "root"),
    ("/bin/run.sh: line 3:  4242 Killed                  python train.py", "signal", "cascade"),
    ("Killed", "signal", "cascade"),
    ("  exitcode  : -9 (pid: 4242)", "signal", "cascade"),
    ("Main process received SIGTERM, exiting", "signal", "cascade"),
    ("torch.distributed.elastic.multiprocessing.api.SignalException: Process 42 got signal: 15", "signal", "cascade"),
    ("W0501 torch/distributed/elastic/multiprocessing/api.py:851] Sending process 4242 closing signal SIGTERM", "signal", "cascade"),
    ("terminate called after throwing an instance of 'c10::Error'", "signal", "cascade"),
    ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", "traceback", "cascade"),
    ("ConnectionResetError: [Errno 104] Connection reset by peer", "traceback", "cascade"),
    ("RuntimeError: CUDA error: device-side assert triggered", "traceback", "root"),
    ("train_gpt2cu: a.cu:1518: int main(int, char**): Assertion `x == 0' failed.", "traceback", "root"),
    ("Training completed. Do not forget to share your model on huggingface.co/models =)", "finish", "end"),
    ("[after training is done] datetime: 2024-05-01 10:00:00", "finish", "end"),
    ("`Trainer.fit` stopped: `max_epochs=10` reached.", "finish", "end"),
    ("Training time 1:23:45", "finish", "end"),
    ("Epoch 12: early stopping", "stop", "end"),
    ("  successfully saved checkpoint at iteration    1000 to out", "checkpoint", "progress"),
    ("[INFO|trainer.py:1884] 2021-05-25 06:53:45,424 >> Saving model checkpoint to out/checkpoint-500", "checkpoint", "progress"),
]  # fmt: skip

NO_MESSAGES = [
    " iteration 10/ 100 | lm loss: 1.2E+01 | number of skipped iterations:   0 | number of nan iterations:   0 |",
    "step    1/19560 | loss 11.010252 (+nanz)| norm 15.1374 (+nanz)| lr 8.57e-07 | 3616.87 ms",
    "No NaN found in gradients",
    "checking for NaN or Inf found nothing",
    "UserWarning: large batches may run out of memory; see the notes on CUDA out of memory errors",
    "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
    '    raise RuntimeError("CUDA out of memory")',
    "# RuntimeError: CUDA out of memory",
    'if "CUDA out of memory" in str(error):',
    "os.kill(os.getpid(), signal.SIGKILL)",
    '        print("Loss is {}, stopping training".format(loss_value))',
    "killed = 0",
    "the process is not killed by this",
    "NCCL version 2.27.5+cuda12.9",
    "[W] Warning: Environment variable NCCL_ASYNC_ERROR_HANDLING is deprecated",
    "NCCL_TIMEOUT=1800 timeout: 1800",
    "--disk-space left",
    "early_stopping_patience: 5",
    'print("Training finished")',
    "Start of training",
    "DataLoader workers: 8",
    "Traceback is printed on errors",
    "torch.cuda.OutOfMemoryError is handled below",
    "Killing subprocess 7949",
    "exit code 0",
    "finished with exit code 0",
    "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
]


@pytest.mark.parametrize(("line", "kind", "role"), MESSAGES, ids=[m[0][:40] for m in MESSAGES])
def test_messages(tmp_path: Path, line: str, kind: str, role: str) -> None:
    found = signature_of(line)
    assert found is not None
    assert (found.kind, found.role) == (kind, role)
    marks = read(TextLog(), write(tmp_path, f"hello\n{line}\n", "job.log")).marks
    assert marks.select("line", "kind").rows() == [(2, kind)]


@pytest.mark.parametrize("line", NO_MESSAGES)
def test_no_messages(tmp_path: Path, line: str) -> None:
    assert read(TextLog(), write(tmp_path, f"hello\n{line}\n", "job.log")).marks.is_empty()


def test_cues_stand_in_what_they_announce() -> None:
    """A cue that its own message lacks would hide it from the engine."""
    for line, kind, _ in MESSAGES:
        found = signature_of(line)
        assert found is not None
        assert any(cue in line.lower() for cue in found.cues), (kind, line)
    assert [c for s in SIGNATURES for c in s.cues if c != c.lower() or any(d.isdigit() for d in c)] == []


def test_a_mark_is_one_short_line_without_home_and_secrets() -> None:
    root = "/" + "root"
    text = one_line(
        f"  a\n /home/ann/x/train.py {root}/z C:\\Users\\Bob\\y token=abc123 https://u:p@h/ hf_abcdefghijklmnopqrst "
        + "x" * 500
    )
    assert text.startswith("a ~/x/train.py ~/z ~\\y token=... https://...@h/ ... x")
    assert len(text) == MAX_TEXT


# -- tracebacks --------------------------------------------------------------------------------------


def log(folder: Path, text: str, name: str = "train.log") -> Read:
    path = write(folder, text, name)
    assert claimed(path) == "text-log"
    return read(TextLog(), path)


def steps(*numbers: int) -> str:
    return "".join(f"step {i} loss=0.{i}\n" for i in numbers)


def traceback(error: str, label: str = "") -> str:
    lines = [
        "Traceback (most recent call last):", '  File "/home/ann/nanoGPT/train.py", line 302, in <module>', "    main()",
        '  File "/home/ann/env/lib/python3.11/site-packages/torch/autograd/graph.py", line 769, in _engine_run_backward', "    return run()",
        "           ^^^^^", error,
    ]  # fmt: skip
    return "".join(f"{label}{line}\n" for line in lines)


def test_a_traceback_alone_is_a_log(tmp_path: Path) -> None:
    found = log(tmp_path, traceback("ValueError: bad batch"), "job.err")
    (row,) = found.marks.select("line", "kind", "text").rows()
    assert row == (
        7,
        "traceback",
        "ValueError: bad batch [last frame torch/autograd/graph.py line 769 in _engine_run_backward; own code ~/nanoGPT/train.py line 302]",
    )


def test_tracebacks_of_ranks_are_told_apart(tmp_path: Path) -> None:
    a, b = traceback("ValueError: from 0", "[rank0]: "), traceback(OOM, "[rank1]: ")
    mixed = "".join(x for pair in zip(a.splitlines(True), b.splitlines(True), strict=True) for x in pair)
    found = log(tmp_path, mixed)
    assert [(r[0], r[1]) for r in found.marks.select("kind", "line").rows()] == [
        ("traceback", 13),
        ("oom", 14),
    ]


def test_a_chain_of_exceptions_gives_each(tmp_path: Path) -> None:
    between = "\nDuring handling of the above exception, another exception occurred:\n\n"
    found = log(tmp_path, traceback("KeyError: 'a'") + between + traceback("RuntimeError: b"))
    assert [t.split(" [")[0] for t in found.marks["text"]] == ["KeyError: 'a'", "RuntimeError: b"]


def test_a_traceback_cut_off_by_the_end_of_the_file(tmp_path: Path) -> None:
    text = steps(1, 2, 3) + "\n".join(traceback("x").splitlines()[:3])
    (row,) = log(tmp_path, text).marks.select("line", "step", "kind", "text").rows()
    assert row[:3] == (4, 3, "traceback")
    assert row[3].startswith(
        "a traceback whose exception is not in the log [last frame ~/nanoGPT/train.py line 302"
    )


# -- incidents ---------------------------------------------------------------------------------------


def found_in(folder: Path, **logs: str) -> tuple[list[Incident], str]:
    """(incidents, outcome) of the one run made of these logs."""
    for name, text in logs.items():
        write(folder, text, f"run/{name}.log")
    tables = collect([folder]).tables
    return incidents(tables.marks), str(tables.runs["outcome"][0])


def test_the_earliest_root_wins_over_what_follows(tmp_path: Path) -> None:
    text = steps(1, 2, 3) + WATCHDOG + "\n" + OOM + "\n" + "Main process received SIGTERM, exiting\nKilled\n"
    (one,), outcome = found_in(tmp_path, log=text)
    assert (one.cause.kind, one.sure, one.fate, one.cause.line, one.cause.step) == (
        "oom",
        True,
        "fatal",
        5,
        3,
    )
    assert [s.kind for s in one.of_role("cascade")] == ["nccl", "signal", "signal"]
    assert outcome == "oom"


@pytest.mark.parametrize(
    ("end", "kind", "sure", "outcome"),
    [
        ("Killed\n", "signal", False, "killed"),
        ("Killed\nslurmstepd: error: Detected 1 oom_kill event in StepId=12.0.\n", "oom", True, "oom"),
        ("RuntimeError: DataLoader worker (pid 42) is killed by signal: Killed.\n", "dataloader", True, "crashed"),
        ("RuntimeError: DataLoader worker (pid 42) is killed by signal: Killed.\nOut of memory: Killed process 42 (python)\n", "oom", True, "oom"),
        (WATCHDOG + "\n", "nccl", False, "crashed"),
        ("KeyboardInterrupt\n", "signal", True, "stopped"),
        ("slurmstepd: error: *** JOB 7 ON g1 CANCELLED AT 2024-10-10T18:59:58 DUE TO TIME LIMIT ***\n", "time_limit", True, "killed"),
        ("Loss is nan, stopping training\n", "nan", True, "nan"),
        (traceback("ValueError: x"), "traceback", True, "crashed"),
        ("OSError: [Errno 28] No space left on device\n", "disk_full", True, "crashed"),
    ],
)  # fmt: skip
def test_outcomes(tmp_path: Path, end: str, kind: str, sure: bool, outcome: str) -> None:
    (one,), ended = found_in(tmp_path, log=steps(1, 2, 3) + end)
    assert (one.cause.kind, one.sure, one.fate) == (kind, sure, "fatal")
    assert ended == outcome


def test_a_failure_that_was_caught(tmp_path: Path) -> None:
    (one,), outcome = found_in(tmp_path, log=steps(1, 2, 3) + OOM + "\n" + steps(4, 5, 6, 7))
    assert (one.fate, one.resumed_step) == ("survived", 4)
    assert outcome == "unknown"


def test_a_failure_that_the_run_was_restarted_from(tmp_path: Path) -> None:
    (one,), outcome = found_in(tmp_path, log=steps(1, 2, 3, 4) + OOM + "\n" + steps(2, 3, 4, 5))
    assert (one.fate, one.resumed_step) == ("restarted", 2)
    assert outcome == "unknown"


def test_a_line_or_two_of_ranks_that_had_not_noticed_is_no_recovery(tmp_path: Path) -> None:
    (one,), outcome = found_in(tmp_path, log=steps(1, 2, 3) + OOM + "\n" + steps(4, 5))
    assert one.fate == "fatal"
    assert outcome == "oom"


def test_a_message_after_the_end_is_no_crash(tmp_path: Path) -> None:
    (one,), outcome = found_in(
        tmp_path, log=steps(1, 2, 3) + "Training finished\n" + traceback("ValueError: at exit")
    )
    assert one.fate == "after the end"
    assert outcome == "finished"


def test_of_several_logs_the_sure_cause_speaks(tmp_path: Path) -> None:
    found, outcome = found_in(
        tmp_path, rank_0=steps(1, 2, 3) + WATCHDOG + "\n", rank_1=steps(1, 2, 3) + OOM + "\n"
    )
    assert {(i.source, i.cause.kind) for i in found} == {
        ("run/rank_0.log", "nccl"),
        ("run/rank_1.log", "oom"),
    }
    assert outcome == "oom"


def test_a_nan_that_stopped_an_earlier_run_of_the_same_file(tmp_path: Path) -> None:
    (one,), outcome = found_in(
        tmp_path, log=steps(1, 2, 3) + "Loss is nan, stopping training\n" + steps(1, 2, 3, 4)
    )
    assert (one.cause.kind, one.fate) == ("nan", "restarted")
    assert outcome == "unknown"


def test_lone_nan_notices_end_nothing(tmp_path: Path) -> None:
    found, outcome = found_in(
        tmp_path, log=steps(1, 2, 3) + "WARNING: NaN or Inf found in input tensor.\n" + steps(4, 5, 6)
    )
    assert found == []
    assert outcome == "unknown"


def test_a_run_whose_loss_ends_in_nan_is_that_whatever_killed_it(tmp_path: Path) -> None:
    text = steps(1, 2) + "step 3 loss=nan\nstep 4 loss=nan\nKilled\n"
    assert found_in(tmp_path, log=text)[1] == "nan"


def test_marks_are_kept_from_both_ends_of_a_long_log(tmp_path: Path) -> None:
    text = "".join(f"step {i} loss=0.{i % 9 + 1}\nsaving checkpoint to out\n" for i in range(400))
    found = log(tmp_path, text)
    kept = found.marks.filter(pl.col("kind") == "checkpoint")["step"].to_list()
    assert kept == [*range(200), *range(350, 400)]
    assert "400 marks of checkpoint: the first 200 and the last 50 are kept" in found.notes
