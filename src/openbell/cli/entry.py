"""Where `openbell` begins.

Python's garbage collector runs many times while modules load and finds nothing. It is off while the commands load, and while
`openbell mcp` loads the protocol, which makes a server start about a tenth sooner; `collector_paused` switches it on again.

A supervisor runs `openbell health` every few seconds, so that it is run without loading the other commands.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from openbell.cli.terminal import clean_streams
from openbell.desk.settings import private_files

_SERVICES = ("up", "collect", "mcp", "backtester")
"""Commands of which every line on standard error is JSON if the log is, also an error before the log is started."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """Collect no garbage in the block, which only loads; what it has loaded is never looked at again."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def main() -> None:
    """Run the command line. Output that cannot be written is reported in one line, and by the exit code."""
    _open_standard_streams()
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
            from openbell.cli.app import app

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


def exit_code_of(error: BaseException, code: str | int | None = None) -> int:
    """Give up output that cannot be written, and report it, unless its reader has closed the pipe.

    Returns the exit code, which is `code` if the command has failed by itself.
    """
    _let_go()
    if isinstance(error, BrokenPipeError):
        return 141
    cause = getattr(error, "strerror", None) or error
    effect = "what the command does may have taken effect: check before you repeat it"
    with suppress(OSError):
        print(f"openbell: {cause}; {effect}", file=sys.stderr, flush=True)  # noqa: T201 - for the person at the shell
    return code if isinstance(code, int) and code else 1


def _first(several: BaseExceptionGroup[BaseException]) -> BaseException:
    found: BaseException = several
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


def _let_go() -> None:
    """Give up standard output, so that the interpreter does not try again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _open_standard_streams() -> None:
    """A caller may have closed them; without this, the next file opened would take their place."""
    for number, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)
    # A command may replace these objects: their end must not close the descriptors.
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)


if __name__ == "__main__":
    main()
