"""The plain form: a header that names time, open, high, low, close and volume, in any order and case."""

from __future__ import annotations

from openbell.desk.importing.layout import Format, by_names

FORMAT = Format("plain", "timestamp,open,high,low,close,volume", by_names, rank=90)
