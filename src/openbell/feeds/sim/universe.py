"""The symbols of the simulator: one row per symbol, and one factor per asset class."""

from __future__ import annotations

import math
from dataclasses import dataclass

from openbell.market.instruments import AssetClass, Instrument, parse


@dataclass(frozen=True, slots=True)
class Factor:
    """The moves that all symbols of an asset class share."""

    volatility: float
    """The standard deviation of an average day, as a fraction of the price."""
    common: float
    """The correlation with the moves that all asset classes share."""


FACTORS = {
    AssetClass.STOCK: Factor(volatility=0.0095, common=0.5),
    AssetClass.CRYPTO: Factor(volatility=0.022, common=0.5),
    # The factor rises if the dollar falls: pairs quoted in dollars have a positive beta.
    AssetClass.FOREX: Factor(volatility=0.004, common=0.0),
}


@dataclass(frozen=True, slots=True)
class SimulatedSymbol:
    """The parameters of one symbol."""

    symbol: str
    anchor: float
    """The price around which it moves."""
    volatility: float
    """The standard deviation of an average day as a fraction of the price, including the factor's part."""
    beta: float
    """The multiple of its class's factor."""
    volume: float
    """The volume of an average minute in regular hours: shares, coins or, for forex, price changes."""
    decimals: int
    """The decimals of its prices."""
    extended: float = 1.0
    """The share of extended-hours minutes that have a bar."""
    twin_of: str = ""
    """The symbol whose own moves it shares, if both track the same asset."""
    basis: float = 0.0
    """The typical deviation from the price of `twin_of`, as a fraction."""

    @property
    def own(self) -> str:
        """The name of the symbol's own walk."""
        return self.twin_of or self.symbol

    @property
    def own_volatility(self) -> float:
        """The part of the daily volatility that is not the factor's."""
        return math.sqrt(self.volatility * self.volatility - self.factor_volatility * self.factor_volatility)

    @property
    def factor_volatility(self) -> float:
        """The factor's part of the daily volatility; negative if the symbol moves against the factor."""
        return self.beta * FACTORS[parse(self.symbol).asset_class].volatility


_ROWS = (
    #       symbol      anchor     volatility beta  volume   decimals
    SimulatedSymbol("SPY", 650.0, 0.0100, 1.02, 120_000, 2),
    SimulatedSymbol("QQQ", 590.0, 0.0130, 1.25, 90_000, 2),
    SimulatedSymbol("IWM", 240.0, 0.0140, 1.20, 60_000, 2, 0.97),
    SimulatedSymbol("AAPL", 250.0, 0.0170, 1.20, 110_000, 2, 0.99),
    SimulatedSymbol("MSFT", 505.0, 0.0150, 1.15, 50_000, 2, 0.97),
    SimulatedSymbol("GOOGL", 245.0, 0.0175, 1.15, 75_000, 2, 0.97),
    SimulatedSymbol("AMZN", 225.0, 0.0180, 1.25, 95_000, 2, 0.98),
    SimulatedSymbol("META", 720.0, 0.0200, 1.30, 32_000, 2, 0.97),
    SimulatedSymbol("NVDA", 180.0, 0.0270, 1.80, 420_000, 2),
    SimulatedSymbol("TSLA", 400.0, 0.0330, 1.80, 210_000, 2),
    SimulatedSymbol("BBAI", 6.5, 0.0520, 2.00, 180_000, 2, 0.75),
    SimulatedSymbol("RIOT", 17.0, 0.0480, 2.10, 75_000, 2, 0.70),
    SimulatedSymbol("NVDX", 18.0, 0.0540, 3.60, 35_000, 2, 0.45, twin_of="NVDA"),  # twice NVDA's daily move
    SimulatedSymbol("SMR", 36.0, 0.0500, 1.90, 45_000, 2, 0.55),
    SimulatedSymbol("APLD", 25.0, 0.0530, 2.10, 70_000, 2, 0.60),
    SimulatedSymbol("SOUN", 15.0, 0.0500, 2.00, 130_000, 2, 0.70),
    SimulatedSymbol("SERV", 13.0, 0.0550, 1.90, 18_000, 2, 0.35),
    SimulatedSymbol("ACHR", 9.5, 0.0440, 1.80, 85_000, 2, 0.60),
    SimulatedSymbol("BITQ", 25.0, 0.0320, 1.90, 900, 2, 0.10),
    SimulatedSymbol("UEC", 13.0, 0.0400, 1.60, 30_000, 2, 0.40),
    SimulatedSymbol("BTC/USD", 105_000.0, 0.0240, 1.00, 1.8, 2),
    SimulatedSymbol("ETH/USD", 3_900.0, 0.0330, 1.25, 28.0, 2),
    SimulatedSymbol("BTC/USDT", 105_000.0, 0.0240, 1.00, 14.0, 2, twin_of="BTC/USD", basis=0.0002),
    SimulatedSymbol("ETH/USDT", 3_900.0, 0.0330, 1.25, 260.0, 2, twin_of="ETH/USD", basis=0.0002),
    SimulatedSymbol("SOL/USDT", 190.0, 0.0410, 1.45, 2_400.0, 2),
    SimulatedSymbol("EUR/USD", 1.16, 0.0046, 1.00, 90, 5),
    SimulatedSymbol("GBP/USD", 1.34, 0.0052, 1.05, 80, 5),
    SimulatedSymbol("USD/JPY", 150.0, 0.0058, -0.95, 95, 3),
    SimulatedSymbol("AUD/USD", 0.655, 0.0064, 1.20, 60, 5),
    SimulatedSymbol("USD/CHF", 0.80, 0.0050, -1.00, 55, 5),
)

LISTINGS: dict[Instrument, SimulatedSymbol] = {parse(row.symbol): row for row in _ROWS}
