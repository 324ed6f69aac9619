"""Make a Python environment and install into it: `install.py [--new] FOLDER LOCK`, or what `pip install` takes.

uv does it, in seconds; pip would take more than a minute. Pip installs uv (`installers.lock`, with hashes), and does all
of it where uv cannot be had or fails. A terminal shows one line of progress, a log a line for each larger package.

Nothing is compiled: the first start compiles the modules that it loads, which takes 4 s; to compile all of them takes 20 s.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

INSTALLERS = Path(__file__).with_name("installers.lock")
OWN = Path(__file__).resolve().parents[1] / ".venv"
"""The project's environment: other environments are made with its uv."""
PROGRAMS = "Scripts" if os.name == "nt" else "bin"
SUFFIX = ".exe" if os.name == "nt" else ""
FETCHED = re.compile(r"^(?:Collecting |Downloading |Processing \S*/)([A-Za-z0-9_.]+(?:-[A-Za-z][A-Za-z0-9_.]*)*)")
PIP_OPTIONS = ["--disable-pip-version-check", "--progress-bar", "off", "--no-compile"]
PASSED_ON = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
}
"""Settings of pip that uv reads from variables of its own."""


def main(words: list[str]) -> int:
    """The exit code; what was written is shown if it is not 0."""
    new = words[:1] == ["--new"]
    folder, *wanted = words[new:]
    if new or not (Path(folder) / "pyvenv.cfg").exists():
        venv.create(folder, clear=True, with_pip=False, symlinks=os.name != "nt")
    name = Path(wanted[-1]).resolve().name
    arguments = [each for word in wanted for each in (locked(word) if word.endswith(".lock") else [word])]
    python = Path(folder) / PROGRAMS / f"python{SUFFIX}"
    # Asked before uv is installed, so that both run at the same time.
    configured = subprocess.Popen(
        [sys.executable, "-m", "pip", "config", "list"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    if uv := find_uv(python):
        settings = uv_settings(configured.communicate()[0])
        code, said = run([*uv, "pip", "install", "--python", str(python), *arguments], name, settings)
        if not code:
            return code
        show(f"{name}: uv failed, pip tries it:\n{said}")
    pip = pip_for(python)
    if not pip:
        show(
            "there is neither pip nor ensurepip: install them (Debian: apt install python3-venv python3-pip)", last=True
        )
        return 1
    code, said = run([*pip, "install", *PIP_OPTIONS, *arguments], name)
    if code:
        show(said, last=True)
    return code


def locked(lock: str) -> list[str]:
    """What installs a lock file, and nothing that it does not name."""
    return ["--require-hashes", "-r", lock]


def find_uv(python: Path) -> list[str]:
    """The command of a uv that runs: this environment's, the project's, or one that is installed now; empty if none does."""
    beside = python.with_name(f"uv{SUFFIX}")
    for each in (beside, OWN / PROGRAMS / beside.name):
        if each.exists():
            return [str(each)] if runs([str(each), "--version"]) else []
    pip = pip_for(python)
    code = run([*pip, "install", *PIP_OPTIONS, *locked(str(INSTALLERS))], INSTALLERS.name)[0] if pip else 1
    if not code and runs([str(beside), "--version"]):
        return [str(beside)]
    show("uv cannot be had here: pip installs, which takes a minute longer", last=True)
    return []


def pip_for(python: Path) -> list[str]:
    """The command of a pip that installs into an environment: this interpreter's, which is there, or a new one there."""
    there = [str(python), "-m", "pip"]
    if runs([*there, "--version"]):
        return there
    if find_spec("pip") and [int(part) for part in version("pip").split(".")[:2]] >= [22, 3]:  # knows --python
        return [sys.executable, "-m", "pip", "--python", str(python)]
    return there if runs([str(python), "-m", "ensurepip", "--default-pip"]) else []


def uv_settings(configured: str) -> dict[str, str]:
    """The environment of uv, with the index and certificates of `pip config list`; what is set for uv itself wins."""
    found: dict[str, list[str]] = {}
    for section in ("global", "install", ":env:"):  # the stronger last
        for name, value in re.findall(rf"^{section}\.([a-z-]+)=('.*')$", configured, re.MULTILINE):
            found[name] = ast.literal_eval(value).split()
    settings = {
        variable: ("," if name == "find-links" else " ").join(found[name])
        for name, variable in PASSED_ON.items()
        if name in found
    }
    if "UV_INDEX" in settings:
        # As pip does: the best version of all indexes, not the first index that knows the name. Hashes are checked.
        settings["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return {**settings, **os.environ}


def runs(command: list[str]) -> bool:
    """Whether a command exists and succeeds."""
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def run(command: list[str], name: str, environment: dict[str, str] | None = None) -> tuple[int, str]:
    """Run an installer and show how far it is. Returns its exit code and everything that it wrote."""
    said: list[str] = []
    show(f"{name}: resolving")
    # Warnings too are kept for a failure: a mirror that lacks some packages would warn of each.
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=environment,
    ) as process:
        assert process.stdout
        for line in process.stdout:
            said.append(line)
            for progress in steps(line):
                show(f"{name}: {progress}")
    if not process.returncode:
        show(f"{name}: installed", last=True)
    return process.returncode, "".join(said)


def steps(line: str) -> Iterator[str]:
    """What a line of uv or pip says about progress."""
    if found := FETCHED.match(line):
        yield f"fetching {found[1]}"
    elif line.startswith("Installing collected packages:"):
        yield f"unpacking {line.count(',') + 1} packages"
    elif line.startswith("Resolved "):
        yield f"{line.split(' in ', maxsplit=1)[0].lower().strip()}"


def show(line: str, *, last: bool = False) -> None:
    """Write over the line before on a terminal; add a line elsewhere."""
    terminal = sys.stdout.isatty()
    sys.stdout.write(f"\r\033[K{line}" if terminal else line)
    if last or not terminal:
        sys.stdout.write("\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
