"""Folders: temporary ones of this process, and making a new or renamed file in a folder durable."""

from __future__ import annotations

import os
import shutil
import weakref
from pathlib import Path
from tempfile import mkdtemp


class PrivateFolder:
    """A temporary folder that is removed by `remove`, with the object itself, or when the process exits."""

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix="openbell-private-"))
        self.remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def sync_folder(path: Path) -> None:
    """Make created and renamed files of a folder durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
