"""Inputs of the golden case for traces in JSON; see ``golden_inputs``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.support.kinetotrace import BASE_NS, copy, host, kernel, launch, trace, write_trace

START_US = 1_700_000_000_000_000
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def _rank(rank: int, wait_us: int) -> str:
    """Three steps of 1 ms: a batch, a copy, two kernels, a collective in which the faster rank waits."""
    events = []
    for step in range(3):
        at, number = 1000 * step, 10 * step
        events += [
            host("user_annotation", f"ProfilerStep#{step + 5}", at, 990),
            host("user_annotation", LOADER, at + 5, 100),
            host("cpu_op", "aten::mm", at + 120, 40),
            launch(at + 125, number),
            launch(at + 140, number + 1),
            copy(
                "Memcpy HtoD (Pinned -> Device)", at + 130, 50, device=rank, bytes=65536, correlation=number
            ),
            kernel("gemm", at + 190.5, 300, device=rank, correlation=number + 1),
            kernel(
                ALL_REDUCE, at + 500, 200 + wait_us, device=rank, **{"In msg nelems": 4096, "dtype": "Float"}
            ),
        ]
    job = {"backend": "nccl", "rank": rank, "world_size": 2}
    device = [{"id": rank, "name": "H100", "totalGlobalMem": 85_000_000_000}]
    return trace(events, deviceProperties=device, distributedInfo=job, baseTimeNanoseconds=BASE_NS)


def framework_traces(root: Path) -> None:
    """Two ranks of PyTorch's profiler, one packed; a Horovod timeline as it is left; spans of Jaeger and Zipkin."""
    write_trace(root / "torch" / "rank-0.pt.trace.json", _rank(0, 100))
    write_trace(root / "torch" / "rank-1.pt.trace.json.gz", _rank(1, 0))
    lines = [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "grad.0"}}]
    for i in range(3):
        lines.append({"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 1000 * i, "pid": 1})
        lines += [{"ph": "X", "name": str(r), "ts": 1000 * i + 50 * r, "pid": 1, "dur": 0} for r in (0, 1)]
        lines.append({"ph": "E", "name": "", "ts": 1000 * i + 60, "pid": 1})
    write_trace(root / "horovod" / "timeline.json", "[\n" + "".join(json.dumps(x) + ",\n" for x in lines))
    span = {"traceID": "a", "spanID": "b", "operationName": "order", "processID": "p1"}
    processes = {"p1": {"serviceName": "front"}}
    jaeger = {
        "traceID": "a",
        "spans": [span | {"startTime": START_US, "duration": 70}],
        "processes": processes,
    }
    write_trace(root / "jaeger" / "trace.json", json.dumps({"data": [jaeger]}))
    zipkin = {"traceId": "a", "id": "b", "name": "get", "localEndpoint": {"serviceName": "front"}}
    timed = [zipkin | {"timestamp": START_US, "duration": 70}, zipkin | {"timestamp": START_US}]
    write_trace(root / "zipkin" / "spans.json", json.dumps(timed))


WRITERS: tuple[Callable[[Path], None], ...] = (framework_traces,)
