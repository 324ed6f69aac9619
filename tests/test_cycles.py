"""The imports between the modules of the project: no module imports itself through others, not even for its types."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import openbell

SOURCE = Path(openbell.__file__).parent


def test_no_module_imports_itself_through_others() -> None:
    assert cycle(imports_of(modules())) is None


def test_a_cycle_is_found_however_a_module_is_imported(tmp_path: Path) -> None:
    texts = {
        "a": "from p import b",
        "b": "def f():\n    import p.c",
        "c": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import A",
        "d": "from p.a import b",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    graph = imports_of({f"p.{name}": tmp_path / f"{name}.py" for name in texts})
    assert graph["p.d"] == {"p.a"}
    assert set(cycle(graph) or ()) == {"p.a", "p.b", "p.c"}
    assert cycle({**graph, "p.c": set()}) is None


def modules() -> dict[str, Path]:
    """Returns the file of every module of the project by the module's name."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = ("openbell", *path.relative_to(SOURCE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(files: Mapping[str, Path]) -> dict[str, set[str]]:
    """Returns which of these modules each of them imports: at its top, in its functions, or for its types."""
    return {
        module: {name for name in _imported(ast.parse(path.read_text()), files) if name != module}
        for module, path in files.items()
    }


def _imported(tree: ast.Module, known: Iterable[str]) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in known)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            assert node.level == 0, "imports are absolute"
            for each in node.names:
                name = f"{node.module}.{each.name}"
                if name in known:
                    yield name
                elif node.module in known:
                    yield node.module


def cycle(graph: Mapping[str, set[str]]) -> list[str] | None:
    """Returns the modules of one cycle; None if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return None
