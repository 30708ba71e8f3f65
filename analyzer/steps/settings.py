"""Whole numbers among the settings of a run that passes about steps ask for."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from afterrun.analyzer.view import RunView


def parameter(view: RunView, *names: str) -> int | None:
    """The setting of one of these names, whatever stands before it (``data.num_workers``); None where none tells a whole number above 0.

    The shortest key wins: a setting of the run itself before one of a part.
    """
    wanted = re.compile(rf"(?:^|[./])(?:{'|'.join(map(re.escape, names))})$")
    for key in sorted((k for k in view.params if wanted.search(k)), key=len):
        try:
            value = json.loads(view.params[key])
        except ValueError:
            continue
        value = int(value) if isinstance(value, str) and value.isdigit() else value
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
