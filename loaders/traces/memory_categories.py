"""What the memory of PyTorch's allocator holds, told by the call stack of each allocation.

A snapshot with history keeps the stack of every allocation, innermost frame first. Which part of training asked for a block is
a fact; that what the forward pass asked for is kept as activations is the usual case and no proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

COUNTER = "mem_category_bytes"
EARLIER = "before the record"
UNKNOWN = "other"

_RULES: Sequence[tuple[str, re.Pattern[str]]] = (
    ("optimizer", re.compile(r"torch/optim/|apex/optimizers|bitsandbytes/optim|/zero/stage|distributed_fused_adam|optimizer\.py:step\b")),
    ("communication", re.compile(r"c10d::|ProcessGroupNCCL|torch/distributed/(?!optim)")),
    ("backward", re.compile(r"torch::autograd::Engine|torch/autograd/\S+:backward|Backward\d*::apply")),
    ("parameters", re.compile(r"module\.py:(?:to|cuda|_apply|convert|load_state_dict|_load_from_state_dict|reset_parameters)\b|:__init__\b|serialization\.py:")),
    ("data", re.compile(r"dataloader\.py:|pin_memory\.py:|collate\.py:")),
    ("forward", re.compile(r"module\.py:_(?:wrapped_)?call_impl|:forward\b")),
)  # fmt: skip
"""Category and what one frame of its stack says, as ``file:function``; the first rule that fits wins."""

CATEGORIES = (*(name for name, _ in _RULES), UNKNOWN, EARLIER)
_MAX_FRAMES = 200


def category_of(frames: Any) -> str:
    """The category of a stack; ``other`` where no frame tells."""
    if not isinstance(frames, list):
        return UNKNOWN
    stack = "\n".join(
        f"{frame.get('filename', '')}:{frame.get('name', '')}".replace("\\", "/")
        for frame in frames[:_MAX_FRAMES]
        if isinstance(frame, dict)
    )
    return next((name for name, pattern in _RULES if pattern.search(stack)), UNKNOWN)


def by_category(device: int, events: Iterable[Mapping[str, Any]], end_bytes: int) -> pl.DataFrame | None:
    """Samples of ``mem_category_bytes`` of one device: held bytes of a category after each action that moved it.

    ``end_bytes`` is what the device holds at the end: what was there before the record began is the rest. None where no
    allocation has a stack.
    """
    known: dict[int, str] = {}  # stacks are shared between allocations
    live: dict[int, tuple[str, int]] = {}
    rows: list[tuple[int | None, str, int]] = []
    told = False
    for event in events:
        action, address, size = str(event.get("action")), event.get("addr"), event.get("size")
        if not isinstance(address, int) or not isinstance(size, int) or size < 0:
            continue
        time_us = event.get("time_us")
        t_ns = time_us * 1000 if isinstance(time_us, int) and 0 <= time_us < 2**53 else None
        if action == "alloc":
            frames = event.get("frames")
            key = id(frames)
            if key not in known:
                known[key] = category_of(frames)
                told |= known[key] != UNKNOWN
            live[address] = (known[key], size)
            rows.append((t_ns, known[key], size))
        elif action in ("free_completed", "free"):
            category, held = live.pop(address, (EARLIER, size))
            rows.append((t_ns, category, -held))
    if not told:
        return None
    frame = pl.DataFrame(
        rows, schema={"t_ns": pl.Int64, "category": pl.String, "delta": pl.Int64}, orient="row"
    )
    earlier = end_bytes - int(frame["delta"].sum())  # what was held when the record began
    start = pl.DataFrame({"t_ns": frame["t_ns"][:1], "category": [EARLIER], "delta": [max(earlier, 0)]})
    moved = pl.concat([start, frame]).with_columns(value=pl.col("delta").cum_sum().over("category"))
    return moved.select(
        pl.lit(device, pl.Int32).alias("device"),
        pl.format('category="{}"', "category").alias("series"),
        pl.lit(COUNTER).alias("counter"),
        "t_ns" if moved["t_ns"].null_count() == 0 else pl.lit(None, pl.Int64).alias("t_ns"),
        pl.col("value").clip(lower_bound=0).cast(pl.Float64),
    )
