"""Ask the database of advisories (OSV) about the packages of lock files: `advisories.py LOCK…`.

Exits with 1 if a pinned version has a known vulnerability that is not accepted below. Where the database cannot be reached,
it says so loudly and does not fail: a machine without the internet can still check everything else.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from sbom import Package, packages_of

DATABASE = "https://api.osv.dev"
"""ADVISORIES_URL names another one that speaks the same API."""
TIMEOUT = 20.0
ACCEPTED: dict[str, str] = {}
"""Advisories that do not concern a desk, by id, with the reason."""


def ask(address: str, packages: list[Package]) -> list[tuple[Package, list[str]]]:
    """The packages with the ids of their advisories. Raises `OSError` or `ValueError` without a usable answer."""
    queries = [{"package": {"name": each.name, "ecosystem": "PyPI"}, "version": each.version} for each in packages]
    # The address is the operator's own.
    request = urllib.request.Request(  # noqa: S310
        f"{address.rstrip('/')}/v1/querybatch",
        json.dumps({"queries": queries}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
        results: list[dict[str, Any]] = json.loads(answer.read())["results"]
    if len(results) != len(packages):
        raise ValueError(f"{len(results)} answers to {len(packages)} questions")
    ids = [[str(each["id"]) for each in result.get("vulns", ())] for result in results]
    return [(package, found) for package, found in zip(packages, ids, strict=True) if found]


def main(locks: list[str]) -> int:
    """The exit code."""
    unique = {each.purl: each for lock in locks for each in packages_of(Path(lock))}
    packages = list(unique.values())
    try:
        found = ask(os.environ.get("ADVISORIES_URL") or DATABASE, packages)
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = getattr(error, "reason", error)
        sys.stdout.write(
            f"{'!' * 79}\nADVISORIES NOT CHECKED: the database cannot be reached ({reason}).\n"
            f"Run make advisories on a machine that can reach it before a release.\n{'!' * 79}\n"
        )
        return 0
    wrong = [(package, left) for package, ids in found if (left := [each for each in ids if each not in ACCEPTED])]
    for package, ids in wrong:
        sys.stdout.write(f"{package.name} {package.version}: {', '.join(ids)}\n")
    if wrong:
        sys.stdout.write(
            "Raise these versions (make lock), or accept an advisory in .ci/advisories.py with its reason.\n"
        )
        return 1
    sys.stdout.write(f"no advisory concerns the {len(packages)} packages of {', '.join(locks)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
