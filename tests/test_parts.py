"""The list of parts (CycloneDX) and the look for advisories: the real scripts, and a database on this machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
RUN = ROOT / "requirements-run.lock"
PATIENCE = 60.0


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> str:
    target = tmp_path_factory.mktemp("parts") / "desk.cdx.json"
    command = [sys.executable, str(ROOT / ".ci" / "sbom.py"), str(RUN), str(target)]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    return target.read_text(encoding="utf-8")


def test_the_list_of_parts_is_valid_cyclonedx(document: str) -> None:
    validation = pytest.importorskip("cyclonedx.validation.json")
    schema = pytest.importorskip("cyclonedx.schema")
    assert validation.JsonStrictValidator(schema.SchemaVersion.V1_6).validate_str(document) is None


def test_the_list_has_every_package_of_the_lock_with_its_hashes_and_users(document: str) -> None:
    made, lock = json.loads(document), RUN.read_text(encoding="utf-8")
    pinned = re.findall(r"^([A-Za-z0-9_.-]+)(?:\[.*?\])?==([^\s;]+)", lock, re.MULTILINE)
    components: list[Any] = made["components"]
    assert [(each["name"], each["version"]) for each in components] == pinned
    hashes = [each for part in components for each in part["externalReferences"][0]["hashes"]]
    assert len(hashes) == lock.count("--hash=sha256:")
    needs = {each["ref"]: each["dependsOn"] for each in made["dependencies"]}
    assert set(needs) == {made["metadata"]["component"]["bom-ref"], *(each["bom-ref"] for each in components)}
    own = needs[made["metadata"]["component"]["bom-ref"]]
    assert any(each.startswith("pkg:pypi/mcp@") for each in own)
    (starlette,) = [each for each in needs if each.startswith("pkg:pypi/starlette@")]
    assert any(each.startswith("pkg:pypi/anyio@") for each in needs[starlette])
    licensed = [each for each in components if each.get("licenses")]
    assert len(licensed) > 0.9 * len(components)


class Database(BaseHTTPRequestHandler):
    """A database of advisories that knows one vulnerable version."""

    vulnerable = ""
    asked: list[Any] = []  # noqa: RUF012 - one server at a time

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
        type(self).asked = asked
        found = [{"vulns": [{"id": "GHSA-1"}]} if each["package"]["name"] == self.vulnerable else {} for each in asked]
        body = json.dumps({"results": found}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def database() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Database) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def look(address: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / ".ci" / "advisories.py"), str(RUN)]
    environment = {**os.environ, "ADVISORIES_URL": address, "no_proxy": "127.0.0.1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_a_vulnerable_version_fails_and_is_named(database: str) -> None:
    Database.vulnerable = "numpy"
    done = look(database)
    assert done.returncode == 1
    assert re.search(r"^numpy \S+: GHSA-1$", done.stdout, re.MULTILINE)
    assert {"package": {"name": "mcp", "ecosystem": "PyPI"}, "version": "2.3.0"} in Database.asked
    Database.vulnerable = ""
    done = look(database)
    assert done.returncode == 0
    assert "no advisory concerns the" in done.stdout


def test_a_database_that_cannot_be_reached_is_said_loudly_and_does_not_fail() -> None:
    done = look("http://127.0.0.1:9")
    assert done.returncode == 0
    assert "ADVISORIES NOT CHECKED" in done.stdout
    assert "!!!!!!!!" in done.stdout
