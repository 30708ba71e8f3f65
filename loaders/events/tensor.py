"""``TensorProto``: the numbers inside, whatever their type and wherever they are kept.

Field numbers and types: tensorflow/core/framework/tensor.proto, types.proto, tensor_shape.proto.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from afterrun.loaders.protowire import BYTES, VARINT, Field, WireError, fields, signed, text, varint

Numbers = NDArray[np.float64]

STRING = 7
BFLOAT16 = "bf16"

CONTENT: Mapping[int, str] = MappingProxyType(
    {
        1: "<f4",
        2: "<f8",
        3: "<i4",
        4: "u1",
        5: "<i2",
        6: "i1",
        9: "<i8",
        10: "u1",
        14: BFLOAT16,
        17: "<u2",
        19: "<f2",
        22: "<u4",
        23: "<u8",
    }
)
"""Number of a data type -> layout of one number in ``tensor_content``. Bool is 10."""

_VALUES: Mapping[int, int] = MappingProxyType(
    {1: 5, 2: 6, 3: 7, 4: 7, 5: 7, 6: 7, 9: 10, 10: 11, 14: 13, 17: 7, 19: 13, 22: 16, 23: 17}
)
"""Number of a data type -> number of its ``*_val`` field."""


@dataclass(slots=True)
class Tensor:
    """The parts of one tensor; nothing is decoded yet. ``size`` is the number of elements by its shape."""

    dtype: int = 0
    size: int = 1
    dims: tuple[int, ...] = ()
    content: Field | None = None
    values: list[Field] = field(default_factory=list)

    @property
    def numeric(self) -> bool:
        """Whether the elements are numbers of a known type."""
        return self.dtype in CONTENT


def parse(view: memoryview, at: int, end: int) -> Tensor:
    """Find the parts of the tensor at ``view[at:end]``. Raises ``WireError``."""
    tensor = Tensor()
    for part in fields(view, at, end):
        if part.number == 1:
            tensor.dtype = part.value
        elif part.number == 2:
            tensor.dims = tuple(_dims(view, part))
        elif part.number == 4:
            tensor.content = part
        elif part.number >= 5:
            tensor.values.append(part)
    for dim in tensor.dims:
        tensor.size *= max(dim, 0)
    return tensor


def _dims(view: memoryview, shape: Field) -> list[int]:
    """Sizes along each axis; an unknown one is -1."""
    return [
        next((signed(size.value) for size in fields(view, dim.at, dim.end) if size.number == 1), 0)
        for dim in fields(view, shape.at, shape.end)
        if dim.number == 2
    ]


def numbers(view: memoryview, tensor: Tensor) -> Numbers:
    """All elements of a numeric tensor as float64, in row-major order.

    A tensor may hold fewer values than elements: the last one stands for the rest (tensor.cc,
    ``FromProtoField``). The caller bounds ``size`` first. Raises ``WireError`` if there are more values
    than elements, none at all, or bytes that are no whole number of values.
    """
    if tensor.content is not None and tensor.content.end > tensor.content.at:
        found = _from_content(view, tensor.content, CONTENT[tensor.dtype])
        if found.size != tensor.size:
            raise WireError(f"{found.size} numbers in a tensor of {tensor.size}")
        return found
    wanted = _VALUES[tensor.dtype]
    parts = [_from_values(view, part, tensor.dtype) for part in tensor.values if part.number == wanted]
    found = np.concatenate(parts) if parts else np.zeros(0)
    if tensor.size in (0, found.size):
        return found
    if found.size > tensor.size or not found.size:
        raise WireError(f"{found.size} numbers in a tensor of {tensor.size}")
    return np.concatenate([found, np.full(tensor.size - found.size, found[-1])])


def strings(view: memoryview, tensor: Tensor) -> list[str]:
    """The elements of a string tensor."""
    return [text(view, part.at, part.end) for part in tensor.values if part.number == 8]


def place(tensor: Tensor) -> tuple[int, str] | None:
    """Where the one number of a one-element tensor lies and its layout, if its width is fixed."""
    if tensor.size != 1 or tensor.dtype not in CONTENT:
        return None
    layout = CONTENT[tensor.dtype]
    if tensor.content is not None:
        fits = tensor.content.end - tensor.content.at == width(layout) and not tensor.values
        return (tensor.content.at, layout) if fits else None
    if len(tensor.values) != 1 or tensor.dtype not in (1, 2):
        return None
    value = tensor.values[0]
    fits = (
        value.end - value.at == width(layout)
        and value.number == _VALUES[tensor.dtype]
        and value.wire != VARINT
    )
    return (value.at, layout) if fits else None


def width(layout: str) -> int:
    """Bytes of one number."""
    return 2 if layout == BFLOAT16 else np.dtype(layout).itemsize


def widen(raw: NDArray[np.uint8], layout: str) -> Numbers:
    """Bytes of whole numbers, end to end, as float64."""
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        if layout == BFLOAT16:  # the upper half of a float32
            return (raw.view("<u2").astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
        return raw.view(layout).astype(np.float64)


def _from_content(view: memoryview, part: Field, layout: str) -> Numbers:
    if part.wire != BYTES or (part.end - part.at) % width(layout):
        raise WireError("tensor_content is not a whole number of values")
    return widen(np.frombuffer(view[part.at : part.end], np.uint8), layout)


def _from_values(view: memoryview, part: Field, dtype: int) -> Numbers:
    """The numbers of one ``*_val`` field: many if packed, else one."""
    layout = CONTENT[dtype]
    if dtype in (1, 2):
        if part.wire == VARINT:
            raise WireError("a varint where a float belongs")
        return _from_content(view, part._replace(wire=BYTES), layout)
    if part.wire == VARINT:
        found = [part.value]
    else:
        found, at = [], part.at
        while at < part.end:
            number, at = varint(view, at, part.end)
            found.append(number)
    if layout in (BFLOAT16, "<f2"):  # half_val holds the bits of each number
        return widen(np.array(found, np.uint64).astype("<u2").view(np.uint8), layout)
    if layout == "<u8":
        return np.array(found, np.float64)
    return np.array([signed(number) for number in found], np.float64)
