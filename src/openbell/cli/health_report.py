"""Prints the health of this desk. Loads no command-line library, so that a supervisor can ask every few seconds."""

from __future__ import annotations

import json
import sys

from openbell.cli.entry import exit_code_of
from openbell.desk.health.asking import ask
from openbell.desk.health.report import EXIT_CODES
from openbell.desk.settings import load
from openbell.market.errors import SettingsError


def report() -> int:
    """Print the health of the desk; returns the exit code of its state, or 1 if a healthy state cannot be written."""
    try:
        health = ask(load())
    except SettingsError as error:
        print(f"openbell: {error.message}", file=sys.stderr)  # noqa: T201 - this is the command's output
        return EXIT_CODES["down"]
    code = EXIT_CODES[health.state]
    try:
        print(json.dumps(health.payload(), indent=2 if sys.stdout.isatty() else None), flush=True)  # noqa: T201 - the same
    except OSError as error:
        return exit_code_of(error, code)
    return code
