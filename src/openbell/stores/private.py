"""Folders of one process, gone when it ends."""

from __future__ import annotations

import shutil
import weakref
from pathlib import Path
from tempfile import mkdtemp


class PrivateFolder:
    """A temporary folder that is removed by `remove`, with the object itself, or at the end of the process."""

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix="openbell-private-"))
        self.remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
