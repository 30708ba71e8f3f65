"""What the messages of a dying run look like: data, one entry a message, the most telling first.

The roles follow the way an incident is read: a **root** can be the first cause; a **cascade** is what others feel
when it strikes; a **confirmation** says by whom or why a process was killed. Messages that merely advise, and
messages quoted in source code, match nothing: an entry begins where a message can begin.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

Role = Literal["root", "cascade", "confirmation", "notice", "end", "progress"]

FAILURES = frozenset(
    {"oom", "nccl", "traceback", "signal", "time_limit", "preempted", "disk_full", "dataloader", "xid"}
)
"""Kinds of marks that can end a run. ``nan`` joins them where the message says that training stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """One message. ``cues``: lower-case texts without digits, one of which stands in every match."""

    kind: str
    role: Role
    what: str
    pattern: str
    cues: tuple[str, ...]
    never: str = ""
    """A pattern that takes the match back."""
    outcome: str = ""
    """Outcome of a run that ends with it; empty: decided by the kind."""


_BEGIN = r"(?:^|[\]>|)] ?|: |- )\s{0,3}"
_NO_NAN = r"(?i:\b(?:no|not|without|zero|0|if|when|check(?:ing)? for) (?:any )?(?:nan|inf|non-?finite))"

SIGNATURES: tuple[Signature, ...] = (
    # memory of the GPU
    Signature(
        kind="oom", role="root", what="GPU out of memory",
        pattern=_BEGIN + r"(?:(?:CUDA|HIP|XPU|MPS backend) (?:error: )?out of memory|\[CUDA ERROR\].*out of memory)",
        cues=("out of memory",),
    ),
    Signature(
        kind="oom", role="root", what="GPU out of memory",
        pattern=_BEGIN + r"(?:RESOURCE_EXHAUSTED: (?:Out of memory|.*[Ff]ailed to allocate)|OOM when allocating tensor)|\bOutOfMemoryError\b: ",
        cues=("resource_exhausted", "oom when allocating", "outofmemoryerror"),
    ),
    # memory of the host
    Signature(
        kind="oom", role="confirmation", what="host out of memory: the kernel killed a process",
        pattern=r"\boom[-_]kill\b(?!er)|Out of memory: Kill(?:ed)? process|Memory cgroup out of memory|cgroup out-of-memory handler"
        r"|\bOOM ?Killed\b|error: .*: task .*: Out Of Memory|[Ee]xceeded (?:job |step )?memory limit",
        cues=("oom-kill", "oom_kill", "out of memory", "out-of-memory", "oomkilled", "oom killed", "memory limit"),
    ),
    Signature(
        kind="oom", role="root", what="host out of memory",
        pattern=_BEGIN + r"(?:MemoryError\b|std::bad_alloc|\[Errno 12\] Cannot allocate memory|.*DefaultCPUAllocator: can't allocate memory"
        r"|numpy\.\S*ArrayMemoryError)",
        cues=("memoryerror", "bad_alloc", "cannot allocate memory", "can't allocate memory"),
    ),
    # the job's scheduler
    Signature(
        kind="time_limit", role="root", what="the job's time limit was reached",
        pattern=r"CANCELLED AT \S+ DUE TO TIME LIMIT|job killed: walltime .* exceeded|TERM_RUNLIMIT|DUE TO TIME LIMIT \*\*\*",
        cues=("due to time limit", "walltime", "term_runlimit"),
    ),
    Signature(
        kind="preempted", role="root", what="the job was preempted",
        pattern=r"CANCELLED AT \S+ DUE TO (?:PREEMPTION|JOB REQUEUE)|\b[Ss]pot (?:instance )?(?:interruption|termination) notice"
        r"|\b[Pp]reemption (?:notice|signal) received|\b(?:[Jj]ob|[Ii]nstance|VM) (?:was|has been) preempted|TERM_PREEMPT",
        cues=("due to preemption", "due to job requeue", "spot ", "preemption ", "preempted", "term_preempt"),
    ),
    Signature(
        kind="signal", role="root", what="a node of the job failed", outcome="crashed",
        pattern=r"CANCELLED AT \S+ DUE TO NODE FAILURE|[Nn]ode failure on \S+",
        cues=("node failure",),
    ),
    Signature(
        kind="signal", role="root", what="the job was cancelled",
        pattern=r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT \S+",
        cues=(" cancelled at ",),
    ),
    # hardware
    Signature(
        kind="xid", role="cascade", what="the driver reports an error of the process (Xid)",
        pattern=r"\bXid \([^)]*\): (?:43|45|63|92|94)\b", cues=("xid (",),
    ),
    Signature(
        kind="xid", role="root", what="the driver reports a GPU fault (Xid)",
        pattern=r"\bXid \([^)]*\): \d+|GPU has fallen off the bus|uncorrectable ECC error encountered",
        cues=("xid (", "fallen off the bus", "uncorrectable ecc"),
    ),
    # disk
    Signature(
        kind="disk_full", role="root", what="the disk is full",
        pattern=_BEGIN + r"(?:\S+: )*(?:\[Errno (?:28|122)\] )?(?:No space left on device|Disk quota exceeded)",
        cues=("no space left on device", "disk quota exceeded"),
    ),
    # data loading
    Signature(
        kind="dataloader", role="root", what="a data-loading worker died",
        pattern=r"DataLoader worker \(pid\(?s?\)?:? ?[^)]*\) (?:is killed by signal|exited unexpectedly)"
        r"|out of shared memory\. Please try to raise your shared memory limit",
        cues=("dataloader worker", "out of shared memory"),
    ),
    # collectives
    Signature(
        kind="nccl", role="root", what="the network between ranks failed",
        pattern=r"IBV_WC_RETRY_EXC_ERR|NET/IB ?: Got completion .* with (?:status|error) ?=? ?1[0-9]",
        cues=("ibv_wc_retry", "got completion"),
    ),
    Signature(
        kind="nccl", role="cascade", what="a collective timed out",
        pattern=r"[Ww]atchdog caught collective operation timeout|NCCL watchdog thread terminated|[Ww]atchdog thread (?:got stuck|terminated)"
        r"|[Ss]ome NCCL operations have failed or timed out|ran for \d+ milliseconds before timing out"
        r"|NCCL.{0,80}\b(?:timeout|timed out)\b(?!\s*[=:])|Timed? ?out (?:after|waiting).{0,60}(?:barrier|rank|store|collective)"
        r"|Timeout \(?\d+ ?ms\)? waiting in",
        cues=("watchdog", "nccl operations", "timing out", "timed out", "timeout", "time out"),
    ),
    Signature(
        kind="nccl", role="cascade", what="communication between ranks broke",
        pattern=_BEGIN + r"(?:\S+ )?(?:NCCL (?:error|Error|communicator was aborted)|DistBackendError|nccl(?:UnhandledCuda|System|Internal|Remote)Error)"
        r"|Connection (?:closed|reset) by peer(?=.{0,40}(?:rank|gloo|\[\d))|\[.*gloo/transport.*\] .*(?:closed|reset|[Tt]imed out)",
        cues=("nccl", "distbackenderror", "by peer", "gloo/"),
    ),
    # not a number
    Signature(
        kind="nan", role="root", what="training stopped on a loss that is not finite", outcome="nan", never=_NO_NAN,
        pattern=r"\b(?:[Ll]oss (?:is|was) (?:nan|NaN|inf|infinite|non-finite)\b.{0,200}\b(?:stop|abort|exit|terminat)"
        r"|Minimum loss scale reached|FloatingPointError|Current loss scale already at minimum)",
        cues=("loss is ", "loss was ", "minimum loss scale", "already at minimum", "floatingpointerror"),
    ),
    Signature(
        kind="nan", role="notice", what="a value is not finite", never=_NO_NAN,
        pattern=r"\b(?:[Ll]oss (?:is|was|became|went|turned) (?:to )?(?:nan|NaN|inf|infinite|not finite|non-finite)\b"
        r"|(?:NaN|nan|Inf|NaN/Inf|NaN or Inf|NaNs or Infs|[Nn]on-?finite) (?:loss|gradients?|grad norm|value)s? (?:is |are |was |were )?(?:detected|encountered|found)"
        r"|\b(?:NaN|nan|Inf|NaN or Inf|NaN/Inf) (?:was |were |is )?(?:detected|encountered|found)\b"
        r"|(?:[Ff]ound|[Dd]etected|[Ee]ncountered) (?:a )?(?:NaN|nan|Inf|NaN or Inf|NaN/Inf|non-?finite)\b)",
        cues=("loss is ", "loss was ", "loss became ", "loss went ", "loss turned ", "nan loss", "nan grad", "nan or inf", "nans or infs", "nan/inf", "nan value", "nan was", "nan is", "nan detected", "nan encountered", "nan found", "inf found", "inf detected", "found nan", "detected nan", "encountered nan", "a nan", "finite loss", "finite grad", "finite value"),
    ),
    # signals
    Signature(
        kind="signal", role="root", what="interrupted from the keyboard", outcome="stopped",
        pattern=r"(?:^|\]: ?|\] )KeyboardInterrupt:?\s*(?:$|\[last frame)", cues=("keyboardinterrupt",),
    ),
    Signature(
        kind="signal", role="root", what="segmentation fault", outcome="crashed",
        pattern=r"(?:^|: |\] |\d )Segmentation fault|\(SIGSEGV\)|(?:signal|by|with|received) SIGSEGV\b|exitcode *: *-11\b|signal 11\b",
        cues=("segmentation fault", "sigsegv", "exitcode", "signal "),
    ),
    Signature(
        kind="signal", role="root", what="bus error: shared memory or storage ran out", outcome="crashed",
        pattern=r"(?:^|: |\] |\d )Bus error\b|\(SIGBUS\)|(?:signal|by|with|received) SIGBUS\b|exitcode *: *-7\b",
        cues=("bus error", "sigbus", "exitcode"),
    ),
    Signature(
        kind="traceback", role="root", what="an assertion failed",
        pattern=r"\bAssertion [`'].*' failed\.?", cues=("assertion ",),
    ),
    Signature(
        kind="signal", role="cascade", what="killed (SIGKILL)",
        pattern=r"(?:^|\] ?|: )Killed\s*$|\d Killed  *\S|\(SIGKILL\)|(?:signal|by|with|received) SIGKILL\b|Signals\.SIGKILL|exitcode *: *-9\b|signal 9\b|(?:exit code|exit status|code) 137\b"
        r"|task .*: Killed\b",
        cues=("killed", "sigkill", "exitcode", "signal ", "exit code", "exit status"),
    ),
    Signature(
        kind="signal", role="cascade", what="terminated (SIGTERM)",
        pattern=r"(?:received|got|caught|[Rr]eceived signal) (?:signal:? )?(?:SIGTERM|15\b)|\bSignalException\b|SIGTERM (?:received|caught)|Received 15 death signal"
        r"|task .*: Terminated\b|exitcode *: *-15\b|(?:^|\] ?|: )Terminated\s*$|closing signal SIGTERM",
        cues=("sigterm", "signal", "terminated", "exitcode"),
    ),
    Signature(
        kind="signal", role="cascade", what="aborted", outcome="crashed",
        pattern=r"\bAborted +\(core dumped\)|\(SIGABRT\)|(?:signal|by|with|received) SIGABRT\b|exitcode *: *-6\b|terminate called after throwing",
        cues=("aborted", "sigabrt", "exitcode", "terminate called"),
    ),
    # errors of the framework outside of a traceback, and the launcher's summary
    Signature(
        kind="traceback", role="cascade", what="a process of the job failed",
        pattern=r"\bChildFailedError\b|elastic\.multiprocessing\.api:failed|failed \(exitcode: ?\d|[Ee]xited with exit code [1-9]"
        r"|MPI_ABORT was invoked|ProcessExitedException|ProcessRaisedException",
        cues=("childfailederror", "multiprocessing.api:failed", "exitcode", "exit code", "mpi_abort", "processexited", "processraised"),
    ),
    Signature(
        kind="traceback", role="cascade", what="the connection to another process broke",
        pattern=r"(?:^|: |\] )(?:[\w.]*\.)?(?:Connection(?:Reset|Refused|Aborted)Error|BrokenPipeError|EOFError|RemoteError|DistNetworkError"
        r"|CalledProcessError)\b",
        cues=("connectionre", "connectionabortederror", "brokenpipeerror", "eoferror", "remoteerror", "distnetworkerror", "calledprocesserror"),
    ),
    Signature(
        kind="traceback", role="root", what="a CUDA error",
        pattern=_BEGIN + r"CUDA error: |\[CUDA ERROR\] at ", cues=("cuda error",),
    ),
    # the end
    Signature(
        kind="stop", role="end", what="stopped early by its own rule",
        pattern=r"\b[Ee]arly stopping(?: triggered| at\b| after\b|:|$)|: early stopping\b|\bstopping_early: |Stopping early\b",
        cues=("early stopping", "stopping_early", "stopping early"),
    ),
    Signature(
        kind="finish", role="end", what="the run recorded its end",
        pattern=_BEGIN + r"(?:Training (?:is )?(?:completed?|finished|done)\b|Finished [Tt]raining\b|[Dd]one training\b|End of training\b"
        r"|\[after training is done\]|\[exiting program at iteration|Training time:? \d|Optimization [Ff]inished"
        r"|`Trainer\.fit` stopped: `max_\w+=\d+` reached|\d+ epochs completed in )",
        cues=("training", "trainer.fit", "optimization finished", "epochs completed", "exiting program"),
    ),
    Signature(
        kind="checkpoint", role="progress", what="a checkpoint was written",
        pattern=r"\b(?:[Ss]av(?:ed|ing)|[Ww]r(?:ote|iting)|SAVED|[Ss]uccessfully saved|[Ff]inished saving) (?:\w+ ){0,2}?(?:checkpoint|state dict|weights)"
        r"|\b[Cc]heckpoint (?:\S+ )?(?:was |is )?(?:saved|written)|[Ss]aving model (?:checkpoint )?to\b|\bis saved to \S*\.pth\b",
        cues=("checkpoint", "state dict", "weights", "saving model", " is saved to "),
    ),
)  # fmt: skip

