"""`openbell strategies`: the canonical strategies, and checks of spec files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import app, fail, plain_errors
from openbell.cli.spec_files import read_spec_file

if TYPE_CHECKING:
    from openbell.strategies.spec import Spec

strategies = typer.Typer(help="List and show strategies, and check spec files.", no_args_is_help=True)
app.add_typer(strategies, name="strategies")


@strategies.command("list")
def show_all() -> None:
    """Print the canonical strategies, one per line: name, complexity and description."""
    with plain_errors():
        found = _canonical()
    width = max(map(len, found))
    for name, spec in found.items():
        typer.echo(f"{name:{width}}  {spec.complexity.lower():7}  {spec.description}")


@strategies.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The strategy: MACD_CROSSOVER.")],
) -> None:
    """Print one canonical strategy as YAML, as it can be changed and checked."""
    from openbell.market.nearest import did_you_mean
    from openbell.strategies.library import text_of

    found = _canonical()
    if name.upper() not in found:
        fail(f"no strategy {name[:80]!r}{did_you_mean(name, found) or '; openbell strategies list has them all'}")
    typer.echo(text_of(name.upper()).rstrip())


@strategies.command("check")
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Spec files (.yaml or .json).")],
) -> None:
    """Check spec files, and print every problem with its place. Exits with 1 if a file has one."""
    from openbell.strategies.errors import SpecRefused

    bad = False
    for file in files:
        try:
            spec = read_spec_file(file)
        except SpecRefused as refused:
            bad = True
            for problem in refused.problems:
                typer.echo(f"{file}: {problem}")
        else:
            counted = f"{len(spec.indicators)} indicators, {len(spec.parameters)} parameters"
            typer.echo(f"{file}: {spec.name} is valid ({counted})")
    if bad:
        raise typer.Exit(1)


def _canonical() -> dict[str, Spec]:
    from openbell.strategies.library import canonical

    return canonical()
