"""Bars in Parquet files, one for each period of a series.

`store` is the store, `read_only` its view of a home that is not changed. `files` reads and mends the files, `bar_files` is
one of them, `bar_table` its columns.
"""

from __future__ import annotations

from openbell.stores.parquet.store import ParquetStore

__all__ = ["ParquetStore"]