MACHINE = re.compile(
    r"(?:^|[\]:>] ?)(?:slurmstepd|srun|mpirun|NVRM|kernel|terminate called)\b|^\[[^\]]*\]|(?:^|[\]:] ?)[A-Za-z_][\w.]*(?:Error|Exception|Interrupt)\b(?::|$| \[last frame)"
    r"|Assertion [`'].*' failed|\(core dumped\)|=>> PBS|: line \d+: +\d+ |\bXid \(|Killed process \d|(?:^|: )CUDA out of memory\. Tried"
)
"""What a message looks like that no person wrote: alone it makes a file a log, where prose that speaks of one does not."""

OUTCOMES: Mapping[str, str] = {
    "oom": "oom", "time_limit": "killed", "preempted": "killed", "signal": "killed", "nan": "nan",
}  # fmt: skip
"""Outcome of a run by the kind of its root; ``crashed`` for the others."""


def is_failure(kind: str, text: str) -> bool:
    """Whether a mark can be the end of a run: a failure, or a NaN on which training stops."""
    if kind == "nan":
        found = signature_of(text)
        return found is not None and found.kind == "nan" and found.role == "root"
    return kind in FAILURES


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def _cues() -> tuple[str, ...]:
    return tuple(sorted({cue for s in SIGNATURES for cue in s.cues}))


def may_match(text: str) -> bool:
    """Whether a skeleton could belong to a message; cheap, and asked once a skeleton."""
    lower = text.lower()
    return any(cue in lower for cue in _cues())


@lru_cache(maxsize=4096)
def signature_of(text: str) -> Signature | None:
    """The entry that a line matches, None for any other line."""
    lower = text.lower()
    for signature in SIGNATURES:
        if (
            any(cue in lower for cue in signature.cues)
            and _compiled(signature.pattern).search(text)
            and not (signature.never and _compiled(signature.never).search(text))
        ):
            return signature
    return None
