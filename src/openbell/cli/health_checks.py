"""The checks of `openbell doctor` that an operator needs: the process that runs the desk, and who can read its files."""

from __future__ import annotations

from collections.abc import Iterator

from openbell.cli.findings import Finding
from openbell.desk.desk import Desk
from openbell.desk.health.asking import ask
from openbell.desk.health.report import DOWN
from openbell.desk.private_files import is_shared, open_files
from openbell.desk.settings import names
from openbell.desk.settings_file import NAME, read_file
from openbell.market.counting import counted


def check_health(desk: Desk) -> Iterator[Finding]:
    """Report the parts that fail in the process that runs the desk, and since when."""
    health = ask(desk.settings)
    if health.state == DOWN:
        yield Finding("note", health.text, "openbell up")
        return
    for name, part in health.failing.items():
        yield Finding("bad", f"{name} of the running desk: {part}")
    if not health.failing:
        yield Finding("ok", f"the running desk: {health.text}")


def check_privacy(desk: Desk) -> Iterator[Finding]:
    """Report secrets and files that other users of this machine can read."""
    home = desk.settings.home
    if warning := read_file(home / NAME, names()).warning:
        yield Finding("bad", warning, f"chmod 600 {home / NAME}")
    if found := open_files(home):
        files = f", and so can {counted(len(found) - 1, 'file')} in it" if len(found) > 1 else ""
        yield Finding("note", f"home {home} can be read by other users{files}", f"chmod -R go= {home}")
    elif is_shared(home):
        yield Finding("note", f"home {home} is shared with its group: members can read bars, settings and logs")
