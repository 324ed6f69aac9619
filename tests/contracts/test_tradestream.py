"""TradeStream's contract: its rows are in the files of tests/contracts/tradestream, which imports them in their order."""

import tests.contracts.tradestream  # noqa: F401
