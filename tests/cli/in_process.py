"""Commands that run in the process of the tests."""

from __future__ import annotations

import sys
from pathlib import Path

from typer.main import get_command
from typer.testing import CliRunner

from openbell.cli.commands import app

_COMMAND = get_command(app)
"""Built once, as in every process of `openbell`; the runner would read the options of all commands before each run."""


def command(home: Path, *words: str, **settings: str) -> tuple[int, str, str]:
    """Runs a command. Returns its exit code, its standard output and its standard error."""
    env = {"OPENBELL_HOME": str(home), **{f"OPENBELL_{name}": value for name, value in settings.items()}}
    with CliRunner().isolation(env=env) as (output, errors, _):
        try:
            _COMMAND.main(list(words), prog_name=app.info.name)
        except SystemExit as ended:
            code = ended.code or 0
        sys.stdout.flush()
        sys.stderr.flush()
        assert isinstance(code, int), code
        return code, output.getvalue().decode(), errors.getvalue().decode()
