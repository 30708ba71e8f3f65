"""Kernels of a device by name: time, share, lengths; matrix products and whether they run on tensor cores."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from afterrun.analyzer.intervals import union
from afterrun.analyzer.trace.devices import DeviceTrace
from afterrun.analyzer.trace.words import short_name

MATRIX = re.compile(
    r"gemm|conv(?:olution|2d|3d)?(?![a-z])|cudnn.*(?:fprop|dgrad|wgrad)|cutlass|xmma|wgmma|cublas|matmul|flash|fmha|attention",
    re.I,
)
"""Kernels that tensor cores could run: matrix products, convolutions, fused attention."""

TENSOR = re.compile(
    r"tensorop|16816|1688|884|hmma|imma|h?s?16x?8|_tc_|_tensor|s\d{4}gemm|xmma|wgmma|gmma|mma_|f16|bf16|fp8|e4m3|tf32|flash|fmha|hgemm|h\d+gemm|nvjet",
    re.I,
)
"""Names of kernels that use tensor cores, after those of cuBLAS, cuDNN and CUTLASS."""


def kernel_table(device: DeviceTrace) -> pl.DataFrame:
    """One row a kernel name, by time: ``name``, ``short``, ``launches``, ``sum_ns``, ``busy_ns``, ``share_pct``, ``median_ns``, ``max_ns``, ``matrix``, ``tensor``.

    ``busy_ns`` is the union of the kernel's intervals, ``share_pct`` its part of the device's kernel time.
    """
    kernels = device.of_lanes("kernel", "comm")
    if kernels.is_empty():
        return pl.DataFrame()
    rows = kernels.group_by("name").agg(
        pl.len().alias("launches"),
        pl.col("dur_ns").sum().alias("sum_ns"),
        pl.col("dur_ns").median().alias("median_ns"),
        pl.col("dur_ns").max().alias("max_ns"),
        pl.col("start_ns"),
        pl.col("end_ns"),
    )
    busy = [
        union(np.asarray(a), np.asarray(b)).total_ns
        for a, b in zip(rows["start_ns"], rows["end_ns"], strict=True)
    ]
    names = rows["name"].cast(pl.String).to_list()
    whole = max(device.kernels.total_ns, 1)
    return (
        rows.drop("start_ns", "end_ns")
        .with_columns(
            pl.Series("name", names),
            pl.Series("short", [short_name(n) for n in names]),
            pl.Series("busy_ns", busy),
            pl.Series("share_pct", [100.0 * b / whole for b in busy]),
            pl.Series("matrix", [bool(MATRIX.search(n)) for n in names]),
            pl.Series("tensor", [bool(MATRIX.search(n) and TENSOR.search(n)) for n in names]),
        )
        .sort("busy_ns", "name", descending=[True, False])
    )
