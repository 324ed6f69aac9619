"""Bars in InfluxDB.

`store` is the store, and its view of a home that is not changed. `periods` writes and counts the bars of each
source, `rollups` those that are made of minutes, `bars` sends the queries, `leases` lets one collector work for a database.
"""

from __future__ import annotations

from openbell.stores.influx.store import InfluxStore

__all__ = ["InfluxStore"]
