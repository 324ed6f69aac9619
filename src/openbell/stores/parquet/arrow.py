"""Arrow and Parquet, loaded without Arrow's remote file systems: nothing here uses them, and they take 4 MB."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa

_modules: dict[str, Any] = sys.modules
for _remote in ("_azurefs", "_gcsfs", "_hdfs", "_s3fs"):
    # Python refuses to import a module that is None here; Arrow then goes without that file system.
    _modules.setdefault(f"pyarrow.{_remote}", None)

import pyarrow.parquet as pq  # noqa: E402

# Arrow's own allocator keeps what it once had; a server that reads a few columns a minute should give it back.
pa.set_memory_pool(pa.system_memory_pool())

__all__ = ["pa", "pq"]
