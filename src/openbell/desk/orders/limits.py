"""The limits of the risk gate and the costs of paper fills, from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openbell.market.instruments import parse
from openbell.trading.accounts import PAPER
from openbell.trading.costs import Costs
from openbell.trading.risk import RiskLimits

if TYPE_CHECKING:
    from openbell.desk.settings import Settings


def limits_of(settings: Settings) -> RiskLimits:
    """Returns the limits that orders are judged by."""
    symbols = frozenset(parse(each).symbol for each in settings.risk_symbols.split(",") if each.strip())
    on_paper = (1 + settings.paper_fee) * (1 + settings.paper_slippage) - 1
    return RiskLimits(
        order_share=settings.risk_order_share,
        symbol_share=settings.risk_symbol_share,
        order_notional=settings.risk_order_notional,
        symbol_notional=settings.risk_symbol_notional,
        positions=settings.risk_positions,
        daily_loss=settings.risk_daily_loss,
        leverage=settings.risk_leverage,
        collar=settings.risk_collar,
        symbols=symbols,
        fee=on_paper if settings.broker == PAPER else RiskLimits().fee,
        short=settings.risk_short,
    )


def costs_of(settings: Settings) -> Costs:
    """Returns the costs of paper fills."""
    return Costs(fee=settings.paper_fee, slippage=settings.paper_slippage, volume_share=settings.paper_volume_share)
