"""Install a lock file into this interpreter's environment, with pip, and show how far it is.

Pip writes several lines about each package, or with --quiet none for a minute. Here a terminal shows one line that
counts the packages, and a log gets a line for every tenth.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PACKAGE = re.compile(r"^(?:Collecting |Requirement already satisfied: |Processing \S*/)([A-Za-z0-9_.-]+?)(?:==|-\d)")
EVERY = 10


def show(line: str, *, last: bool = False) -> None:
    """Write over the line before on a terminal; add a line elsewhere."""
    terminal = sys.stdout.isatty()
    sys.stdout.write(f"\r\033[K{line}" if terminal else line)
    if last or not terminal:
        sys.stdout.write("\n")
    sys.stdout.flush()


def install(lock: Path) -> int:
    """Pip's exit code; if it failed, everything that it wrote is shown."""
    # Byte code is written when a module is first imported: compiling all of ccxt would take longer than the download.
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
    command = [*pip, "--no-compile", "--require-hashes", "-r", str(lock)]
    total = len(re.findall(r"^[A-Za-z0-9].*==", lock.read_text(encoding="utf-8"), re.MULTILINE))
    done, said = 0, []
    # Warnings too are kept for a failure: a mirror that lacks some packages would warn of each.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace"
    ) as process:
        assert process.stdout
        for line in process.stdout:
            said.append(line)
            if line.startswith("Ignoring "):  # a package for another system or Python
                total -= 1
            elif found := PACKAGE.match(line):
                done += 1
                if sys.stdout.isatty() or done % EVERY == 1:
                    show(f"{lock.name}: package {done} of {total}, {found[1]}")
            elif line.startswith("Installing collected packages:"):
                show(f"{lock.name}: unpacking {line.count(',') + 1} packages")
    if process.returncode:
        show("".join(said), last=True)
    else:
        show(f"{lock.name}: installed", last=True)
    return process.returncode


if __name__ == "__main__":
    sys.exit(install(Path(sys.argv[1])))
