"""The ``args`` that Kineto's events carry, as far as they are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

import msgspec
from msgspec import field


class CallArgs(msgspec.Struct, gc=False):
    """Of a call into CUDA or HIP."""

    correlation: int | None = None


class DeviceArgs(msgspec.Struct, gc=False):
    """Of a kernel, a copy or a set; the last five stand with collectives only."""

    device: int | None = None
    stream: int | None = None
    correlation: int | None = None
    bytes: int | None = None
    group: str | None = field(default=None, name="Process Group Name")
    ranks: str | list[int] | None = field(default=None, name="Process Group Ranks")
    elements: int | None = field(default=None, name="In msg nelems")
    dtype: str | None = None


class MemoryArgs(msgspec.Struct, gc=False):
    """Of an allocation or a release; the totals are those after it."""

    device_type: int | None = field(default=None, name="Device Type")
    device: int | None = field(default=None, name="Device Id")
    allocated: int | None = field(default=None, name="Total Allocated")
    reserved: int | None = field(default=None, name="Total Reserved")


ELEMENT_BYTES: Mapping[str, int] = MappingProxyType(
    dict.fromkeys(("byte", "char", "bool", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"), 1)
    | dict.fromkeys(("half", "bfloat16", "short", "uint16"), 2)
    | dict.fromkeys(("float", "int", "uint32", "complexhalf"), 4)
    | dict.fromkeys(("double", "long", "uint64", "complexfloat"), 8)
    | {"complexdouble": 16}
)
"""Names of c10 scalar types, lower case."""

_LISTED = re.compile(r"[\[(]?\s*\d+(?:\s*,\s*\d+)*\s*[\])]?")


def moved_bytes(args: DeviceArgs) -> int | None:
    """Bytes of a copy, or of what a rank gives to a collective."""
    if args.bytes is not None or args.elements is None or args.dtype is None:
        return args.bytes
    size = ELEMENT_BYTES.get(args.dtype.lower())
    return None if size is None else args.elements * size


def group_label(args: DeviceArgs, known: Mapping[str, str]) -> str | None:
    """``ranks 0,1`` where the ranks of the group are listed, else its name; null where there is none."""
    ranks = args.ranks
    if isinstance(ranks, str):
        ranks = [int(x) for x in re.findall(r"\d+", ranks)] if _LISTED.fullmatch(ranks.strip()) else None
    if ranks:
        return "ranks " + ",".join(map(str, ranks))
    return known.get(args.group, args.group) if args.group else None
