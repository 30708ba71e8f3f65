"""Names of the files that a job's output and error streams go to: ``job.out`` and ``job.err`` are one log."""

from __future__ import annotations

import re
from typing import Literal

Stream = Literal["out", "err"]

_FORMS = (
    re.compile(r"(?P<job>.+)\.(?:std)?(?P<which>out|err)(?:\.(?:log|txt))?"),  # slurm-123.out, job.err.txt
    re.compile(r"(?:(?P<job>.+)[._-])?std(?P<which>out|err)(?:\.(?:log|txt))?"),  # stdout.log, train_stderr
    re.compile(r"(?P<which>out|err)\.(?:log|txt)"),
    re.compile(r"(?P<job>.+)\.(?P<which>[oe])(?P<number>\d+)"),  # PBS and Grid Engine: job.o123
)


def stream_of(name: str) -> tuple[str, Stream] | None:
    """(name of the job, stream) of a file name; the job is ``""`` where the name says no more than the stream."""
    for form in _FORMS:
        match = form.fullmatch(name)
        if match:
            told = match.groupdict()
            number = told.get("number")
            job = (told.get("job") or "") + (f".{number}" if number else "")
            return job, "out" if match["which"] in ("out", "o") else "err"
    return None
