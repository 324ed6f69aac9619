"""Where `openbell` begins.

Python's garbage collector runs many times while the protocol's types are built and finds nothing: it is off until the
command is loaded, which makes a server start about a tenth sooner.
"""

from __future__ import annotations

import gc


def main() -> None:
    """Run the command line."""
    gc.disable()
    from openbell.cli.app import app

    app()


if __name__ == "__main__":
    main()
