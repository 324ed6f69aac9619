"""The Dockerfile, without an engine: its files exist, and its steps install a server that answers."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from openbell.desk.settings import load
from openbell.market.errors import SettingsError
from openbell.servers import NAMES
from tests.client import PATIENCE, Client

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = "/opt/openbell"


def instructions() -> list[tuple[str, str]]:
    """Every instruction with its arguments, continued lines joined."""
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    kept = [line for line in lines if line.strip() and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in kept)]


def copied() -> list[tuple[list[str], str]]:
    """Sources and target of each COPY from the checkout."""
    found = [shlex.split(rest) for name, rest in instructions() if name == "COPY" and not rest.startswith("--from")]
    return [(words[:-1], words[-1]) for words in found]


def test_everything_that_is_copied_exists_and_is_sent_to_the_engine() -> None:
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for sources, _ in copied():
        for source in sources:
            assert (ROOT / source).exists(), source
            assert source.partition("/")[0] in sent, source


def test_packages_are_those_of_the_lock_and_the_user_is_not_root() -> None:
    found = instructions()
    runs = [rest for name, rest in found if name == "RUN"]
    assert runs[0] == f"python .ci/install.py --new {ENVIRONMENT} requirements-run.lock"
    assert not any("pip install" in each for each in runs), "only .ci/install.py compares hashes"
    last = [name for name, _ in found]
    user = dict(found)["USER"]
    assert user not in ("root", "0")
    assert last.index("USER") < last.index("ENTRYPOINT")
    assert dict(found)["VOLUME"] == f"/home/{user}/.openbell"
    assert json.loads(dict(found)["ENTRYPOINT"]) == ["openbell", "mcp"]
    assert json.loads(dict(found)["CMD"])[0] in NAMES


def test_the_example_over_http_keeps_its_data_and_has_settings_that_load(tmp_path: Path) -> None:
    (example,) = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if "--entrypoint openbell" in line]
    words = shlex.split(example.removeprefix("#"))
    options, command = words[: words.index("up")], words[words.index("up") :]
    assert f"openbell:{dict(instructions())['VOLUME']}" in options
    environ = dict(options[at + 1].split("=", 1) for at, word in enumerate(options) if word == "-e")
    host = command[command.index("--host") + 1]
    assert load(environ | {"OPENBELL_HOME": str(tmp_path)}, host=host).host == host
    with pytest.raises(SettingsError, match="OPENBELL_ALLOWED_HOSTS"):
        load({"OPENBELL_HOME": str(tmp_path)}, host=host)


def test_the_steps_install_a_server_that_answers(tmp_path: Path) -> None:
    build, environment = tmp_path / "build", tmp_path / "environment"
    build.mkdir()
    for sources, target in copied():
        for source in sources:
            into = build / target / (Path(source).name if target.endswith("/") else "")
            into.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, into, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, into)
    # The packages of the lock are those of the tests here.
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.strip()
    (Path(packages) / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    if (uv := Path(sys.executable).with_name("uv")).exists():
        shutil.copy(uv, environment / "bin" / "uv")
    step = next(rest for name, rest in instructions() if name == "RUN" and "--no-build-isolation" in rest)
    words = [sys.executable, *shlex.split(step.replace(ENVIRONMENT, str(environment)))[1:]]
    done = subprocess.run(words, cwd=build, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = dict(instructions())
    command = [*json.loads(found["ENTRYPOINT"]), *json.loads(found["CMD"])]
    command[0] = str(environment / "bin" / command[0])
    assert Path(command[0]).exists()
    with Client(tmp_path / "home", command=command) as client:
        client.initialize()
        assert "get_signals" in {tool["name"] for tool in client.request("tools/list")["result"]["tools"]}
