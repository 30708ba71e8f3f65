"""Inputs of the golden cases of kernel profiles, small profilers and monitoring systems; each value can be found again by eye."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

START_S = 1_700_000_000

NCU_HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",'
    '"Section Name","Metric Name","Metric Unit","Metric Value"'
)


def ncu_details(rows: list[tuple[int, str, str, str, str]]) -> str:
    """The details page: (ID, kernel, metric, unit, value) a row."""
    lines = [
        f'"{i}","4242","python3","127.0.0.1","{kernel}","1","7","(128, 1, 1)","(64, 1, 1)","0","8.0","GPU Speed Of Light Throughput","{metric}","{unit}","{value}"'
        for i, kernel, metric, unit, value in rows
    ]
    return "\n".join(["==PROF== Connected to process 4242 (/usr/bin/python3)", NCU_HEADER, *lines]) + "\n"


def ncu_printed(kernel: str, metrics: list[tuple[str, str, str]]) -> str:
    """The printed report of one kernel."""
    rows = "".join(f"    {name:<27} {unit:>11} {value:>12}\n" for name, unit, value in metrics)
    ruler = f"    {'-' * 27} {'-' * 11} {'-' * 12}\n"
    return (
        "==PROF== Connected to process 31440 (/usr/bin/python3)\n[31440] python3@127.0.0.1\n"
        f"  {kernel} (64, 1, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 8.0\n"
        f"    Section: GPU Speed Of Light Throughput\n{ruler}    {'Metric Name':<27} {'Metric Unit':>11} {'Metric Value':>12}\n{ruler}{rows}{ruler}\n"
    )


def varint(number: int) -> bytes:
    """A protobuf varint."""
    out = b""
    while True:
        number, low = number >> 7, number & 0x7F
        out += bytes([low | (0x80 if number else 0)])
        if not number:
            return out


def message(number: int, payload: bytes) -> bytes:
    """A length-delimited protobuf field."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def scalar(number: int, value: int) -> bytes:
    """A varint protobuf field."""
    return varint(number << 3) + varint(value)


def xplane(planes: list[tuple[str, list[tuple[str, list[tuple[str, int, int]]]]]], base_ns: int) -> bytes:
    """An XSpace: planes of lines of events (name, offset in ps, length in ps)."""
    out = b""
    for plane, lines in planes:
        names = list(dict.fromkeys(name for _, events in lines for name, _, _ in events))
        body = message(2, plane.encode())
        for number, (line, events) in enumerate(lines, 1):
            inner = scalar(1, number) + message(2, line.encode()) + scalar(3, base_ns)
            for name, offset, length in events:
                inner += message(4, scalar(1, names.index(name) + 1) + scalar(2, offset) + scalar(3, length))
            body += message(3, inner)
        for i, name in enumerate(names, 1):
            body += message(4, scalar(1, i) + message(2, scalar(1, i) + message(2, name.encode())))
        out += message(1, body)
    return out


def snapshot() -> dict[str, object]:
    """A memory snapshot: 4 MiB held, 3 MiB of it allocated after three actions."""
    mib = 1 << 20
    actions = [
        ("segment_alloc", 4 * mib),
        ("alloc", 2 * mib),
        ("alloc", mib),
        ("alloc", mib),
        ("free_completed", mib),
    ]
    trace = [
        {"action": action, "addr": i, "size": size, "stream": 0, "time_us": START_S * 1_000_000 + i * 1000}
        for i, (action, size) in enumerate(actions)
    ]
    segment = {"device": 0, "address": 0, "total_size": 4 * mib, "allocated_size": 3 * mib, "blocks": []}
    return {
        "segments": [segment],
        "device_traces": [trace],
        "allocator_settings": {"expandable_segments": "False"},
    }


SUMMARY = """|===========================================================================|
|                  PyTorch CUDA memory summary, device ID 0                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 1            |        cudaMalloc retries: 2         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |   1024 KiB |      2 GiB |      3 GiB |      3 GiB |
|---------------------------------------------------------------------------|
| GPU reserved memory   |    512 MiB |      4 GiB |      4 GiB |   3584 MiB |
|===========================================================================|
"""

LIGHTNING = """FIT Profiler Report

---------------------------------------------------------------------
|  Action                       \t|  Mean duration (s)\t|  Num calls      \t|  Total time (s) \t|  Percentage %   \t|
---------------------------------------------------------------------
|  Total                        \t|  -              \t|  30             \t|  20.0           \t|  100 %          \t|
---------------------------------------------------------------------
|  run_training_epoch           \t|  16.0           \t|  1              \t|  16.0           \t|  80             \t|
|  [_TrainingEpochLoop].train_dataloader_next\t|  0.2            \t|  10             \t|  2.0            \t|  10             \t|
"""

