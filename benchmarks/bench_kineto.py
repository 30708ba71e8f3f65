"""Kineto traces to spans beside HolisticTraceAnalysis (goals: 8 times as fast, a tenth of its memory; gzip at most 1.6 x plain).

A made-up trace with the mix of events and the layout of a real one: operators, calls, kernels, flows, three decimals.
40 MB, or 400 MB with ``--full``. Every reading is a process of its own; the ways take turns; medians of ``--rounds``.

    python benchmarks/bench_kineto.py [--full] [--peer-python PATH]

``--peer-python`` is an interpreter with HolisticTraceAnalysis; without one the peer is ``json.load`` and pandas.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

MIB = 2**20
BASE_NS = 1_700_000_000_000_000_000

OURS = """
from pathlib import Path
from afterrun.loaders.formats.traces.kineto import Kineto
from afterrun.loaders.registry import Source
from afterrun.loaders.schema import conform
p = Path(sys.argv[1])
batches = Kineto().load(Source(path=p, name=p.name, size_bytes=p.stat().st_size))
rows = sum(len(conform("spans", b.frames["spans"])) for b in list(batches) if "spans" in b.frames)
"""
HTA = """
from hta.common.trace_parser import parse_trace_dataframe
from hta.configs.parser_config import ParserConfig
rows = len(parse_trace_dataframe(sys.argv[1], ParserConfig.get_default_cfg())[1])
"""
PANDAS = """
import json, pandas
rows = len(pandas.json_normalize([e for e in json.load(open(sys.argv[1]))["traceEvents"] if e["ph"] == "X"]))
"""
MEASURED = """
import re, sys, time
from pathlib import Path
wall, cpu = time.perf_counter(), time.process_time()
{}
peak = int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024
print("MEASURED", time.perf_counter() - wall, time.process_time() - cpu, peak, rows)
"""
"""Not ``ru_maxrss``: that begins with the size of the process that started this one."""


def us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def events() -> Iterator[str]:
    """Operators that launch kernels, without end."""
    rng = random.Random(0)
    names = [
        f"void at::native::elementwise_kernel<{i}, at::native::Functor<float>, at::detail::Array<char*, {i % 4}> >(int)"
        for i in range(60)
    ]
    now, corr = 1_209_600_000_000_000, 0
    while True:
        corr += 1
        now += rng.randrange(4_000, 40_000)
        op = 'pid": 4000, "tid": 4000'
        yield f'"ph": "X", "cat": "cpu_op", "name": "aten::add_", "{op},\n    "ts": {us(now)}, "dur": {us(9000)},\n    "args": {{\n      "External id": {corr},"Record function id": 0, "Ev Idx": {corr}, "Input Dims": [[64, 1024], [64, 1024], []]\n    }}'
        yield f'"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "{op},\n    "ts": {us(now + 2000)}, "dur": {us(3500)},\n    "args": {{\n      "External id": {corr}, "cbid": 211, "correlation": {corr}\n    }}'
        yield f'"ph": "s", "id": {corr}, "{op}, "ts": {us(now + 2000)},\n    "cat": "ac2g", "name": "ac2g"'
        length = rng.randrange(1_000, 20_000)
        yield f'"ph": "X", "cat": "kernel", "name": "{names[corr % 60]}", "pid": 0, "tid": 7,\n    "ts": {us(now + 50_000)}, "dur": {us(length)},\n    "args": {{\n      "External id": {corr}, "queued": 0, "device": 0, "context": 1,\n      "stream": 7, "correlation": {corr},\n      "registers per thread": 40, "shared memory": 0, "blocks per SM": 4.7,\n      "warps per SM": 18.9, "grid": [512, 1, 1], "block": [128, 1, 1]\n    }}'
        yield f'"ph": "f", "id": {corr}, "pid": 0, "tid": 7, "ts": {us(now + 50_000)},\n    "cat": "ac2g", "name": "ac2g", "bp": "e"'


def write(path: Path, size_bytes: int) -> None:
    head = '{\n  "schemaVersion": 1,\n  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1},\n  "traceEvents": ['
    written = 0
    with path.open("w") as file:
        file.write(head)
        for number, event in enumerate(events()):
            written += file.write(f"{',' if number else ''}\n  {{\n    {event}\n  }}")
            if written >= size_bytes:
                break
        file.write(
            f'\n  ],\n  "traceName": "x.json",\n  "displayTimeUnit": "ms",\n  "baseTimeNanoseconds": {BASE_NS}\n}}'
        )


def measured(python: str, code: str, path: Path) -> list[float]:
    """Wall s, CPU s, peak MB, rows of one reading."""
    run = [python, "-c", MEASURED.format(code), str(path)]
    told = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    return [float(x) for x in told.split("MEASURED ")[1].split()]


def peer(python: str) -> tuple[str, str]:
    """Name and code of what is compared with."""
    there = subprocess.run([python, "-c", "import hta"], capture_output=True, check=False).returncode == 0
    if not there:
        print("HolisticTraceAnalysis is not installed: compared with json.load and pandas instead")
    return ("HTA", HTA) if there else ("json+pandas", PANDAS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-python", default=sys.executable)
    told = parser.parse_args()
    name, code = peer(told.peer_python)
    with TemporaryDirectory() as folder:
        plain = Path(folder) / "rank-0.pt.trace.json"
        write(plain, (400 if told.full else 40) * MIB)
        packed = plain.with_name(plain.name + ".gz")
        with plain.open("rb") as source, gzip.open(packed, "wb", 5) as target:
            shutil.copyfileobj(source, target, MIB)
        ways = {
            "afterrun": (sys.executable, OURS, plain),
            "afterrun, gzip": (sys.executable, OURS, packed),
            name: (told.peer_python, code, plain),
        }
        taken: dict[str, list[list[float]]] = {way: [] for way in ways}
        for _ in range(told.rounds):
            for way, how in ways.items():
                taken[way].append(measured(*how))
    medians = {way: [statistics.median(x) for x in zip(*runs, strict=True)] for way, runs in taken.items()}
    base = medians["afterrun"]
    for way, (wall, cpu, peak, rows) in medians.items():
        ratios = f"{wall / base[0]:5.2f} x   CPU {cpu:6.2f} s {cpu / base[1]:5.2f} x   {peak:6.0f} MB {peak / base[2]:5.2f} x"
        print(f"{way:16} {wall:6.2f} s {ratios}   {rows:,.0f} rows")
    print(json.dumps(medians))


if __name__ == "__main__":
    main()
