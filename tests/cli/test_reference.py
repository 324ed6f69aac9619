"""Documentation that cannot rot: generated pages are up to date, every command and file that the README names exists."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from tools.reference import pages

from openbell.indicators.registry import all_indicators
from openbell.protocol.server import declare
from openbell.servers import NAMES, load
from openbell.strategies.library import canonical
from tests.client import run

ROOT = Path(__file__).resolve().parents[2]


def test_generated_pages_are_up_to_date() -> None:
    for name, text in pages().items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, f"docs/{name}: run make docs"


def test_every_indicator_has_its_picture() -> None:
    assert {file.stem for file in (ROOT / "docs" / "indicators").glob("*.png")} == set(all_indicators()), (
        "run: make docs"
    )


def test_every_strategy_has_its_picture() -> None:
    sizes = {file.stem: file.stat().st_size for file in (ROOT / "docs" / "strategies").iterdir()}
    assert set(sizes) == set(canonical()), "run: make docs"
    assert max(sizes.values()) <= 40_000


@pytest.mark.parametrize("name", NAMES)
def test_the_tools_are_what_they_were(name: str) -> None:
    """A changed schema is a changed contract: look at the difference, then write the snapshot anew.

    Each tool has a file of its own, of what a client is told of it by `tools/list`.
    """
    folder = ROOT / "tests" / "servers" / "snapshots" / name
    service = load(name)
    now = {
        tool.name: json.dumps(
            declare(tool, service).model_dump(mode="json", by_alias=True, exclude_none=True), indent=1
        )
        for tool in service.tools
    }
    if os.environ.get("OPENBELL_WRITE_SNAPSHOTS"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for tool, text in now.items():
            (folder / f"{tool}.json").write_text(text + "\n")
    assert {file.stem: file.read_text() for file in folder.iterdir()} == {
        tool: text + "\n" for tool, text in now.items()
    }


def test_no_schema_has_a_bare_object_or_a_reference() -> None:
    def walk(node: object, path: str) -> None:
        if isinstance(node, dict):
            assert "$ref" not in node, path
            if node.get("type") == "object":
                typed = isinstance(node.get("additionalProperties"), dict) or node.get("additionalProperties") is False
                assert node.get("properties") is not None or typed, path
            if node.get("type") == "array":
                assert node.get("items"), path
            for key, value in node.items():
                walk(value, f"{path}.{key}")
        elif isinstance(node, list):
            for value in node:
                walk(value, path)

    for name in NAMES:
        for tool in load(name).tools:
            walk(tool.input_schema, f"{tool.name} input")
            walk(tool.output_schema or {}, f"{tool.name} output")


def test_the_tool_list_is_short() -> None:
    """An agent pays for it with its own tokens: about four bytes each."""
    for name in NAMES:
        tools = load(name).tools
        size = sum(len(json.dumps([tool.name, tool.description, tool.input_schema])) for tool in tools)
        assert size / 4 < 260 * len(tools), f"{name}: {size} bytes"


def test_the_readme_names_only_what_exists(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", readme):
        assert (ROOT / link).exists(), link
    helped = run(tmp_path, "--help").stdout
    for command in set(re.findall(r"openbell (up|mcp|call|import|doctor|collect|[a-z]+) ", readme)):
        assert re.search(rf"^\s+{command}\s", helped, re.MULTILINE), command


def test_the_files_that_contributing_names_exist() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("## Where ten changes belong")[2]
    rows = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith("| change")]
    assert len(rows) == 15
    for row in rows:
        named = re.findall(r"`(src/[^`]+)`", row)
        assert named, row
        for path in named:
            assert (ROOT / path).exists(), path


def test_the_modules_that_the_pages_name_exist() -> None:
    named = {
        path: page.name
        for page in (*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "decisions").glob("*.md"))
        for path in re.findall(r"`((?!bench/)[\w/]+/\w+\.py)`", page.read_text())
    }
    assert len(named) > 12
    for path, page in named.items():
        assert (ROOT / "src" / "openbell" / path).exists(), f"{page}: {path}"


def test_the_way_of_an_order_has_at_most_twelve_files() -> None:
    section = (ROOT / "docs" / "trading.md").read_text().partition("## The way of an order")[2].partition("\n## ")[0]
    files = re.findall(r"^\| \d+ \| `([^`]+)`", section, re.MULTILINE)
    assert 1 < len(files) <= 12
    assert files[0].startswith("servers/")