DEEPSPEED = """-------------------------- DeepSpeed Flops Profiler --------------------------
Profile Summary at step 10:
world size:                                                   8
params per gpu:                                               336.23 M
fwd latency:                                                  76.67 ms
fwd FLOPS per GPU = fwd flops per GPU / fwd latency:          81.9 TFLOPS
step latency:                                                 34.09 us
samples/second:                                               433.07

----------------------------- Aggregated Profile per GPU -----------------------------
"""


def kernel_profiles(root: Path) -> None:
    """Two kernels from ncu as CSV, one as text, and a container that needs NVIDIA's reader."""
    root.mkdir(parents=True, exist_ok=True)
    rows = []
    for i, (kernel, ns, compute, memory) in enumerate(
        [("gemm(float*)", "1,234,560", "81.20", "22.50"), ("relu(float*)", "12,300", "11.00", "88.40")]
    ):
        rows += [
            (i, kernel, "Duration", "ns", ns),
            (i, kernel, "Compute (SM) Throughput", "%", compute),
            (i, kernel, "Memory Throughput", "%", memory),
        ]
    (root / "details.csv").write_text(ncu_details(rows))
    metrics = [
        ("Duration", "us", "777.95"),
        ("Compute (SM) Throughput", "%", "18.00"),
        ("Memory Throughput", "%", "33.42"),
    ]
    (root / "printed.txt").write_text(ncu_printed("void fill_kernel<float>(float *)", metrics))
    (root / "report.ncu-rep").write_bytes(b"NVR\0\2\0\0\0" + bytes(64))


def small_profilers(root: Path) -> None:
    """What Lightning, DeepSpeed, JAX and PyTorch's allocator leave behind."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "lightning.txt").write_text(LIGHTNING)
    (root / "deepspeed.txt").write_text(DEEPSPEED)
    (root / "memory.txt").write_text(SUMMARY)
    (root / "snapshot.pickle").write_bytes(pickle.dumps(snapshot(), protocol=4))
    planes = [
        (
            "/device:GPU:0",
            [
                ("Stream #13(Compute)", [("fusion", 0, 40_000_000), ("fusion", 60_000_000, 40_000_000)]),
                ("XLA Ops", [("fusion", 0, 40_000_000)]),
            ],
        ),
        ("/host:CPU", [("python", [("next_batch", 40_000_000, 15_000_000)])]),
    ]
    (root / "host.xplane.pb").write_bytes(xplane(planes, START_S * 10**9))


def monitoring(root: Path) -> None:
    """The same GPU as Prometheus, Grafana and InfluxDB tell of it."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "scrape.prom").write_text(
        "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
        'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",modelName="A \\"100\\", 80GB"} 97\n'
        "# TYPE nvidia_smi_utilization_gpu_ratio gauge\n"
        'nvidia_smi_utilization_gpu_ratio{uuid="a"} 0.5\nnvidia_smi_utilization_gpu_ratio{uuid="b"} 1\n'
        "# TYPE nvidia_smi_memory_used_bytes gauge\n"
        'nvidia_smi_memory_used_bytes{uuid="a"} 1.073741824e+09\n'
    )
    values = [[START_S + 15 * i + 0.5, "NaN" if i == 2 else str(90 + i)] for i in range(5)]
    series = {"metric": {"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": "1"}, "values": values}
    answer = {"status": "success", "data": {"resultType": "matrix", "result": [series]}}
    (root / "query_range.json").write_text(json.dumps(answer))
    (root / "panel.csv").write_text(
        'sep=;\n"Time";"DCGM_FI_DEV_FB_USED{gpu=""0""}";"DCGM_FI_DEV_FB_USED{gpu=""1""}"\n'
        '"2026-01-05 10:00:00";"12 GiB";""\n"2026-01-05 10:00:15";"13 GiB";"512 MiB"\n'
    )
    stamp = START_S * 10**9
    (root / "telegraf.influx").write_text(
        f'nvidia_smi,host=node\\ 1,index=0,name=A100 utilization_gpu=91i,memory_used=1024i,pstate="P0",ok=true {stamp}\n'
        f"cpu,cpu=cpu-total,host=node\\ 1 usage_iowait=2.5 {stamp}\n"
    )
    (root / "flux.csv").write_text(
        "#group,false,false,false,false,true,true\n#datatype,string,long,dateTime:RFC3339,double,string,string\n#default,_result,,,,,\n"
        ",result,table,_time,_value,_field,_measurement\n,,0,2026-01-05T10:00:00.5Z,55.5,utilization_gpu,nvidia_smi\n"
        ",,0,2026-01-05T10:00:10Z,56.5,utilization_gpu,nvidia_smi\n"
    )


class Evil:
    """A pickle that would run a command."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        """What a naive reader would call."""
        import os  # only this pickle names it

        return (os.system, ("true",))


WRITERS: tuple[Callable[[Path], None], ...] = (kernel_profiles, small_profilers, monitoring)
