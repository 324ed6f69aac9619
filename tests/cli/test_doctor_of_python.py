"""`openbell doctor` names the known holes of the Python that runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from openbell.cli.service_checks import holes
from tests.client import run


@pytest.mark.parametrize(
    ("minor", "patch", "names"),
    [
        (11, 9, {"CVE-2024-7592", "CVE-2024-4032", "CVE-2024-8088"}),
        (11, 10, set()),
        (12, 5, {"CVE-2024-7592", "CVE-2024-8088"}),
        (12, 6, set()),
        (13, 0, set()),
    ],
)
def test_each_patch_level_has_the_holes_that_were_mended_after_it(minor: int, patch: int, names: set[str]) -> None:
    assert {hole.name for hole in holes(minor, patch)} == names


def test_doctor_names_the_holes_of_this_python_and_the_version_without_them(tmp_path: Path) -> None:
    printed = run(tmp_path, "doctor").stdout
    for hole in holes(*sys.version_info[1:3]):
        assert hole.name in printed
        assert f"install Python 3.{sys.version_info[1]}." in printed
    assert holes(*sys.version_info[1:3]) or "known holes" not in printed
