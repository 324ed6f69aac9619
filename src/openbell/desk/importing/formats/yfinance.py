"""yfinance's `download`: three header lines with prices, tickers and the name of the index; one or many tickers."""

from __future__ import annotations

from openbell.desk.importing.formats.yahoo import spell
from openbell.desk.importing.layout import ALIASES, PRICES, TIME_NAMES, Format, Layout, Sample, TableBlock, is_number
from openbell.market.errors import InvalidParameter, InvalidSymbol
from openbell.market.instruments import AssetClass, parse
from openbell.market.provenance import Adjustment

_ADJUSTED = "no Adj Close: yfinance has adjusted the daily prices of stocks for splits and dividends (see --adjustment)"
_FIELDS = {name: field for field, names in ALIASES.items() for name in names}


def _recognise(sample: Sample) -> Layout | None:
    if len(sample.rows) < 2:
        return None
    first, second = ([cell.strip() for cell in row] for row in sample.rows[:2])
    if len(first) != len(second):
        return None
    if _are_fields(second):  # group_by="ticker" puts the tickers first
        first, second = second, first
    elif not _are_fields(first):
        return None
    if any(_is_field(ticker) or is_number(ticker) for ticker in second[1:]):
        return None
    skip, time = _rest_of_header(sample, first, second)
    if time is None:
        return None
    found: dict[str, dict[str, int]] = {}
    for at, (field, ticker) in enumerate(zip(first, second, strict=True)):
        if at != time and ticker and _is_field(field):
            found.setdefault(ticker, {})[_FIELDS[field.lower()]] = at
    blocks = tuple(_block(ticker, columns) for ticker, columns in found.items())
    if not blocks:
        return None
    adjusted = all(block.adjusted is None for block in blocks)
    return Layout(
        (time,),
        blocks,
        skip,
        width=len(first),
        spell=spell,
        adjustment=Adjustment.ALL if adjusted else Adjustment.SPLIT,
        intraday_adjustment=Adjustment.SPLIT,
        notes=(_ADJUSTED,) if adjusted and any(map(_may_be_stock, found)) else (),
    )


def _may_be_stock(ticker: str) -> bool:
    try:
        return parse(spell(ticker)).asset_class is AssetClass.STOCK
    except InvalidSymbol:
        return True


def _rest_of_header(sample: Sample, fields: list[str], tickers: list[str]) -> tuple[int, int | None]:
    """Returns how many lines the header has and which column is the time."""
    third = [cell.strip() for cell in sample.rows[2]] if len(sample.rows) > 2 else []
    if third and third[0].lower() in TIME_NAMES and not any(third[1:]):
        return 3, 0
    # A table from Parquet has two levels of names; the index is a column with a plain name.
    named = [
        at for at, name in enumerate(fields) if name.lower() in (*TIME_NAMES, "__index_level_0__") and not tickers[at]
    ]
    return 2, named[0] if named else None


def _is_field(name: str) -> bool:
    return name.lower() in _FIELDS


def _are_fields(names: list[str]) -> bool:
    lower = {name.lower() for name in names}
    return lower.issuperset(PRICES)


def _block(ticker: str, columns: dict[str, int]) -> TableBlock:
    if lacks := [field for field in PRICES if field not in columns]:
        raise InvalidParameter(f"missing column {', '.join(lacks)} of {ticker}")
    opened, high, low, close = (columns[field] for field in PRICES)
    return TableBlock(opened, high, low, close, columns.get("volume"), columns.get("adjusted"), ticker)


FORMAT = Format("yfinance", "three header lines (Price, Ticker, Date) for one or many tickers", _recognise, rank=10)
