"""Inputs of the golden case of samplers of GPUs, of the straggler detector and of Slurm's accounting."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.support import smireports
from tests.support.sampled import QUERY, drawn, query, rows

DATE, LATER = "Tue Jul 14 08:12:53 2026", "Tue Jul 14 08:13:53 2026"


def gpu_samplers(root: Path) -> None:
    """Each sampler in a folder of its own."""
    straggler = (
        "[2026-07-14 08:{:02d}:00] | MnRtt/Rnk: 3453.08ms/8 | MxRtt/Rnk: 3468.20ms/0 | MnPwr/Rnk: 601796W/8 | MxPwr/Rnk: 683801W/18 "
        "| MnTmp/Rnk: 52C/0 | MxTmp/Rnk: 65C/21 | MnUtl/Rnk: 97%/8 | MxUtl/Rnk: 100%/6 | MnEtpt/Rnk: 296.02TF/0 | MxEtpt/Rnk: 297.32TF/8\n"
    )
    card = {
        "GPU use (%)": "7",
        "Average Graphics Package Power (W)": "36.0",
        "VRAM Total Used Memory (B)": "6750208",
    }
    files = {
        "query/gpu.csv": rows(query(30, 2), QUERY),
        "table/gpu.log": drawn([("NVIDIA L40S", 27, 0, 0)], DATE)
        + drawn([("NVIDIA L40S", 53, 11948, 93)], LATER),
        "dmon/dmon.txt": "#Date Time gpu pwr gtemp sm mem\n#YYYYMMDD HH:MM:SS Idx W C % %\n"
        + "".join(f" 20260714 08:12:{s} 0 {600 + s} 63 9{s % 10} -\n" for s in range(10, 20)),
        "pmon/pmon.txt": "# gpu         pid   type     sm    mem    command \n# Idx           #    C/G      %      %    name \n"
        + "    0      11327     C      -      -    memhog         \n    0      11345     C     99     10    gpu_burn       \n"
        * 3,
        "report/gpu.txt": smireports.text(DATE, ("NVIDIA H100", 90))
        + smireports.text(LATER, ("NVIDIA H100", 91)),
        "xml/gpu.xml": smireports.xml(DATE, smireports.device_xml("NVIDIA RTX 3080", "65 %")),
        "dcgm/dmon.csv": "GPUId,TimeStampUs,Field,Values\n"
        + "".join(
            f"{d},{1_784_016_773_000_000 + 1000 * s},power_usage_instant,7{s}.5\n"
            for d in range(2)
            for s in range(5)
        ),
        "rocm/rocm.json": json.dumps({"card0": card, "card1": card, "system": {"Driver version": "6.3.6"}})
        + "\n",
        "amd/amd.csv": "timestamp,gpu,gfx_activity,umc_activity,socket_power\n"
        + "".join(f"{1_784_016_773 + s},0,{90 + s},50,{700 + s}\n" for s in range(5)),
        "straggler/straggler.log": "".join(straggler.format(i) for i in range(3)),
        "slurm/jobs.txt": "JobID|JobName|State|ExitCode|Elapsed|Start|End|MaxRSS\n"
        "100|train|TIMEOUT|0:0|1-00:00:12|2026-07-13T08:00:00|2026-07-14T08:00:12|\n"
        "100.batch|batch|CANCELLED|0:15|1-00:00:13|2026-07-13T08:00:00|2026-07-14T08:00:13|1043168K\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True)
        path.write_text(text, "utf-8")


WRITERS: tuple[Callable[[Path], None], ...] = (gpu_samplers,)
