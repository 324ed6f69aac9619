"""`openbell backtester`: the gRPC backtester as a process of its own."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.backtest.wire.limits import MOST_MESSAGE_MB, USUAL_MESSAGE_MB
from openbell.cli.app import app, fail, plain_errors, service_settings
from openbell.cli.shutdown import on_stop
from openbell.market.plural import counted

if TYPE_CHECKING:
    from openbell.gateway.backtester.service import ServiceOptions


@app.command("backtester")
def backtester(
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0: any free one.")] = 50051,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, max=256, help="Processes that compute; by default one per core.")
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option("--tls-cert", metavar="FILE", help="The certificate for TLS (PEM).")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="Its key (PEM).")] = None,
    tls_client_ca: Annotated[
        Path | None,
        typer.Option(
            "--tls-client-ca", metavar="FILE", help="Accept only clients with a certificate of this CA (PEM)."
        ),
    ] = None,
    max_message_mb: Annotated[
        int,
        typer.Option(
            "--max-message-mb", min=1, max=MOST_MESSAGE_MB, help="The most megabytes of a request and of a result."
        ),
    ] = USUAL_MESSAGE_MB,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen on another address than this machine's own without TLS.")
    ] = False,
) -> None:
    """Serve backtests over gRPC, for desks with OPENBELL_BACKTESTER=HOST:PORT.

    It needs no data: requests carry the bars. Ctrl-C lets running backtests finish; a second one ends them.

    \b
    Example:
      openbell backtester --port 50051 --workers 4
    """  # noqa: D301 (click reads the backspace)
    service_settings()
    if bool(tls_cert) != bool(tls_key) or (tls_client_ca and not tls_cert):
        fail("TLS needs --tls-cert and --tls-key")
    with plain_errors():
        from openbell.gateway.backtester.service import ServiceOptions, Tls
        from openbell.net.addresses import is_loopback

        tls = Tls(tls_cert, tls_key, tls_client_ca) if tls_cert and tls_key else None
        is_local = is_loopback(host.strip("[]"))
        if not is_local and tls is None and not insecure:
            fail(
                f"without TLS, anyone who can reach {host} can read bars and run backtests: use --tls-cert and --tls-key "
                "(and --tls-client-ca), or --insecure if the network protects it"
            )
        if not is_local and not tls_client_ca:
            typer.echo(f"Anyone who can reach {host} can run backtests: --tls-client-ca restricts it.", err=True)
        asyncio.run(_serve(ServiceOptions(host, port, workers or os.cpu_count() or 1, tls, max_message_mb)))


async def _serve(options: ServiceOptions) -> None:
    from openbell.gateway.backtester.service import serve

    stop = asyncio.Event()
    on_stop(stop.set)

    def ready(address: str) -> None:
        kind = "TLS" if options.tls else "no TLS"
        typer.echo(f"backtester listens on {address} ({counted(options.workers, 'worker')}, {kind})")

    await serve(options, stop, ready)
    typer.echo("backtester stopped")
