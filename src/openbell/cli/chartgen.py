"""The command `chartgen`, by which the configurations of chartgen start it: `chartgen --mcp`, `chartgen --serve`."""

from __future__ import annotations

import sys

from openbell.cli.entry import main as openbell

_MODES = {"--mcp": ["mcp", "chartgen"], "--serve": ["up"]}
_USAGE = """Usage: chartgen --mcp|--serve [--trade] [OPTIONS]

  --mcp    the server chartgen on standard input and output: openbell mcp chartgen
  --serve  the desk over HTTP, with chartgen on /mcp: openbell up
  --trade  allow the trading tools

Other options are those of the openbell command."""


def main() -> None:
    """Run the openbell command that a mode of chartgen stands for."""
    words = sys.argv[1:]
    modes = [word for word in words if word in _MODES]
    if not modes and {"-h", "--help"} & set(words):
        print(_USAGE)  # noqa: T201 - for the person at the shell
        return
    if len(modes) != 1:
        sys.exit(f"chartgen: give one of --mcp and --serve\n{_USAGE}")
    (mode,) = modes
    sys.argv = ["openbell", *_MODES[mode], *(word for word in words if word != mode)]
    openbell()
