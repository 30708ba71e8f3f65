"""Nsight Systems reports as the profiler writes them (``.nsys-rep``, formerly ``.qdrep``): only NVIDIA's tool opens them.

Where ``nsys`` is on the PATH the report is exported into a private folder and read from there; elsewhere it is
named with its version and the command that exports it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.formats.traces.nsys_sqlite import load_sqlite
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.settings.personal import impersonal

EXPORT_TIMEOUT_S = 600

_MAGIC = b"NVIDIA Tegra Profiler Report"
_VERSION = re.compile(rb"Report (\d+(?:@\d+){2,3})")
_TOOL = "nsys"


class NsysRep(Loader):
    """Nsight Systems report (`.nsys-rep`, `.qdrep`): exported where `nsys` is installed, else named with the command to do so."""

    format = "nsys-rep"
    family = "traces"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the content says it all
        """The magic text in the first bytes."""
        return _MAGIC in head[:64]

    def load(self, source: Source) -> Iterator[Batch]:
        """Export and read. Raises ``UnreadableError`` with what to do where that is not possible."""
        beside = source.path.with_suffix(".sqlite")
        if beside.is_file():
            yield Batch(
                status="skipped", notes=(f"its export {beside.name} lies beside it and is read instead",)
            )
            return
        with source.path.open("rb") as file:
            found = _VERSION.search(file.read(256))
        version = found[1].decode().replace("@", ".") if found else "of an old version"
        command = f"nsys export --type sqlite {quote(source.path.name)}"
        told = f"a report of Nsight Systems {version}, which only its own tool opens"
        tool = shutil.which(_TOOL)
        if tool is None:
            raise UnreadableError(
                f"{told}: run `{command}` where nsys is installed, and give the .sqlite file"
            )
        with TemporaryDirectory(prefix="afterrun-") as folder:
            target = Path(folder) / "report.sqlite"
            problem = _export(tool, source.path, target)
            if problem:
                raise UnreadableError(f"{told}; `{command}` failed: {problem}")
            yield Batch(notes=("exported with nsys for reading",))
            yield from load_sqlite(target)


def _export(tool: str, report: Path, target: Path) -> str:
    """Run the export; why it failed, empty where it did not."""
    command = [tool, "export", "--type", "sqlite", "--output", str(target), str(report.resolve())]
    try:
        done = subprocess.run(  # noqa: S603  # no shell, and the file's path begins with a slash
            command, capture_output=True, text=True, errors="replace", timeout=EXPORT_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no end after {EXPORT_TIMEOUT_S} s"
    except OSError as error:
        return error.strerror or type(error).__name__
    if done.returncode == 0 and target.is_file():
        return ""
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return impersonal(lines[-1])[:200] if lines else f"exit status {done.returncode}"
