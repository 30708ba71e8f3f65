"""Damaged files of samplers: intact rows are kept, losses counted, nothing is raised."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from afterrun.loaders.registry import Loader, loaders
from afterrun.loaders.schema import conform
from tests.loaders.test_amd_smi import CARD
from tests.loaders.test_mutated_goldens import damage
from tests.loaders.test_straggler import LISTS, REPORT
from tests.support import smireports
from tests.support.loading import source, write
from tests.support.sampled import QUERY, drawn, query, rows

DATE = "Tue Jul 14 08:12:53 2026"


def _json() -> str:
    import json

    return json.dumps({"card0": CARD, "card1": CARD, "system": {"Driver version": "6.3.6"}}) + "\n"


INPUTS: dict[str, Callable[[], str | bytes]] = {
    "nvidia-smi-csv": lambda: drawn([("V100", 23, 0, 0)], DATE) + rows(query(30, 2), QUERY),
    "nvidia-smi-csv utf-16": lambda: rows(query(30, 2), QUERY).encode("utf-16"),
    "nvidia-smi-csv headless": lambda: rows(query(30, 2)),
    "nvidia-smi-csv quoted": lambda: 'timestamp,gpu_util,mem_used\n' + '1700000000,"95\n0","1000\n5"\n' * 20,
    "nvidia-smi-table": lambda: drawn([("A100", 40, 1, 10), ("A100", 41, 1, 20)], DATE, ["11 C /x/python    7MiB"]) * 4,
    "nvidia-smi-dmon": lambda: "#Date Time gpu pwr sm fb\n#YYYYMMDD HH:MM:SS Idx W % MB\n" + " 20260529 09:51:25 0 15 7 2\n" * 20,
    "nvidia-smi-pmon": lambda: "# gpu pid type sm mem command\n# Idx # C/G % % name\n" + " 0 11 C 5 4 python\n 0 12 C - - x y\n" * 20,
    "nvidia-smi-q": lambda: smireports.text(DATE, ("H100", 90), ("H100", 10)) * 3,
    "nvidia-smi-xml": lambda: smireports.xml(DATE, smireports.device_xml("A", "1 %"), smireports.device_xml("B", "2 %")) * 3,
    "dcgm": lambda: "#Entity GPUTL SMACT\nID\n" + "GPU 0 98 0.905\nGPU-I 3 N/A 0.5\n" * 20,
    "dcgm csv": lambda: "GPUId,TimeStampUs,Field,Values\n" + "0,1718783836935856,power_usage_instant,71.2\n1,1718783836935900,current_clock_throttle_reasons,4\n" * 20,
    "rocm-smi": lambda: _json() * 3,
    "amd-smi": lambda: "timestamp,gpu,gfx_activity,socket_power\n" + "1772939616,0,95,350\n1772939616,1,88,300\n" * 20,
    "megatron-straggler": lambda: (REPORT.format(6) + LISTS) * 5,
    "sacct": lambda: "JobID|State|ExitCode|Elapsed|MaxRSS|End\n" + "100.0|FAILED|1:0|1-00:00:12|1043168K|2024-06-25T12:00:12\n" * 20,
}  # fmt: skip


def _loader(name: str) -> Loader:
    return next(x for x in loaders() if x.format == name.split(maxsplit=1)[0])


def _read(name: str, path: Path) -> int:
    """Rows of samples and marks; every frame is held against the schema."""
    from afterrun.loaders.errors import UnreadableError

    total = 0
    try:
        for batch in _loader(name).load(source(path)):
            assert batch.damaged >= 0
            total += sum(len(conform(t, f)) for t, f in batch.frames.items() if t != "params")
    except UnreadableError:
        return 0
    return total


def _mutate(name: str, folder: Path, times: int) -> None:
    rng = random.Random(name)
    text = INPUTS[name]()
    data = text.encode() if isinstance(text, str) else text
    for i in range(times):
        path = write(folder, damage(rng, data), f"m{i % 4}")
        _read(name, path)


@pytest.mark.parametrize("name", INPUTS)
def test_no_damage_is_raised(tmp_path: Path, name: str) -> None:
    assert _read(name, write(tmp_path, INPUTS[name](), "whole")) > 0
    _mutate(name, tmp_path, 25)


@pytest.mark.slow
@pytest.mark.parametrize("name", INPUTS)
def test_no_damage_is_raised_however_often(tmp_path: Path, name: str) -> None:
    _mutate(name, tmp_path, 500)


@pytest.mark.parametrize("seed", range(20))
def test_intact_rows_of_a_query_survive_damage_elsewhere(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    lines = rows(query(60), QUERY).splitlines(keepends=True)
    hurt = sorted(rng.sample(range(1, 61), 5))
    for i in hurt:
        at = rng.randrange(1, len(lines[i]) - 10)
        lines[i] = lines[i][:at] + rng.choice(["\0" * 40, "\0\0\n", "\n"])
        if not lines[i].endswith("\n"):
            lines[i] += "\n"
    from tests.support.sampled import sampled

    read = sampled(write(tmp_path, "".join(lines), "gpu.csv"))
    values = read.values("power_w")
    assert values == [100.5] * 55
    assert read.values("gpu_util_pct") == [90.0 + s % 10 for s in range(60) if s + 1 not in hurt]
    assert 5 <= read.damaged <= 10


@pytest.mark.parametrize(
    "name", ["nvidia-smi-csv", "nvidia-smi-table", "nvidia-smi-dmon", "nvidia-smi-q", "dcgm", "amd-smi"]
)
@pytest.mark.parametrize("filler", [" ", "|", "unknown error ", "GPU  ", "0,"])
def test_one_endless_line_costs_itself(tmp_path: Path, name: str, filler: str) -> None:
    text = INPUTS[name]()
    assert isinstance(text, str)
    lines = text.splitlines(keepends=True)
    whole = _read(name, write(tmp_path, text, "whole"))
    bloated = "".join([*lines, filler * (2**20 // len(filler)) + "\n"])
    assert _read(name, write(tmp_path, bloated, "bloated")) >= whole
