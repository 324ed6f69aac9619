"""All commands: importing a module registers its commands, in the order of --help. Each has lazy imports."""
# isort: skip_file

from __future__ import annotations

from openbell.cli import up, mcp, call, import_, backfill, export, watch, chart  # noqa: F401
from openbell.cli import backtest, sweep, backtester, strategies, account, passphrase, token, consent  # noqa: F401
from openbell.cli import scenario, webhook, halt, verify, doctor, health, backup, install  # noqa: F401
from openbell.cli.app import app

__all__ = ["app"]
