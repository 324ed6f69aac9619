"""The classes of instruments that signals do not cover, and the tools that do."""

from __future__ import annotations

from collections.abc import Mapping

from openbell.market.instruments import AssetClass

NOT_COVERED: Mapping[AssetClass, str] = {
    AssetClass.FOREX: "signals cover stocks and crypto; for currencies use get_indicators of chartgen or get_candles of "
    "market-data"
}
"""What an error says of a symbol of such a class."""
