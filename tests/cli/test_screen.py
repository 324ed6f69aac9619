"""The live view of `openbell up` at every size, without a terminal."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from openbell.cli.board import AccountPart, Movers, account_line, closed_heading, mover_of
from openbell.cli.screen import Board, Mover, Section, percent, screen, sparkline
from openbell.desk.desk import Desk
from openbell.desk.orders.portfolio import Balance
from openbell.desk.settings import load
from openbell.market.bars import Bars, make
from openbell.market.clock import parse_time
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe

MOVERS = (
    Mover("AAPL", 252.0, 2, -9.0, (1.0, 2.0), 40.0, "ema_reclaim", is_open=False),
    Mover("MSFT", 500.0, 2, 3.0, (1.0, 2.0), 60.0, "", is_open=False),
    Mover("ZZZZ", signals="no bars yet", is_open=False),
    Mover("BTC/USD", 91_914.65, 2, -0.5, (3.0, 1.0), 47.0, "bb_squeeze"),
    Mover("ETH/USD", 4_767.1, 2, 1.5, (3.0, 1.0), 59.3, "bb_squeeze"),
)
SECTIONS = (
    Section("position", (("BTC/USD", "0.01", "+1.00"), ("AAPL", "3", "-2.00")), 2),
    Section("working order", (("ETH/USD", "buy limit", "0.1"),), 1),
    Section("active alert", (), 0),
    Section("newest fill", tuple((f"{number}", "BTC/USD") for number in range(50)), 50),
)
BOARD = Board(
    "SIMULATED MARKET: no price here is real",
    "black on yellow",
    "2026-11-18 07:24:36 UTC",
    "feed sim  home /home/me/.openbell",
    Text("equity 100,000.00 USD"),
    (),
    MOVERS,
    "closed, regular hours from Wed 18 Nov 14:30 UTC",
    SECTIONS,
    tuple(f"status {number}" for number in range(6)),
)


def shown(board: Board, width: int, height: int) -> list[str]:
    return [line.plain for line in screen(board, width, height)]


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60), (60, 15)])
def test_movers_come_first_and_open_markets_above_closed_ones(size: tuple[int, int]) -> None:
    lines = shown(BOARD, *size)
    order = [next(n for n, line in enumerate(lines) if line.startswith(symbol)) for symbol in ("ETH", "BTC", "AAPL")]
    assert order == sorted(order), "by the size of the change, crypto above closed stocks"
    assert any(line.startswith(BOARD.closed) for line in lines[order[1] : order[2]])
    assert lines[0].startswith(" SIMULATED MARKET: no price here is real ")
    positions = next((n for n, line in enumerate(lines) if "2 positions" in line), len(lines))
    assert positions >= order[0] - 1, "beside the movers or below them"


def test_everything_has_its_place_on_a_large_screen() -> None:
    text = "\n".join(shown(BOARD, 200, 60))
    for wanted in (
        "2 positions",
        "1 working order\n",
        "50 newest fills",
        "status 5",
        "equity",
        "no bars yet",
        "+1.50%",
    ):
        assert wanted in text
    assert "active alert" not in text, "an empty section takes no room"


FIGURES = ("0.01234567", "at 91701.697935", "-1,234.56", "12.34567891", "at 900.12345678", "at 313.746795")
TRADED = (
    Section("position", (("BTC/USD", "0.01234567", "at 91701.697935", "-1,234.56"),), 1, frozenset({1, 2, 3})),
    Section(
        "working order",
        (("SOL/USDT", "sell stop limit", "12.34567891", "at 900.12345678", "partially filled"),),
        1,
        frozenset({2}),
        frozenset({4}),
    ),
    Section(
        "newest fill", (("18 Nov 11:04", "SOL/USDT", "buy", "12.34567891", "at 313.746795"),), 1, frozenset({3, 4})
    ),
)


@pytest.mark.parametrize("height", [24, 40, 60])
@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_no_price_and_no_quantity_is_cut(width: int, height: int) -> None:
    counts = "3 positions, 2 working orders, 2 alerts"
    account = Text(f"equity 99,979.90 USD  day -20.10 (-0.02%)  {counts}")
    status = ("engine: working; " + "orders: paper, " * 8 + "none").strip()
    text = "\n".join(shown(replace(BOARD, sections=TRADED, account=account, status=(status,)), width, height))
    for figure in (*FIGURES, counts, "91,914.65", "4,767.10", "47.0"):
        assert figure in text, figure
    assert status in " ".join(text.split())


def test_a_row_that_is_wider_than_the_screen_goes_on_in_the_next_line_and_names_are_shortened() -> None:
    lines = shown(replace(BOARD, sections=TRADED[1:2]), 56, 24)
    assert any(line.endswith("at 900.12345678") for line in lines)
    assert any(line.strip() == "partial…" for line in lines), lines
    long = Section("position", (("BTC/USD", "123456789.12345678", "at 123456789.1234567891", "+1,000,000.00"),), 1)
    lines = [line.strip() for line in shown(replace(BOARD, sections=(long,)), 45, 24)]
    for figure in ("123456789.12345678", "at 123456789.1234567891", "+1,000,000.00"):
        assert any(figure in line for line in lines), lines


def test_what_does_not_fit_is_counted() -> None:
    lines = shown(replace(BOARD, sections=()), 80, 10)
    assert "3 more" in lines, lines
    fills = shown(replace(BOARD, sections=SECTIONS[3:]), 200, 20)
    (more,) = [line for line in fills if line.endswith(" more")]
    rows = sum("BTC/USD" in line[122:] for line in fills)
    assert more.split()[-2] == str(50 - rows)


def test_an_outage_is_said_to_its_end_on_a_narrow_screen() -> None:
    outage = (
        "OUTAGE: bars: InfluxDB at http://127.0.0.1:8086 cannot be reached: nothing listens there (connection refused)"
    )
    lines = shown(replace(BOARD, outages=(outage,)), 60, 20)
    assert outage in " ".join(lines)


@given(
    width=st.integers(1, 250),
    height=st.integers(1, 80),
    movers=st.integers(0, 30),
    sections=st.integers(0, 4),
    outages=st.integers(0, 3),
)
def test_a_drawing_covers_the_whole_screen_and_no_more(
    width: int, height: int, movers: int, sections: int, outages: int
) -> None:
    board = replace(
        BOARD, movers=(MOVERS * 6)[:movers], sections=SECTIONS[:sections], outages=("OUTAGE: it fails",) * outages
    )
    lines = screen(board, width, height)
    assert len(lines) == height
    assert all(line.cell_len <= max(width, 40) for line in lines)


@given(st.lists(st.floats(1e-9, 1e9), max_size=600), st.integers(0, 60))
def test_a_sparkline_ends_at_the_last_value_and_reaches_from_the_lowest_to_the_highest(
    values: list[float], width: int
) -> None:
    line = sparkline(values, width)
    assert len(line) == min(width, len(values))
    if len(line) == len(values) and len(set(values)) > 1:
        assert line[values.index(min(values))] == "▁"
        assert line[values.index(max(values))] == "█"


def test_changes_have_a_sign_and_a_colour() -> None:
    assert [percent(each) for each in (1.234, -0.5, 0.001, -0.0, None)] == [
        ("+1.23%", "green"),
        ("-0.50%", "red"),
        ("0.00%", ""),
        ("0.00%", ""),
        ("", ""),
    ]


# Figures


def minutes(symbol: str, *at: str) -> Bars:
    """Minutes that open at these times and close at 1, 2, 3, …"""
    times = [int(parse_time(each)) for each in at]
    closes = np.arange(1.0, len(at) + 1)
    return make(parse(symbol), Timeframe.M1, times, closes, closes, closes, closes, closes)


def test_the_change_of_a_mover_is_since_the_previous_close() -> None:
    bars = minutes("BTC/USD", "2026-11-13T23:58Z", "2026-11-13T23:59Z", "2026-11-14T00:00Z", "2026-11-14T09:00Z")
    assert mover_of(bars).change == pytest.approx(100.0)


def test_the_squeeze_of_the_live_view_is_that_of_the_symbols_own_history() -> None:
    def signals(*sizes: tuple[int, float]) -> str:
        reach = np.repeat([size for _, size in sizes], [count for count, _ in sizes])
        close = 100.0 + reach * (-1.0) ** np.arange(len(reach))
        opens = parse_time("2026-11-13T10:00Z") + 60 * np.arange(len(close))
        return mover_of(make(parse("BTC/USD"), Timeframe.M1, opens, close, close, close, close, close)).signals

    assert "squeeze" not in signals((300, 0.1)), "within the contract's 4 % of the price, and as always"
    assert "squeeze" in signals((200, 0.1), (25, 0.01)).split()
    assert "squeeze" not in signals((50, 0.1)), "too few bars to compare"


def test_the_heading_of_closed_markets_says_when_they_open() -> None:
    assert closed_heading(parse_time("2026-11-14T12:00Z")) == "closed, regular hours from Mon 16 Nov 14:30 UTC"


def test_the_account_line_counts() -> None:
    nothing, start = Decimal(0), Decimal(100_000)
    balance = Balance(
        total=Decimal(99_000),
        available=nothing,
        margin_used=nothing,
        unrealised=nothing,
        cash=start,
        realised=nothing,
        fees=nothing,
        day_start=start,
        positions=1,
        working_orders=2,
        started_with=start,
        daily_loss_limit=nothing,
        halted=None,
        note=None,
        end=None,
    )
    assert account_line(balance, "paper", 1, 2, 0).plain == (
        "equity 99,000.00 USD  day -1,000.00 (-1.00%)  1 position, 2 working orders, 0 alerts"
    )
    assert account_line(balance, "live", 1, 2, 0).plain.startswith("REAL MONEY  equity ")


@pytest.mark.anyio
async def test_the_board_of_a_desk(tmp_path: Path) -> None:
    given = {"OPENBELL_HOME": str(tmp_path), "OPENBELL_AS_OF": "2026-03-02T12:00:00Z"}
    (tmp_path / "watchlist.txt").write_text("AAPL\nBTC/USD\nZZZZ\n")
    async with Desk(load(given)) as desk:
        movers = Movers(desk)
        apple, bitcoin, unknown = await movers.read()
        assert (apple.is_open, bitcoin.is_open) == (True, True), "the stock trades before hours"
        assert None not in (apple.change, bitcoin.change, bitcoin.rsi)
        assert len(bitcoin.closes) == 480
        assert unknown.signals == "no bars yet"
        again = await movers.read()
        assert again[1].closes is bitcoin.closes, "computed once per bar"
        line, sections = await AccountPart(desk).read()
        assert line.plain.startswith("equity 100,000.00 USD  day +0.00 (+0.00%)  0 positions, 0 working orders"), line
        assert [each.total for each in sections] == [0, 0, 0, 0]
