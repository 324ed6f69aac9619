"""Decides which instrument the rows of a file belong to, by the file and by --symbol."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from openbell.desk.importing.layout import Layout, listed, quoted
from openbell.desk.importing.rows import Rows
from openbell.market.errors import InvalidParameter, InvalidSymbol
from openbell.market.instruments import AssetClass, Instrument, parse
from openbell.market.session_table import Times
from openbell.market.timeframes import SHORT, Timeframe

_PAIR = re.compile(r"(?P<pair>[A-Z]{6})(?![A-Z])", re.ASCII)
_PERIODS = {"D": Timeframe.D1, "W": Timeframe.W1}


@dataclass(frozen=True, slots=True)
class NamedGroup:
    """The rows of one series."""

    instrument: Instrument
    name: str | None
    """The symbol as the file has it."""
    block: int
    index: Times | None
    """The rows; None for all."""
    timeframe: Timeframe | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Named:
    """Rows under one name, before the name is understood."""

    name: str | None
    block: int
    index: Times | None
    period: str = ""


def groups_of(rows: Rows, layout: Layout, symbol: Instrument | None) -> tuple[list[NamedGroup], list[str]]:
    """Returns the series of a file, and notes on names that were left out.

    Raises `InvalidParameter` if neither the file nor `symbol` names the instrument, or if they disagree.
    """
    if rows.symbols is None and rows.periods is None:
        found = [_Named(block.symbol, at, None) for at, block in enumerate(layout.blocks)]
    else:
        found = _by_name(rows)
    if len({named.name for named in found}) == 1:
        instrument, notes = _single(found[0].name, layout, symbol)
        return [_group(named, instrument, layout, notes) for named in found], []
    return _several(found, layout, symbol)


def named_by_file(layout: Layout, name: str) -> Layout:
    """Returns the layout with the name of the file as the symbol of rows that have none: AAPL.csv, aapl.us.txt."""
    if layout.symbol is not None:
        return layout
    stem = name.rpartition(".")[0] or name
    stem = stem[:-3] if stem.lower().endswith(".us") else stem
    return replace(layout, blocks=tuple(replace(block, symbol=block.symbol or stem) for block in layout.blocks))


def currencies_in(name: str) -> str | None:
    """Returns the currencies with which the name of a file begins, as in EURUSD60.csv or EURUSD_H1_202501052200.csv."""
    match = _PAIR.match(name)
    try:
        found = match is not None and parse(match["pair"]).asset_class is AssetClass.FOREX
    except InvalidSymbol:
        return None
    return match["pair"] if match and found else None


def _group(named: _Named, instrument: Instrument, layout: Layout, notes: tuple[str, ...] = ()) -> NamedGroup:
    timeframe = timeframe_of(named.period) if named.period else layout.timeframe
    return NamedGroup(instrument, named.name, named.block, named.index, timeframe, notes)


def _single(name: str | None, layout: Layout, symbol: Instrument | None) -> tuple[Instrument, tuple[str, ...]]:
    if name is None:
        if symbol is None:
            raise InvalidParameter(
                "does not name its symbol: add --symbol, such as --symbol AAPL or --symbol BTC/USD, "
                "or --by-name if the name of the file is its symbol"
            )
        return symbol, ()
    try:
        instrument = parse(layout.spell(name))
    except InvalidSymbol as error:
        if symbol is None:
            raise InvalidParameter(f"{error.message}; --symbol names the instrument") from error
        return symbol, (f"the file calls the symbol {quoted(name)}",)
    if symbol is not None and symbol != instrument:
        raise InvalidParameter(
            f"holds bars of {instrument} ({quoted(name)}), not of {symbol}: --symbol disagrees with the file"
        )
    return instrument, ()


def _several(found: list[_Named], layout: Layout, symbol: Instrument | None) -> tuple[list[NamedGroup], list[str]]:
    groups: list[NamedGroup] = []
    unread: list[str] = []
    taken: dict[tuple[Instrument, str], str] = {}
    for named in found:
        name = named.name or ""
        try:
            instrument = parse(layout.spell(name))
        except InvalidSymbol:
            unread.append(quoted(name))
            continue
        if (other := taken.setdefault((instrument, named.period), name)) != name:
            raise InvalidParameter(f"names {instrument} in two ways, {quoted(other)} and {quoted(name)}")
        groups.append(_group(named, instrument, layout))
    if symbol is not None:
        chosen = [group for group in groups if group.instrument == symbol]
        if not chosen:
            names = listed(sorted({str(group.instrument) for group in groups}) or unread)
            raise InvalidParameter(f"holds bars of {names}, but none of {symbol}")
        return chosen, [f"the bars of {len(found) - len(chosen):,} other symbols were left out"]
    if not groups:
        raise InvalidParameter(f"names no symbol that can be read, but {listed(unread)}")
    return groups, [f"symbols that cannot be read were left out: {listed(unread)}"] if unread else []


def _by_name(rows: Rows) -> list[_Named]:
    """Returns the rows of each symbol and timeframe, in the order of the file."""
    names = _codes(rows.symbols, len(rows.places))
    periods = _codes(rows.periods, len(rows.places))
    codes = names[0] * len(periods[1]) + periods[0]
    order = np.argsort(codes, kind="stable")
    cuts = np.flatnonzero(np.diff(codes[order])) + 1
    found = []
    for index in np.split(order, cuts):
        if len(index):
            name, period = divmod(int(codes[index[0]]), len(periods[1]))
            text = names[1][name] if rows.symbols is not None else None
            found.append(_Named(text, 0, index, periods[1][period]))
    if not found:
        raise InvalidParameter("the file names its columns but holds no bars")
    return found


def _codes(texts: Any, count: int) -> tuple[Times, list[str]]:
    """Returns a number for each row and the texts that the numbers stand for."""
    if texts is None:
        return np.zeros(count, dtype=np.int64), [""]
    encoded = texts.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values = [text.strip() for text in encoded.dictionary.to_pylist()]
    return np.asarray(encoded.indices).astype(np.int64), values or [""]


def timeframe_of(period: str) -> Timeframe:
    """Returns the timeframe of `D`, `W` or a number of minutes. Raises `InvalidParameter`."""
    if period.upper() in _PERIODS:
        return _PERIODS[period.upper()]
    seconds = int(period) * 60 if period.isascii() and period.isdigit() and len(period) < 9 else 0
    for timeframe in SHORT.values():
        if timeframe.seconds == seconds:
            return timeframe
    raise InvalidParameter(f"holds bars of the timeframe {quoted(period)}: import takes {', '.join(SHORT)}")
