"""What pandas' `to_csv` and `to_parquet` write for a table with an index without a name."""

from __future__ import annotations

from openbell.desk.importing.layout import Format, Layout, Sample, by_names


def _recognise(sample: Sample) -> Layout | None:
    layout = by_names(sample)
    if layout is None or sample.names[layout.time[0]] not in {"", "__index_level_0__"}:
        return None
    return layout


FORMAT = Format(
    "pandas", "a first column of times without a name, then Open,High,Low,Close,Volume", _recognise, rank=60
)
