"""The SDK's low-level server, loaded without the parts of the SDK that a server on standard input never uses.

The code of the SDK's packages imports its client and its high-level server, which are 12 MB and a third of its loading time.
Here that code runs when one of the packages' own names is first used, such as `mcp.Client`; modules inside the packages
load as always.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any


def _postpone(name: str) -> None:
    """Register a package whose code runs when one of its own names is first used."""
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return  # the import below raises an error that names the missing package
    package, loader = importlib.util.module_from_spec(spec), spec.loader

    def load(attribute: str) -> Any:
        """Returns a module inside the package, or a name that the package's code defines."""
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        if importlib.util.find_spec(f"{name}.{attribute}"):
            return importlib.import_module(f"{name}.{attribute}")
        vars(package).pop("__getattr__", None)
        loader.exec_module(package)
        return getattr(package, attribute)

    vars(package)["__getattr__"] = load
    sys.modules[name] = package
    parent, _, child = name.rpartition(".")
    if isinstance(above := sys.modules.get(parent), ModuleType):
        setattr(above, child, package)


for _name in ("mcp", "mcp.server", "mcp.server.lowlevel"):
    _postpone(_name)

import mcp_types as types  # noqa: E402
from mcp.server.context import ServerRequestContext  # noqa: E402
from mcp.server.lowlevel.server import Server  # noqa: E402
from mcp.shared.exceptions import MCPError  # noqa: E402
from mcp.shared.message import SessionMessage  # noqa: E402
from mcp_types.version import MODERN_PROTOCOL_VERSIONS  # noqa: E402

__all__ = [
    "MODERN_PROTOCOL_VERSIONS",
    "MCPError",
    "Server",
    "ServerRequestContext",
    "SessionMessage",
    "types",
]
