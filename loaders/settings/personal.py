"""Takes off what a run's settings say about a person or a machine: it has no place in a report.

Absolute paths keep their last part only, e-mail addresses become ``…``, and settings whose name says that
they hold a person, a host, a secret or a command line are left out.
"""

from __future__ import annotations

import re

PERSONAL_KEYS = frozenset(
    {
        "user", "username", "user_name", "login", "email", "e_mail", "author", "entity", "wandb_entity", "host",
        "hostname", "host_name", "ip", "ip_address", "api_key", "apikey", "wandb_api_key", "wandb_key", "token",
        "hf_token", "auth_token", "access_token", "password", "passwd", "secret", "ssh_key", "command", "cmd",
        "cmdline", "command_line", "argv", "home",
    }
)  # fmt: skip
"""Last parts of dotted names, lower case, ``-`` as ``_``."""

_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)+")
_WHOLE_PATH = re.compile(r"(?:~[^/\\]*|[A-Za-z]:|file://)?[/\\].*", re.DOTALL)
_HOME = re.compile(r"(?:^|(?<=:))[/\\](?:home|Users)[/\\][^/\\]+[/\\]?$")
_INNER_HOME = re.compile(r"(?<![\w.])(?:[A-Za-z]:)?[/\\](?:home|Users)[/\\][^/\\\s'\",;:\])}]+")
_FOLDERS = re.compile(r"(?<![\w.:/\\~)}\]-])(?:~|[A-Za-z]:)?[/\\](?:[^/\\\s'\",;:*?<>|]+[/\\])+")


def is_personal(name: str) -> bool:
    """Whether the name of a setting says that its value is nobody's business."""
    return name.rpartition(".")[2].rpartition("/")[2].lower().replace("-", "_") in PERSONAL_KEYS


def impersonal(text: str) -> str:
    """The text without e-mail addresses and without the folders of absolute paths."""
    if "@" in text:
        text = _MAIL.sub("…", text)
    if "/" not in text and "\\" not in text:
        return text
    if _WHOLE_PATH.fullmatch(text) and "\n" not in text:
        if _HOME.search(text):
            return "~"
        return re.split(r"[/\\]", text.rstrip("/\\"))[-1] or text
    return _FOLDERS.sub("", _INNER_HOME.sub("~", text))
