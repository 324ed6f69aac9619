"""What `openbell doctor` finds, and how it prints it: findings with one cause together, with the command that mends them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from openbell.market.foreign_text import one_visible_line

_NAMED = 10
"""The number of symbols or findings of one kind that are listed."""
_INDENT = " " * 6
IMPORT = "openbell import FILE --symbol S"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    state: str
    """ok, note or bad."""
    text: str
    mend: str = ""
    """The command or the step that mends it; findings with the same one are printed together."""
    cause: str = ""
    """What several checks run into; only the first finding of a cause is printed."""


def named(names: Iterable[object]) -> str:
    """Returns the first names of a list, and how many more there are."""
    found = [str(each) for each in names]
    return ", ".join(found[:_NAMED]) + (f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else "")


def grouped(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Returns findings in groups of one state and mend, what is bad first; each text and each cause once."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    seen: set[str] = set()
    for finding in findings:
        if (finding.cause or finding.text) not in seen:
            seen.add(finding.cause or finding.text)
            own = finding.mend or finding.text
            groups.setdefault((finding.state, own), []).append(finding)
    return sorted(groups.values(), key=lambda group: group[0].state != "bad")


def lines_of(group: Sequence[Finding]) -> list[str]:
    """Returns the lines of a group: its findings, and at the end how they are mended."""
    lines = [f"{finding.state:4}  {one_visible_line(finding.text)}" for finding in group[:_NAMED]]
    if len(group) > _NAMED:
        lines.append(f"{group[0].state:4}  and {len(group) - _NAMED:,} more of that kind")
    return [*lines, *([f"{_INDENT}→ {group[0].mend}"] if group[0].mend else [])]
