"""Single modules of ccxt give the same classes as the whole package, which loads all exchanges."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.client import PATIENCE

pytestmark = pytest.mark.skipif(find_spec("ccxt") is None, reason="pip install 'openbell[ccxt]'")

SCRIPT = """
import sys
if sys.argv[1] == "whole":
    import ccxt.async_support, ccxt.pro
    names = sorted(ccxt.async_support.exchanges)
from openbell.feeds.ccxt_exchange.library import exchange_class, modules_of
if sys.argv[1] != "whole":
    names = modules_of("ccxt.async_support")
for name in names:
    for package in ("ccxt.async_support", "ccxt.pro"):
        kind = exchange_class(package, name)
        print(name, kind and [f"{each.__module__}.{each.__qualname__}" for each in kind.__mro__])
    described = (kind or exchange_class("ccxt.async_support", name))().describe()
    print(sorted(described["has"].items()), described.get("timeframes"))
print(len(names), "exchanges,", sum(each.startswith("ccxt.async_support.") for each in sys.modules))
"""
ONE = """
import sys
from openbell.feeds.ccxt_exchange.library import load
load("kraken")
print(sorted(name for name in sys.modules if name.startswith("ccxt.async_support.") and name.count(".") == 2))
import ccxt.pro
assert issubclass(ccxt.pro.kraken, ccxt.async_support.kraken)
assert ccxt.NetworkError is ccxt.base.errors.NetworkError
"""


def output(script: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_exchange_is_the_same_class() -> None:
    whole, single = output(SCRIPT, "whole"), output(SCRIPT, "single")
    assert whole.splitlines()[:-1] == single.splitlines()[:-1]
    assert int(whole.splitlines()[-1].split()[0]) > 90


def test_one_exchange_loads_no_other() -> None:
    assert output(ONE).strip() == "['ccxt.async_support.base', 'ccxt.async_support.kraken']"
