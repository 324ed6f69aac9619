"""How much space the bars of a database take in InfluxDB and in the home."""

from __future__ import annotations

from pathlib import Path

from openbell.stores.influx.http import InfluxHttp, NotAllowed


def shard_bytes(http: InfluxHttp) -> int | None:
    """The bytes of a database's shards; None if the user may not read them, which needs rights of an admin."""
    try:
        found = http.series("SHOW STATS FOR 'shard'")
    except NotAllowed:
        return None
    shards = [each for each in found if (each.get("tags") or {}).get("database") == http.database]
    sizes = (dict(zip(each["columns"], each["values"][0], strict=True)).get("diskBytes") for each in shards)
    return sum(int(size or 0) for size in sizes)


def size_of(path: Path) -> int:
    """The bytes of a file; 0 if there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
