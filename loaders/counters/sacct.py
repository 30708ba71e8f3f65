"""Slurm's accounting, ``sacct --parsable`` or ``--parsable2``: any columns, one row a job or a step of one.

A row becomes a mark: its state, how long it ran, what memory it took, when it began and ended. Users, accounts, hosts,
folders and command lines are not read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from afterrun.loaders.schema import Batch
from afterrun.loaders.settings.personal import impersonal
from afterrun.loaders.settings.tree import Settings
from afterrun.loaders.tables.cells import moment
from afterrun.loaders.tables.damage import Places
from afterrun.loaders.tables.reader import RowBlock, TableReader
from afterrun.loaders.tables.textblocks import decode_head, split_lines

_NAMES = """account admincomment alloccpus allocnodes alloctres associd avecpu avecpufreq avediskread avediskwrite avepages
averss avevmsize blockid cluster comment constraints consumedenergy consumedenergyraw container cputime cputimeraw
dbindex derivedexitcode elapsed elapsedraw eligible end exitcode failednode flags gid group jobid jobidraw jobname
layout licenses maxdiskread maxdiskreadnode maxdiskreadtask maxdiskwrite maxdiskwritenode maxdiskwritetask maxpages
maxpagesnode maxpagestask maxrss maxrssnode maxrsstask maxvmsize maxvmsizenode maxvmsizetask mcslabel mincpu
mincpunode mincputask ncpus nnodes nodelist ntasks partition planned plannedcpu plannedcpuraw priority qos qosraw
reason reqcpufreq reqcpufreqgov reqcpufreqmax reqcpufreqmin reqcpus reqgres reqmem reqnodes reqtres reservation
reservationid reserved resvcpu resvcpuraw restarts start state stderr stdin stdout submit submitline suspended
systemcomment systemcpu timelimit timelimitraw totalcpu tresusageinave tresusageinmax tresusageintot
tresusageoutave tresusageoutmax tresusageouttot uid user usercpu wckey wckeyid workdir allocgres"""
_FIELDS = frozenset(_NAMES.split())
_TELLING = frozenset(
    {"state", "jobid", "jobidraw", "elapsed", "elapsedraw", "exitcode", "maxrss", "timelimit", "submit"}
)
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)([cn]?)")
_SPAN = re.compile(r"(?:(?:(\d+)-)?(\d{1,3}):)?(\d{1,2}):(\d\d)(?:\.\d+)?")
_STATE = re.compile(r"([A-Z_]+)\+?(?: by \d+)?")
_STEP = re.compile(r"\d+(?:_\d+|_\[.*\])?(?:\+\d+)?\.(\w+)")
_PLAIN = {"partition": "partition", "qos": "qos", "exitcode": "exit_code", "reqcpus": "req_cpus", "alloccpus": "alloc_cpus",
          "ncpus": "cpus", "nnodes": "nodes", "allocnodes": "nodes", "reqnodes": "req_nodes", "restarts": "restarts"}  # fmt: skip
_SPANS = {
    "elapsed": "elapsed_s",
    "timelimit": "timelimit_s",
    "totalcpu": "total_cpu_s",
    "suspended": "suspended_s",
}
_RAW_SECONDS = {"elapsedraw": "elapsed_s", "cputimeraw": "cpu_time_s"}
_SIZES = {
    "maxrss": "max_rss_bytes",
    "averss": "ave_rss_bytes",
    "maxvmsize": "max_vm_bytes",
    "reqmem": "req_mem_bytes",
}
_TRES = {"reqtres": "req_tres", "alloctres": "alloc_tres", "reqgres": "req_gres", "allocgres": "alloc_gres"}
_TIMES = ("submit", "start", "end")


def sniff(head: bytes) -> bool:
    """Whether a file begins with a header of accounting fields, apart by ``|``."""
    first = next((x for x in split_lines(decode_head(head)) if x.strip("\0 \t")), "")
    names = [n.strip().lower().partition("%")[0] for n in first.rstrip("|").split("|")]
    known = sum(1 for n in names if n in _FIELDS)
    return len(names) > 1 and known >= 0.8 * len(names) and bool(_TELLING.intersection(names))


def size_bytes(text: str) -> tuple[int, str] | None:
    """Bytes of ``1043168K`` or ``100Mc``, and ``_per_cpu`` or ``_per_node`` where the old suffix says so."""
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    per = {"c": "_per_cpu", "n": "_per_node"}.get(found[3], "")
    return int(float(found[1]) * _UNITS[found[2]]), per


def span_s(text: str) -> int | None:
    """Seconds of ``7-04:00:00``, ``07:59:00`` or ``05:30``; None where it is no length of time."""
    found = _SPAN.fullmatch(text)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(x or 0) for x in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _facts(row: Mapping[str, str]) -> dict[str, object]:
    """What one row tells, in base units; nothing about persons or hosts."""
    facts: dict[str, object] = {}
    for name in ("jobid", "jobidraw"):
        if row.get(name):
            facts.setdefault("job", row[name])
    if row.get("jobname"):
        facts["name"] = impersonal(row["jobname"])
    facts |= {key: row[name] for name, key in _PLAIN.items() if row.get(name)}
    facts |= {key: row[name] for name, key in _TRES.items() if row.get(name)}
    for name, key in _SPANS.items():
        seconds = span_s(row.get(name, ""))
        if seconds is not None:
            facts[key] = seconds
    facts |= {
        key: int(row[name])
        for name, key in _RAW_SECONDS.items()
        if _whole(row.get(name, "")) and key not in facts
    }
    for name, key in _SIZES.items():
        size = size_bytes(row.get(name, ""))
        if size is not None and row[name] != "0":
            facts[key.replace("_bytes", f"{size[1]}_bytes")] = size[0]
    facts |= {name: row[name] for name in _TIMES if moment(row.get(name, "")) is not None}
    return facts


def _whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _time(row: Mapping[str, str]) -> int | None:
    """When it ended, else when it began, else when it was submitted."""
    return next((t for n in reversed(_TIMES) if (t := moment(row.get(n, ""))) is not None), None)


class _Jobs:
    def __init__(self) -> None:
        self.states: Counter[str] = Counter()
        self.odd = Places()
        self.jobs = 0
        self.last: dict[str, object] = {}

    def marks(self, block: RowBlock) -> pl.DataFrame:
        names = [n.strip().lower().partition("%")[0] for n in block.names]
        columns = [
            block.cells[str(i)].cast(pl.String).fill_null("").str.strip_chars().to_list()
            for i in range(len(names))
        ]
        rows = []
        for line, cells in zip(block.lines.tolist(), zip(*columns, strict=True), strict=True):
            mark = self._mark(line, names, cells)
            if mark is not None:
                rows.append(mark)
        schema = {"t_ns": pl.Int64, "line": pl.Int64, "kind": pl.String, "text": pl.String}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def _mark(
        self, line: int, names: Sequence[str], cells: Sequence[str]
    ) -> tuple[int | None, int, str, str] | None:
        row = dict(zip(names, cells, strict=True))
        state = _STATE.fullmatch(row.get("state", ""))
        if "state" in row and state is None:
            self.odd.add(line)
            return None
        step = _STEP.fullmatch(row.get("jobid", ""))
        facts = _facts(row)
        told = state[1] if state else ""
        if step is None:
            self.jobs += 1
            self.states[told] += 1
            self.last = {"state": told, **facts}
        text = " ".join([*([told] if told else []), *(f"{k}={v}" for k, v in facts.items())])
        return _time(row), line, "job_step" if step else "job", text

    def settings(self) -> Settings:
        """How many jobs ended how; of a lone job, all that is known."""
        settings = Settings()
        if self.jobs == 1:
            settings.add_all("slurm.", self.last.items())
        elif self.jobs:
            settings.add("slurm.jobs", self.jobs)
            settings.add("slurm.states", {k: v for k, v in self.states.most_common() if k})
        return settings


def read_sacct(path: Path) -> Iterator[Batch]:
    """A mark a row. Raises ``UnreadableError`` where there is no header, and ``OSError``."""
    table, jobs = TableReader(path, fast=False), _Jobs()
    timed = False
    for block in table.blocks():
        marks = jobs.marks(block)
        timed = timed or marks["t_ns"].count() > 0
        if len(marks):
            yield Batch(frames={"marks": marks})
    notes = list(table.losses.notes())
    if jobs.odd.count:
        notes.append(f"rows without a readable state left out: {jobs.odd}")
    if timed:
        notes.append("local times without a zone are taken for UTC")
    yield Batch(
        frames=jobs.settings().frames(), damaged=table.losses.damaged + jobs.odd.count, notes=tuple(notes)
    )
