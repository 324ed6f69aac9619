"""Prints the health of this desk. Loads no command-line library, so that a supervisor can ask every few seconds."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from openbell.cli.terminal import exit_code_of
from openbell.desk.operations.health.asking import ask, unreadable_settings
from openbell.desk.operations.health.report import EXIT_CODES
from openbell.desk.settings import DEFAULT_HOME, home_of, load
from openbell.market.errors import SettingsError

NOT_WRITTEN = 3
"""The exit code if the desk works and that cannot be written: another than those of its states."""


def report() -> int:
    """Print the health of the desk; returns the exit code of its state, or 3 if that of a working desk cannot be written."""
    try:
        health = ask(load())
    except SettingsError as error:
        print(f"openbell: {error.message}", file=sys.stderr)  # noqa: T201 - this is the command's output
        health = unreadable_settings(_home(), error.message)
    code = EXIT_CODES[health.state]
    try:
        print(json.dumps(health.payload(), indent=2 if sys.stdout.isatty() else None), flush=True)  # noqa: T201 - the same
    except OSError as error:
        return exit_code_of(error, code or NOT_WRITTEN)
    return code


def _home() -> Path:
    """Returns the home; if it is the invalid setting, its text as it was given."""
    with suppress(SettingsError):
        return home_of(os.environ)
    return Path(os.environ.get("OPENBELL_HOME") or DEFAULT_HOME)
