"""System metrics that MLflow logs among the metrics of a run, as rows of ``samples``.

With ``log_system_metrics`` the client writes ``system/gpu_0_utilization_percentage`` and its like, where several
machines log to one run with the name of the node between (``system/node-1/cpu_utilization_percentage``). Their step
counts samplings, not training. Megabytes are millions of bytes. Network, and disk traffic, are totals since the run
began. Source: mlflow/system_metrics/metrics.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import polars as pl

from afterrun.loaders.schema import TEXT
from afterrun.loaders.settings.personal import impersonal

_MEGABYTE = 1e6

_GPU = {
    "utilization_percentage": ("gpu_util_pct", 1),
    "memory_usage_percentage": ("mem_used_pct", 1),
    "memory_usage_megabytes": ("mem_used_bytes", _MEGABYTE),
    "power_usage_watts": ("power_w", 1),
    "power_usage_percentage": ("power_pct", 1),
}
_HOST = {
    "cpu_utilization_percentage": ("cpu_pct", 1),
    "system_memory_usage_percentage": ("host_mem_used_pct", 1),
    "system_memory_usage_megabytes": ("host_mem_used_bytes", _MEGABYTE),
    "network_receive_megabytes": ("net_received_bytes", _MEGABYTE),
    "network_transmit_megabytes": ("net_sent_bytes", _MEGABYTE),
    "disk_usage_percentage": ("disk_used_pct", 1),
    "disk_usage_megabytes": ("disk_used_bytes", _MEGABYTE),
    "disk_available_megabytes": ("disk_available_bytes", _MEGABYTE),
}
_NAME = re.compile(r"system/(?:(?P<node>.{1,200})/)?(?:gpu_(?P<device>\d{1,4})_)?(?P<what>[a-z_]+)")


class Counter(NamedTuple):
    """What a metric measures; its values are to be multiplied by ``factor``."""

    device: int | None
    host: str
    counter: str
    factor: float


@cache
def counter_of(name: str) -> Counter | None:
    """The counter of a metric of the machine; None for any other name."""
    found = _NAME.fullmatch(name)
    known = None if found is None else (_HOST if found["device"] is None else _GPU).get(found["what"])
    if found is None or known is None:
        return None
    device = None if found["device"] is None else int(found["device"])
    return Counter(device, impersonal(found["node"] or ""), *known)


def split(metrics: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """``metrics`` of a run without those of the machine, and these as ``samples``; tables without rows are left out."""
    tags = metrics["tag"].unique().cast(pl.String).to_list()
    counters = {tag: counter for tag in tags if (counter := counter_of(tag)) is not None}
    if not counters:
        return {"metrics": metrics}
    told = pl.DataFrame(
        [(tag, *counter) for tag, counter in counters.items()],
        schema={
            "tag": pl.String, "device": pl.Int32, "host": pl.String, "counter": pl.String, "factor": pl.Float64
        },
        orient="row",
    )  # fmt: skip
    rows = metrics.with_columns(pl.col("tag").cast(pl.String)).join(told, on="tag", maintain_order="left")
    samples = rows.select(
        pl.col("wall_ns").alias("t_ns"),
        "device",
        pl.col("host").cast(TEXT),
        pl.lit("", TEXT).alias("series"),
        pl.col("counter").cast(TEXT),
        (pl.col("value") * pl.col("factor")).alias("value"),
    )
    rest = metrics.filter(~pl.col("tag").cast(pl.String).is_in(list(counters)))
    return {"samples": samples} | ({"metrics": rest} if len(rest) else {})
