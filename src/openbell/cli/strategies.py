"""`openbell strategies`: the canonical strategies, and checks of spec files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import app, plain_errors, settings_for
from openbell.cli.spec_files import read_spec_file, spec_named, submitted_specs

if TYPE_CHECKING:
    from openbell.strategies.spec import Spec

strategies = typer.Typer(help="List and show strategies, and check spec files.", no_args_is_help=True)
app.add_typer(strategies, name="strategies")


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
    typer.echo(f"{spec.name:{width}}  {spec.complexity.lower():7}  {spec.description}")


@strategies.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A canonical or submitted strategy: MACD_CROSSOVER.")],
) -> None:
    """Print one strategy as YAML, as it can be changed and checked."""
    from openbell.desk.strategies.specs import canonical_named
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
