"""The golden case of Nsight Systems: one small capture as report, as its two kinds of export, and printed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.nsys import Export, as_parquet, packed

PRINTED = """\
Processing [a.sqlite] with [/opt/nsys/reports/osrt_sum.py]...
SKIPPED: a.sqlite does not contain OS Runtime trace data.

Processing [a.sqlite] with [/opt/nsys/reports/cuda_gpu_kern_sum.py]...

 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

 Time (%)  Total Time (ns)  Instances  Avg (ns)  Med (ns)  Min (ns)  Max (ns)  StdDev (ns)          Name
 --------  ---------------  ---------  --------  --------  --------  --------  -----------  --------------------
     75.0        1,200,000         20   60000.0   60000.0     50000     70000       3000.0  void gemm<float>(int)
     25.0          400,000         20   20000.0   20000.0     20000     20000          0.0  relu

"""
TRACED = """\
Start (ns),Duration (ns),CorrId,Bytes (MB),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name
1000,400,11,0.250,Pinned,Device,NVIDIA A100 (0),1,13,[CUDA memcpy Host-to-Device]
1500,80000,12,,,,NVIDIA A100 (0),1,7,"void gemm<float, 4>(int, int)"
90000,20000,13,,,,NVIDIA A100 (0),1,7,relu
"""


def capture() -> Export:
    """Three steps on two devices, each with a copy, a kernel, the replay of a graph, and a wait."""
    export = Export()
    export.add(
        "TARGET_INFO_GPU", id=0, name="NVIDIA A100", totalMemory=85_095_874_560, smCount=108, cuDevice=0
    )
    export.add(
        "DIAGNOSTIC_EVENT",
        timestamp=5,
        timestampType=1,
        severity=2,
        text="Not all CUDA events were collected.",
    )
    for step in range(3):
        at = 1_000_000 * step
        export.range(at, at + 900_000, f"step {step}", registered=step > 0)
        export.range(at, at + 100_000, "next_batch").os_call(at, at + 90_000, "read")
        for device in (0, 1):
            place = {"deviceId": device}
            export.copy(at + 110_000, at + 150_000, ends=(device, 2), **place)
            export.kernel(at + 160_000, at + 400_000, corr=export.launch(at=at + 140_000), **place)
            export.graph(
                at + 410_000,
                at + 800_000,
                corr=export.launch("cudaGraphLaunch_v10000", at=at + 150_000),
                **place,
            )
        export.wait(
            at + 500_000,
            at + 810_000,
            "device",
            export.launch("cudaDeviceSynchronize_v3020", at=at + 490_000),
        )
    return export


def nsys(root: Path) -> None:
    """The export as SQLite with one row damaged, as parquet, the report itself, and what ``nsys stats`` prints of another."""
    export = capture()
    export.kernel(5_000_000, 4_000_000, globalPid=packed(4000))
    path = root / "sqlite" / "report1.sqlite"
    path.parent.mkdir(parents=True)
    export.write(path, page_bytes=512)
    data = bytearray(path.read_bytes())
    data[92:100] = bytes(8)  # which version of the library wrote it
    path.write_bytes(bytes(data))
    small = Export("2020").kernel(0, 100).kernel(150, 300)
    del small.rows["ProcessStreams"]
    with TemporaryDirectory() as folder:
        as_parquet(
            small.write(Path(folder) / "a.sqlite"), root / "parquet" / "report2_pqtdir", statistics=False
        )
    for name, content in (
        ("report/report3.nsys-rep", "NVIDIA Tegra Profiler Report 2025@5@1@121-255136380782v0.\n"),
        ("printed/stats.txt", PRINTED),
        ("printed/trace_cuda_gpu_trace.csv", TRACED),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content.encode())


WRITERS: tuple[Callable[[Path], None], ...] = (nsys,)
