"""Bars in Parquet files, one for each period of a series.

`store` is the store, and its view of a home that is not changed. `archive` finds and mends the files,
`bar_files` reads and writes one of them, `arrow` makes tables of bars.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from openbell.market.errors import StoreError
from openbell.stores.registry import StoreBackend

if TYPE_CHECKING:
    from openbell.stores.port import BarStore


class ParquetBackend(StoreBackend):
    """Files in the folder of the market: the store of desks that select no other one."""

    title = "Parquet files"
    folders = "data"

    @property
    def folder(self) -> Path:
        """See `StoreBackend`."""
        return self._selected.market / "data"

    def open(self) -> BarStore:
        """See `StoreBackend`."""
        from openbell.stores.parquet.store import ParquetStore

        self._refuse_simulated_bars()
        return ParquetStore(self.folder, self.origins)

    def view(self) -> BarStore:
        """See `StoreBackend`."""
        from openbell.stores.parquet.store import ParquetView

        self._refuse_simulated_bars()
        return ParquetView(self.folder, self.origins)

    def _refuse_simulated_bars(self) -> None:
        simulated = self._selected.settings["home"] / "simulated"
        if not self._selected.simulated and self.folder.resolve().is_relative_to(simulated.resolve()):
            raise StoreError(f"{self.folder} leads to simulated bars: they are never served as real ones")

    @classmethod
    def restored(cls, folder: Path) -> BarStore:
        """See `StoreBackend`."""
        from openbell.stores.parquet.store import ParquetStore

        return ParquetStore(folder)


STORE = ParquetBackend
