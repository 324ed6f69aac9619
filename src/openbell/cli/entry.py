"""Where `openbell` begins.

A supervisor runs `openbell health` every few seconds, so that it is run without loading the other commands.
"""

from __future__ import annotations

import gc
import os
import sys

from openbell.cli.process_memory import collector_paused
from openbell.cli.terminal import clean_streams, exit_code_of, open_standard_streams
from openbell.desk.settings import private_files

_SERVICES = ("up", "collect", "mcp", "backtester")
"""Commands of which every line on standard error is JSON if the log is, also an error before the log is started."""


def main() -> None:
    """Run the command line. Output that cannot be written is reported in one line, and by the exit code."""
    open_standard_streams()
    clean_streams()
    private_files.begin()
    if (
        sys.argv[1:2]
        and sys.argv[1] in _SERVICES
        and os.environ.get("OPENBELL_LOG_FORMAT", "").strip().lower() == "json"
    ):
        from openbell.desk.operations.logs.json_stream import only_json_lines

        only_json_lines()
    try:
        if sys.argv[1:] == ["health"]:
            with collector_paused():
                from openbell.cli.health_report import report
            sys.exit(report())
        with collector_paused():
            from openbell.cli.commands import app

        app()
    except SystemExit as leaving:
        code = _flushed(leaving.code)
        gc.freeze()  # without it, Python looks for garbage among all objects before it ends, for 15 ms
        sys.exit(code)
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.exit(exit_code_of(error))
    except BaseExceptionGroup as several:
        if several.split(OSError)[1] is not None:
            raise
        sys.exit(exit_code_of(_first(several)))


def _flushed(code: str | int | None) -> str | int | None:
    """The exit code, once everything is written; another if it could not be."""
    try:
        sys.stdout.flush()
    except OSError as error:
        return exit_code_of(error, code)
    return code


def _first(several: BaseExceptionGroup[BaseException]) -> BaseException:
    found: BaseException = several
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


if __name__ == "__main__":
    main()
