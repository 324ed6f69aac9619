"""What a server loads of its dependencies: only what it uses, and nothing that is left out is broken by that."""

from __future__ import annotations

import subprocess
import sys


def printed(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_a_server_loads_neither_the_sdks_client_nor_its_high_level_server() -> None:
    code = (
        "import sys, openbell.protocol.server, openbell.protocol.stdio; "
        "print([name for name in ('mcp.client', 'mcp.server.mcpserver', 'httpx2') if name in sys.modules])"
    )
    assert printed(code) == "[]"


def test_the_names_of_the_sdks_packages_are_there_when_they_are_used() -> None:
    code = (
        "from openbell.protocol.sdk import Server\n"
        "import mcp, mcp.server, mcp.server.lowlevel\n"
        "from mcp import Client, types\n"
        "from mcp.client.stdio import stdio_client\n"
        "assert mcp.server.Server is mcp.server.lowlevel.Server is Server\n"
        "assert mcp.types is types and mcp.stdio_client is stdio_client\n"
        "try:\n"
        "    mcp.server.nothing\n"
        "except AttributeError as error:\n"
        "    print(Client.__name__, mcp.server.MCPServer.__name__, error)\n"
    )
    assert printed(code) == "Client MCPServer module 'mcp.server' has no attribute 'nothing'"


def test_the_sdk_may_be_there_already() -> None:
    code = "import mcp.server; from openbell.protocol.sdk import Server; print(mcp.server.Server is Server)"
    assert printed(code) == "True"


def test_the_bar_store_reads_parquet_without_remote_file_systems() -> None:
    code = (
        "import sys, openbell.stores.parquet.store; from pyarrow import fs; "
        "print(sys.modules['pyarrow._s3fs'], fs.LocalFileSystem.__name__)"
    )
    assert printed(code) == "None LocalFileSystem"


def test_no_command_loads_what_only_some_need() -> None:
    heavy = ("sqlalchemy", "numpy", "pyarrow", "mcp", "rich", "asyncpg", "grpc", "google.protobuf")
    code = f"import sys, openbell.cli.commands; print([name for name in {heavy} if name in sys.modules])"
    assert printed(code) == "[]"


def test_a_server_and_a_backtest_in_this_process_load_neither_grpc_nor_protobuf() -> None:
    code = (
        "import asyncio, sys, tempfile\n"
        "from openbell.desk.desk import Desk\n"
        "from openbell.desk.settings import load\n"
        "from openbell.backtest.rules import Setup\n"
        "from openbell.market.series import Series\n"
        "from openbell.market.timeframes import Timeframe\n"
        "from openbell.strategies.compiled import compiled\n"
        "from openbell.strategies.library import canonical\n"
        "import openbell.protocol.server, openbell.protocol.stdio\n"
        "from openbell.servers import NAMES, load as server\n"
        "for name in NAMES: server(name)\n"
        "async def main():\n"
        "    async with Desk(load({'OPENBELL_HOME': tempfile.mkdtemp()}, as_of='2026-03-02')) as desk:\n"
        "        series = Series(await desk.bars.find('BTC/USD'), Timeframe.D1)\n"
        "        found = await desk.backtests.run(compiled(canonical()['RVI']), series, Setup())\n"
        "        print(len(found.bars), [name for name in ('grpc', 'google.protobuf') if name in sys.modules])\n"
        "asyncio.run(main())\n"
    )
    assert printed(code) == "1250 []"


def test_indicators_do_not_load_pandas_and_leave_it_usable() -> None:
    code = (
        "import sys, numpy as np\n"
        "from openbell.indicators.averages import ema\n"
        "assert np.isfinite(ema(np.arange(30.0), 9)[-1])\n"
        "print('pandas' in sys.modules)\n"
        "import pandas\n"
        "print(pandas.Series([1.0]).sum())\n"
    )
    assert printed(code) == "False\n1.0"


def test_the_bar_store_writes_and_reads_without_pandas() -> None:
    code = (
        "import sys, tempfile, numpy as np\n"
        "from pathlib import Path\n"
        "from openbell.market.bars import make\n"
        "from openbell.market.instruments import parse\n"
        "from openbell.market.provenance import Origin, Source\n"
        "from openbell.market.timeframes import Timeframe\n"
        "from openbell.stores.parquet.store import ParquetStore\n"
        "days = make(parse('BTC/USD'), Timeframe.D1, np.arange(800, 809) * 86400, *np.ones((5, 9)))\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    store = ParquetStore(Path(folder))\n"
        "    store.write([days], Source(Origin.IMPORTED, 'import'))\n"
        "    print(len(store.tail(days.series, 5, 2**40)), store.count(days.series, Timeframe.W1, 2**40))\n"
        "    store.close()\n"
        "print('pandas' in sys.modules)\n"
    )
    assert printed(code) == "5 2\nFalse"
