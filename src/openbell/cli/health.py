"""`openbell health`: the health of this desk as JSON and as an exit code, for a supervisor."""

from __future__ import annotations

import typer

from openbell.cli.app import app
from openbell.cli.health_report import report


@app.command("health")
def health() -> None:
    """Print the health of the desk that openbell up runs on this home, as JSON.

    Exits with 0 if every part works, with 1 if the process runs and a part of it fails (the JSON tells which, why and since
    when), with 2 if no process answers or the settings are invalid, and with 3 if the desk works and the report cannot be
    written. It asks that process, changes nothing, and takes 6 seconds at most.

    \b
    Example:
      openbell health || echo "look at the desk"
    """  # noqa: D301 (click reads the backspace)
    raise typer.Exit(report())
