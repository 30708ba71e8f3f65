"""Figures and frames as bytes, and bytes on disk: the same input gives the same bytes, whole or not at all."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme

FORMATS = ("png", "svg", "pdf")

PNG_LEVEL = 3
"""Of zlib: half the time of the default for a tenth more bytes."""

_NO_METADATA: Mapping[str, Mapping[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Nothing about when and with which version: it would change bytes that show the same."""

_FORMULA_START = r"^[=+\-@\t\r]"
"""Spreadsheets run a cell that begins so."""


def check_format(fmt: str) -> None:
    """Raises ``ValueError`` naming the known formats."""
    if fmt not in FORMATS:
        raise ValueError(f"unknown figure format {fmt!r}; there are {', '.join(FORMATS)}")


def render(figure: MplFigure, fmt: str, theme: Theme) -> bytes:
    """The figure as PNG, SVG or PDF; equal figures give equal bytes.

    Raises ``ValueError`` for any other format.
    """
    check_format(fmt)
    out = io.BytesIO()
    options: dict[str, Any] = {"pil_kwargs": {"compress_level": PNG_LEVEL}} if fmt == "png" else {}
    with theme.context():
        figure.savefig(out, format=fmt, dpi=theme.dpi, metadata=dict(_NO_METADATA[fmt]), **options)
    return out.getvalue()


def csv_bytes(frame: pl.DataFrame) -> bytes:
    """The frame as UTF-8 CSV. Text that a spreadsheet would run gets a leading apostrophe; numbers stay numbers."""
    text = [name for name, dtype in frame.schema.items() if dtype in (pl.String, pl.Categorical)]
    safe = frame.with_columns(
        pl.when(cell.str.contains(_FORMULA_START)).then(pl.lit("'") + cell).otherwise(cell).alias(name)
        for name in text
        for cell in (pl.col(name).cast(pl.String),)
    )
    return safe.write_csv().encode()


def write_atomic(path: Path, data: bytes) -> None:
    """Write all of it or nothing: a temporary file beside the target, flushed, then renamed over it.

    Raises ``OSError``; no half file stays behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
