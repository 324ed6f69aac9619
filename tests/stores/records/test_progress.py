"""The names of recorded problems of the engine."""

from __future__ import annotations

import pytest

from openbell.stores.records.progress import account_of, trouble_of


@pytest.mark.parametrize("account", ["paper", "account", "account of mine", "two  blanks", "local.alice"])
@pytest.mark.parametrize("symbol", ["", "AAPL", "BTC/USD"])
def test_the_account_of_a_trouble_is_found_again_whatever_its_name(account: str, symbol: str) -> None:
    assert account_of(trouble_of(account, symbol)) == account
