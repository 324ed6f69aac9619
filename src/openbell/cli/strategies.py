"""`openbell strategies`: canonical and submitted strategies, and spec files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openbell.cli.app import ReadOnly, fail, group, plain_errors, settings_for
from openbell.cli.spec_files import read_data, read_spec_file, spec_named, submitted_specs
from openbell.market.foreign_text import one_visible_line
from openbell.market.plural import counted

if TYPE_CHECKING:
    from openbell.desk.research.strategies.specs import KnownSpec
    from openbell.desk.settings import Settings
    from openbell.strategies.spec import Spec

strategies = group("strategies", "List and show strategies; check and submit spec files.")


@strategies.command("list")
def show_all() -> None:
    """Print the canonical strategies and those that you have submitted, one per line: name, complexity, description."""
    settings = settings_for()
    with plain_errors():
        found, own = list(_canonical().values()), [each.spec for each in submitted_specs(settings)]
    width = max(len(each.name) for each in (*found, *own))
    for spec in found:
        _print_line(spec, width)
    if own:
        typer.echo("\nsubmitted:")
    for spec in own:
        _print_line(spec, width)


def _print_line(spec: Spec, width: int) -> None:
    typer.echo(f"{spec.name:{width}}  {spec.complexity.lower():7}  {one_visible_line(spec.description)}")


@strategies.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A canonical or submitted strategy: MACD_CROSSOVER.")],
) -> None:
    """Print one strategy as YAML, as it can be changed and checked."""
    from openbell.desk.research.strategies.specs import canonical_named
    from openbell.strategies.library import text_of
    from openbell.strategies.writing import write_spec
    from openbell.strategies.yaml_text import write_yaml

    settings = settings_for()
    with plain_errors():
        if found := canonical_named(name):
            text = text_of(found.name)
        else:
            text = write_yaml(write_spec(spec_named(settings, name).spec))
    typer.echo(text.rstrip())


@strategies.command("check")
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Spec files (.yaml or .json).")],
) -> None:
    """Check spec files, and print every problem with its place. Exits with 1 if a file has one.

    A name that is taken is a warning: such a file can be traded, but not submitted.
    """
    settings = settings_for()
    read = {file: _read(file) for file in files}
    with plain_errors():
        own = {each.spec.name for each in submitted_specs(settings)} if any(read.values()) else set()
    for file, spec in read.items():
        if spec is None:
            continue
        parts = f"{counted(len(spec.indicators), 'indicator')}, {counted(len(spec.parameters), 'parameter')}"
        typer.echo(f"{file}: {spec.name} is valid ({parts})")
        if spec.name in own or spec.name in _canonical():
            owner = "a spec that you have submitted" if spec.name in own else "a canonical spec"
            typer.echo(f"{file}: warning: the name {spec.name} is taken by {owner}: choose another one to submit it")
    if not all(read.values()):
        raise typer.Exit(1)


@strategies.command("submit")
def submit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A spec file (.yaml or .json).")],
    read_only: ReadOnly = False,
) -> None:
    """Check a spec file and record its spec for good, as submit_new_spec does; prints its id.

    The key `reasoning` of the file is recorded beside it. `openbell up` tries the spec on the watched symbols.
    """
    settings = settings_for(read_only=read_only)
    if settings.read_only:
        fail("a spec cannot be submitted: this desk is read-only (--read-only or OPENBELL_READ_ONLY)")
    if settings.other_clock:
        fail("a spec cannot be submitted: this desk shows another time than the present (OPENBELL_AS_OF)")
    if _read(file) is None:
        raise typer.Exit(1)
    with plain_errors():
        found = asyncio.run(_submit(settings, read_data(file)))
    typer.echo(f"{found.spec.name} is submitted as {found.id}")


async def _submit(settings: Settings, raw: dict[str, Any]) -> KnownSpec:
    from openbell.desk.desk import Desk
    from openbell.desk.orders.decisions import LONGEST_REASONING
    from openbell.desk.settings.principals import OPERATOR
    from openbell.protocol.argument_limits import require_storable

    reasoning = raw.pop("reasoning", None) or ""
    if not isinstance(reasoning, str) or len(reasoning) > LONGEST_REASONING:
        fail(f"reasoning must be a text of at most {LONGEST_REASONING:,} characters")
    require_storable(reasoning, "the spec", raw)
    async with Desk(settings) as desk:
        return await desk.strategies.catalogue.submit(OPERATOR, raw, reasoning)


def _read(file: Path) -> Spec | None:
    """Returns the spec of a file; None, after printing every problem, if it has any."""
    from openbell.strategies.errors import SpecRefused

    try:
        return read_spec_file(file)
    except SpecRefused as refused:
        for problem in refused.problems:
            typer.echo(f"{file}: {problem}")
        return None


def _canonical() -> dict[str, Spec]:
    from openbell.strategies.library import canonical

    return canonical()
