"""Small files in the home that are replaced in one step."""

from __future__ import annotations

import os
import threading
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Write a file that is never seen half written. Raises `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
