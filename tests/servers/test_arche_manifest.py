"""The manifest: made of the tools, equal to the last release, and with a version that its changes allow."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tools import arche_manifest, arche_pages
from tools.arche_manifest import manifest
from tools.arche_versions import Bump, is_enough, needed_bump

from openbell.desk.quotes.arche.errors import ADAPTER, STATUSES
from openbell.market.errors import SettingsError
from openbell.servers.arche import tools
from tests.client import run

ROOT = Path(__file__).resolve().parents[2]
Change = Callable[[dict[str, Any]], Any]


def released() -> dict[str, Any]:
    return arche_manifest.last_released(ROOT / arche_manifest.FOLDER)


def test_the_file_is_what_the_tools_are() -> None:
    assert (ROOT / arche_manifest.FILE).read_text() == arche_manifest.text(), "run make docs"
    assert json.loads(arche_manifest.text())["version"] == tools.VERSION


def test_the_page_beside_the_manifest_is_up_to_date() -> None:
    page = (ROOT / arche_pages.MANIFEST_PAGE).read_text()
    assert page == arche_pages.manifest_page(), "run make docs"
    assert (ROOT / arche_manifest.FILE).parent / "MANIFEST.md" == ROOT / arche_pages.MANIFEST_PAGE
    for each in manifest()["methods"]:
        assert f"## {each['name']}\n" in page
    assert all(f"| `{name}` |" in page for name in manifest()["errors"]["schema"]["properties"])


def test_the_readme_of_the_methods_is_up_to_date_and_its_examples_work(tmp_path: Path) -> None:
    page = (ROOT / "docs" / arche_pages.README).read_text()
    assert page == arche_pages.readme(), "run make docs"
    for link in re.findall(r"\]\(([^)#]+)\)", page):
        assert (ROOT / "docs" / arche_pages.README).parent.joinpath(link).exists(), link
    examples = re.findall(r"`openbell call arche (\S+) '(.+?)'`", page)
    assert [name for name, _ in examples] == [each["name"] for each in manifest()["methods"]]
    for name, arguments in examples:
        done = run(tmp_path, "call", "arche", name, arguments, AS_OF="2026-01-12T15:30:20Z")
        assert done.returncode == 0, done.stdout


def test_version_1_0_0_is_the_contracts() -> None:
    first = json.loads((ROOT / arche_manifest.FOLDER / "released" / "1.0.0.json").read_text())
    assert manifest() == first
    assert released()["version"] == "1.0.0"


def test_the_version_is_the_one_that_the_changes_since_the_last_release_need() -> None:
    assert is_enough(released(), manifest()), f"needs a {needed_bump(released(), manifest()).name} version"


def test_every_type_of_error_is_documented() -> None:
    assert set(arche_manifest.MEANINGS) == {*STATUSES, *ADAPTER}
    page = (ROOT / "docs" / "arche.md").read_text()
    assert all(f"| {kind} |" in page for kind in arche_manifest.MEANINGS)


def method(given: dict[str, Any], name: str = "quotes.historical") -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in given["methods"] if each["name"] == name)
    return found


def arguments(given: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = method(given)["input_schema"]["properties"]
    return found


def bar(given: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = method(given)["result_schema"]["properties"]["items"]["items"]
    return found


CHANGES: dict[str, tuple[Change, Bump]] = {
    "nothing": (lambda _: None, Bump.NONE),
    "the order of required fields": (lambda m: bar(m)["required"].reverse(), Bump.NONE),
    "the order of methods": (lambda m: m["methods"].reverse(), Bump.NONE),
    "the version alone": (lambda m: m.update(version="9.9.9"), Bump.NONE),
    "its description": (lambda m: m.update(description="Other words."), Bump.PATCH),
    "the contact": (lambda m: m["contact"].update(email="other@example.com"), Bump.PATCH),
    "the description of a method": (lambda m: method(m).update(description="Other words."), Bump.PATCH),
    "the description of a field": (lambda m: arguments(m)["from"].update(description="Other."), Bump.PATCH),
    "a description more": (lambda m: arguments(m)["page"].update(description="New."), Bump.PATCH),
    "a description less": (lambda m: arguments(m)["from"].pop("description"), Bump.PATCH),
    "a method more": (lambda m: m["methods"].append({**method(m), "name": "quotes.new"}), Bump.MINOR),
    "an argument more": (lambda m: arguments(m).update(adjusted={"type": "boolean"}), Bump.MINOR),
    "a field more": (lambda m: bar(m)["properties"].update(vwap={"type": "string"}), Bump.MINOR),
    "a field that is called description": (
        lambda m: bar(m)["properties"].update(description={"type": "string"}),
        Bump.MINOR,
    ),
    "an interval more": (lambda m: arguments(m)["interval"]["enum"].append("1h"), Bump.MINOR),
    "a field of errors more": (
        lambda m: m["errors"]["schema"]["properties"].update(hint={"type": "string"}),
        Bump.MINOR,
    ),
    "a state of health more": (
        lambda m: method(m, "system.health")["result_schema"]["properties"]["status"]["enum"].append("unknown"),
        Bump.MAJOR,
    ),
    "a method less": (lambda m: m["methods"].pop(), Bump.MAJOR),
    "a method renamed": (lambda m: method(m).update(name="quotes.bars"), Bump.MAJOR),
    "an argument less": (lambda m: arguments(m).pop("page"), Bump.MAJOR),
    "a field less": (lambda m: bar(m)["properties"].pop("volume"), Bump.MAJOR),
    "an interval less": (lambda m: arguments(m)["interval"]["enum"].remove("1m"), Bump.MAJOR),
    "an argument that is required now": (
        lambda m: method(m)["input_schema"]["required"].append("page"),
        Bump.MAJOR,
    ),
    "a field that is not required now": (lambda m: bar(m)["required"].remove("open"), Bump.MAJOR),
    "another type": (lambda m: bar(m)["properties"]["open"].update(type="number"), Bump.MAJOR),
    "null as well": (lambda m: bar(m)["properties"]["open"].update(type=["string", "null"]), Bump.MAJOR),
    "another format": (lambda m: arguments(m)["from"].pop("format"), Bump.MAJOR),
    "another default": (lambda m: arguments(m)["page"].update(default=2), Bump.MAJOR),
    "true in place of one": (lambda m: arguments(m)["page"].update(default=True), Bump.MAJOR),
    "another limit": (lambda m: arguments(m)["page_size"].update(maximum=100), Bump.MAJOR),
    "a limit more": (lambda m: arguments(m)["page"].update(maximum=100), Bump.MAJOR),
    "unknown fields allowed": (lambda m: bar(m).update(additionalProperties=True), Bump.MAJOR),
    "another name": (lambda m: m.update(name="other-mcp"), Bump.MAJOR),
    "a field of errors less": (lambda m: m["errors"]["schema"]["properties"].pop("trace_id"), Bump.MAJOR),
    "words and a method less": (lambda m: (m.update(description="x"), m["methods"].pop()), Bump.MAJOR),
}


@pytest.mark.parametrize("name", list(CHANGES))
def test_a_change_needs_its_version_and_no_lower_one_is_enough(name: str) -> None:
    change, needed = CHANGES[name]
    old, new = released(), deepcopy(released())
    change(new)
    assert needed_bump(old, new) is needed
    for version, bump in (("1.0.0", Bump.NONE), ("1.0.1", Bump.PATCH), ("1.1.0", Bump.MINOR), ("2.0.0", Bump.MAJOR)):
        assert is_enough(old, {**new, "version": version}) is (bump >= needed), version
    assert not is_enough(old, {**new, "version": "0.9.9"})
    assert is_enough(old, {**new, "version": "10.0.0"}), "numbers, not texts"


def test_make_docs_refuses_a_version_that_is_too_low(tmp_path: Path) -> None:
    folder = tmp_path / arche_manifest.FOLDER / "released"
    folder.mkdir(parents=True)
    for version, fields in (("1.0.0", 4), ("0.9.0", 1)):
        some = {**released(), "version": version, "methods": released()["methods"][:fields]}
        (folder / f"{version}.json").write_text(json.dumps(some))
    arche_manifest.write(tmp_path)
    assert (tmp_path / arche_manifest.FILE).read_text() == arche_manifest.text()
    more = {**released(), "methods": [*released()["methods"], {**released()["methods"][0], "name": "quotes.more"}]}
    (folder / "1.0.0.json").write_text(json.dumps(more))
    with pytest.raises(SettingsError, match=r"since 1\.0\.0 and needs a major version"):
        arche_manifest.write(tmp_path)
