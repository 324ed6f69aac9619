"""TA-Lib, loaded without pandas and polars.

TA-Lib imports them where they are installed (0.3 s), and then looks for their series in the arguments of every call.
"""

from __future__ import annotations

import sys
from typing import Any

_modules: dict[str, Any] = sys.modules
_hidden = [name for name in ("pandas", "polars") if name not in _modules]
# Python refuses to import a module that is None here.
_modules.update(dict.fromkeys(_hidden))
try:
    import talib
finally:
    for _name in _hidden:
        del _modules[_name]

__all__ = ["talib"]
