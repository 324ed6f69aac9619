"""Opening the records loads only what their database needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

OPENS = """
import sys
from openbell.desk.desk import Desk
from openbell.desk.settings import load
desk = Desk(load({"OPENBELL_HOME": sys.argv[1], "OPENBELL_FEED": "none", "OPENBELL_TRADE": "1"}))
desk.trading.records
print([name for name in sys.modules if name == "asyncpg" or name.endswith("records.postgres")])
"""


def test_a_desk_on_sqlite_loads_nothing_of_postgresql(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", OPENS, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
