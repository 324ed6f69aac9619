"""Bars in Parquet files, one for each period of a series.

`store` is the store, and its view of a home that is not changed. `files` finds and mends the files, `bar_files` reads
and writes one of them, `arrow` makes tables of bars.
"""

from __future__ import annotations

from openbell.stores.parquet.store import ParquetStore

__all__ = ["ParquetStore"]
