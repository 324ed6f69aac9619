"""Bars in InfluxDB.

`store` is the store, and its view of a home that is not changed. `archive` is the database behind its buffer, `rollups` are
the bars that are made of minutes, `bars` sends the queries, `leases` lets one collector work for a database.
"""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from openbell.market.errors import StoreError, StoreUnreachable
from openbell.stores.registry import StoreBackend

if TYPE_CHECKING:
    from openbell.stores.influx.http import InfluxHttp
    from openbell.stores.port import BarStore


class InfluxBackend(StoreBackend):
    """A database behind a buffer in the home, which holds new bars until they are copied there, and metadata."""

    title = "InfluxDB"
    place = ("influx_url", "influx_database")
    folders = "influx/*"
    is_remote = True
    unreachable = "start InfluxDB, or check OPENBELL_INFLUX_URL; new bars are buffered meanwhile"

    @property
    def folder(self) -> Path:
        """See `StoreBackend`. Each database has a buffer of its own."""
        settings = self._selected.settings
        place = f"{settings['influx_url'].rstrip('/')} {settings['influx_database']}"
        return self._selected.market / f"influx/{crc32(place.encode()):08x}"

    def open(self) -> BarStore:
        """See `StoreBackend`."""
        from openbell.stores.influx.store import InfluxStore

        return InfluxStore(self._client(), self.folder, self.origins, shared=self._selected.shared)

    def view(self) -> BarStore:
        """See `StoreBackend`."""
        from openbell.stores.influx.store import InfluxView

        return InfluxView(self._client(), self.folder, self.origins, shared=self._selected.shared)

    def _client(self) -> InfluxHttp:
        """A client of the database of bars."""
        from openbell.stores.influx.http import InfluxHttp, pool_bounds

        settings, name = self._selected.settings, self._selected.settings["influx_database"]
        if not self._selected.simulated and re.search(r"_simulated_\d+$", name):
            raise StoreError(f"{name} holds simulated bars: they are never served as real ones")
        # Each seed is a market of its own, with a database of its own.
        database = f"{name}_simulated_{settings['sim_seed']}" if self._selected.simulated else name
        bounds = pool_bounds(
            connections=settings["pool_influx_connections"],
            idle=settings["pool_influx_idle"],
            connect=settings["pool_influx_connect"],
            answer=settings["pool_influx_timeout"],
        )
        return InfluxHttp(settings["influx_url"], database, settings["influx_token"], bounds)

    def where(self) -> str:
        """See `StoreBackend`."""
        return f"InfluxDB, database {self._selected.settings['influx_database']}"

    def backup_notes(self) -> list[str]:
        """See `StoreBackend`."""
        with closing(self._client()) as http:
            return [
                f"the bars in InfluxDB (database {http.database}) are not in it. Copy them after the home, with:",
                f"influxd backup -portable -database {http.database} FOLDER",
            ]

    def refused_write(self) -> tuple[str, str] | None:
        """See `StoreBackend`: a point that is removed again. A database that does not exist yet is not created."""
        with closing(self._client()) as http:
            try:
                if http.exists():
                    http.try_write()
            except StoreUnreachable:
                return None  # the check of the bars reports it
            except StoreError as error:
                mend = f"check its disk, and grant ALL on {http.database} to the user of OPENBELL_INFLUX_TOKEN"
                return f"bars cannot be written to InfluxDB: {error.message}", mend
        return None


STORE = InfluxBackend
