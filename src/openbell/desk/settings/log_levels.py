"""Levels of the log, for all rooms and for single ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from openbell.market.errors import SettingsError

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
_ROOT = "openbell"


def levels_of(text: str) -> dict[str, str]:
    """Returns the levels by room of a text such as `feeds=debug,desk.trading=info`. Raises `SettingsError`."""
    found = {}
    for each in filter(None, map(str.strip, text.lower().split(","))):
        room, _, level = (part.strip() for part in each.partition("="))
        if level not in LEVELS or not re.fullmatch(r"[a-z_]+(\.[a-z_]+)*", room) or not list(loggers(room)):
            raise SettingsError(
                f"OPENBELL_LOG_LEVELS has {each!r}: write ROOM=LEVEL, such as feeds=debug,trading=info; rooms are the "
                f"folders of openbell, levels are {', '.join(LEVELS)}"
            )
        found[room] = level
    return found


def room_levels(_variable: str, value: Any) -> None:
    """Accept levels of rooms."""
    levels_of(value)


def loggers(room: str) -> Iterator[str]:
    """Returns the loggers of a room: of the folder of this name, and of a folder of this name in another room."""
    import openbell

    for base in map(Path, openbell.__path__):
        for pattern in (room.replace(".", "/"), f"*/{room.replace('.', '/')}"):
            for path in base.glob(pattern):
                if path.is_dir():
                    yield ".".join((_ROOT, *path.relative_to(base).parts))
