"""Write what a desk is made of: `sbom.py LOCK FILE`, a CycloneDX 1.6 document of the packages of a lock file.

Names, versions, hashes and who needs whom are those of the lock; licenses are those that the installed packages declare.
The same lock gives the same document.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PINNED = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?==([^\s;\\]+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
NEEDED_BY = re.compile(r"^    #   (?:via )?([A-Za-z0-9][A-Za-z0-9_.-]*)|^    # via ([A-Za-z0-9][A-Za-z0-9_.-]*)")
NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")  # of URLs, RFC 4122


@dataclass(slots=True)
class Package:
    """One pinned package of a lock."""

    name: str
    version: str
    hashes: list[str] = field(default_factory=list)
    needed_by: list[str] = field(default_factory=list)

    @property
    def purl(self) -> str:
        """Its package URL, which is also its reference in the document."""
        return f"pkg:pypi/{canonical(self.name)}@{self.version}"


def canonical(name: str) -> str:
    """A name as package URLs and metadata write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def packages_of(lock: Path) -> list[Package]:
    """The packages of a lock, in its order; a name may have a version for each range of Pythons."""
    found: list[Package] = []
    for line in lock.read_text(encoding="utf-8").splitlines():
        if pinned := PINNED.match(line):
            found.append(Package(pinned[1], pinned[2]))
        if found:
            found[-1].hashes += HASH.findall(line)
            if needed := NEEDED_BY.match(line):
                found[-1].needed_by.append(canonical(needed[1] or needed[2]))
    return found


def document(lock: Path) -> dict[str, Any]:
    """The document of a lock."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = Package(project["name"], project["version"])
    packages = packages_of(lock)
    by_name: dict[str, list[Package]] = {own.name: [own]}
    for each in packages:
        by_name.setdefault(canonical(each.name), []).append(each)
    needs: dict[str, set[str]] = {each.purl: set() for each in (own, *packages)}
    for each in packages:
        for user in each.needed_by:
            for found in by_name.get(user, ()):
                needs[found.purl].add(each.purl)
    components = [component(each, lock.name) for each in packages]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, json.dumps([own.purl, components]))}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own.purl,
                "name": own.name,
                "version": own.version,
                "description": project["description"],
                "purl": own.purl,
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": components,
        "dependencies": [{"ref": ref, "dependsOn": sorted(needed)} for ref, needed in sorted(needs.items())],
    }


def component(package: Package, lock: str) -> dict[str, Any]:
    """A package as a component, with the hashes of all files that the lock accepts for it."""
    hashes = [{"alg": "SHA-256", "content": each} for each in package.hashes]
    made: dict[str, Any] = {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
        "externalReferences": [{"type": "distribution", "url": lock, "hashes": hashes}],
    }
    return made | license_of(package)


def license_of(package: Package) -> dict[str, Any]:
    """The license that an installed package declares; nothing if it is not installed here, such as one for Windows."""
    try:
        declared = metadata(package.name)
    except PackageNotFoundError:
        return {}
    if expression := declared.get("License-Expression"):
        return {"licenses": [{"expression": expression}]}
    classifiers = [each for each in declared.get_all("Classifier") or [] if each.startswith("License :: ")]
    text = (declared.get("License") or "").strip()
    # Some packages put the whole text of their license there.
    names = (
        [text]
        if text and "\n" not in text and len(text) < 100
        else [each.rpartition(" :: ")[2] for each in classifiers]
    )
    return {"licenses": [{"license": {"name": each}} for each in names]} if names else {}


def main(words: list[str]) -> int:
    """Write the document of a lock to a file."""
    lock, target = Path(words[0]), Path(words[1])
    made = document(lock)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{target}: {len(made['components'])} packages of {lock.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
