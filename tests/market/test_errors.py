"""The exception tree that `market/errors.py` draws is the one that the package defines."""

from __future__ import annotations

import importlib
import pkgutil
import re

import openbell
from openbell.market import errors
from openbell.market.errors import OpenbellError

_LINE = re.compile(r"(?P<branch>[│├└─ ]*)(?P<name>[A-Z]\w+)(?: \[(?P<room>\w+)\])?(?: {2,}(?P<meaning>\S.*))?")
_INDENT = 4

Tree = dict[str, tuple[str, str]]
"""For each class the name of its parent and of the room that defines it."""


def _drawing() -> str:
    assert errors.__doc__
    return next(part for part in errors.__doc__.split("\n\n") if part.startswith(OpenbellError.__name__))


def _drawn() -> list[tuple[int, re.Match[str]]]:
    """The lines of the drawing, each with its depth in the tree."""
    lines = [_LINE.fullmatch(line) for line in _drawing().splitlines()]
    assert all(lines), "a line of the drawing has another form"
    return [(len(line["branch"]) // _INDENT, line) for line in lines if line]


def _drawn_tree() -> Tree:
    tree: Tree = {}
    ancestors: list[str] = []
    for depth, line in _drawn():
        ancestors[depth:] = [line["name"]]
        if depth:
            assert line["name"] not in tree, f"{line['name']} is drawn twice"
            tree[line["name"]] = (ancestors[depth - 1], line["room"] or "market")
    return tree


def _defined_tree() -> Tree:
    for module in pkgutil.walk_packages(openbell.__path__, f"{openbell.__name__}."):
        importlib.import_module(module.name)
    tree: Tree = {}
    parents: list[type[OpenbellError]] = [OpenbellError]
    for parent in parents:
        for child in parent.__subclasses__():
            package, room, *_ = child.__module__.split(".")
            if package == openbell.__name__:
                assert child.__name__ not in tree, f"two classes are named {child.__name__}"
                tree[child.__name__] = (parent.__name__, room)
                parents.append(child)
    return tree


def test_the_drawing_shows_every_error_under_its_parent_with_the_room_that_defines_it() -> None:
    assert _drawn_tree() == _defined_tree()


def test_every_error_in_the_drawing_has_a_meaning() -> None:
    assert [line["name"] for depth, line in _drawn() if depth and not line["meaning"]] == []


def test_the_branches_of_the_drawing_follow_from_its_depths() -> None:
    """The last child has `└──`, its siblings `├──`, and a bar runs from each child to the next one."""
    depths = [depth for depth, _ in _drawn()]
    for row, (depth, line) in enumerate(_drawn()):
        following = depths[row + 1 :]
        branch = ""
        for level in range(1, depth + 1):
            another_child = next((each for each in following if each <= level), 0) == level
            if level == depth:
                branch += "├── " if another_child else "└── "
            else:
                branch += "│   " if another_child else "    "
        assert line["branch"] == branch, line["name"]
