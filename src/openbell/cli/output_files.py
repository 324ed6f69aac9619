"""Files that commands write: checked before the work starts, and replaced at once when it is done."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from openbell.desk.settings.private_files import as_user_wants
from openbell.market.errors import InvalidParameter

PICTURES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".svg": "svg"}
"""The format of a picture by the ending of its file."""


def check_output(file: Path, endings: Collection[str]) -> None:
    """Raises `InvalidParameter` if a file has another ending or cannot be written."""
    if file.suffix.lower() not in endings:
        raise InvalidParameter(f"{file} must end in {', '.join(endings)}")
    folder = file.resolve().parent
    if file.is_dir():
        raise InvalidParameter(f"cannot write {file}: it is a folder")
    if not folder.is_dir():
        raise InvalidParameter(f"cannot write {file}: the folder {folder} does not exist")
    if not os.access(folder, os.W_OK):
        raise InvalidParameter(f"cannot write {file}: the folder {folder} is not writable")


def write_output(file: Path, data: bytes) -> None:
    """Write a temporary file and rename it, so that readers never see half a file. Raises `InvalidParameter`."""
    whole = file.resolve()
    temporary = whole.with_name(f".{whole.name}.{os.getpid()}")
    try:
        with as_user_wants():
            temporary.write_bytes(data)
        temporary.replace(whole)
    except OSError as error:
        raise InvalidParameter(f"cannot write {file}: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)
