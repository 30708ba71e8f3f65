"""What a mark does not repeat from a log: home folders and secrets."""

from __future__ import annotations

import re

_HOME = re.compile(r"(?:/(?:home|Users|users|u)/[^/\s:'\"]+|/root|[A-Za-z]:\\Users\\[^\\\s]+)(?=[/\\])")
_SECRET = re.compile(
    r"\b(?:hf|ghp|gho|glpat|sk|pk|xox[bap]|AKIA)[_-]?[A-Za-z0-9_-]{16,}|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
    r"|(?i:(?<=api_key=)|(?<=apikey=)|(?<=token=)|(?<=password=)|(?<=secret=))[^\s,;'\"&]+"
)


def discreet(text: str) -> str:
    """The text with ``~`` for home folders and dots for what looks like a key, a token or a password."""
    return _SECRET.sub("...", _HOME.sub("~", text))
