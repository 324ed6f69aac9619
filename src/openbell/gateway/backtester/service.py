"""The gRPC server of the backtester, with health checks and reflection."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openbell.backtest.wire.limits import (
    KEEPALIVE_INTERVAL,
    KEEPALIVE_TIMEOUT,
    LEAST_KEEPALIVE,
    MEGABYTE,
    SERVICE,
    USUAL_MESSAGE_MB,
)
from openbell.gateway.backtester.worker import FrameKind
from openbell.gateway.backtester.workers import BacktestProcesses, Busy, NotReceived, WorkerEnded
from openbell.market.errors import Refused, SettingsError

LONGEST = 3600.0
"""Seconds that a run may take; less if the client sets a deadline."""
DRAIN = 30.0
"""Seconds that runs have to finish when the service is stopped."""
_BESIDES = 64
"""Calls of health checks and reflection that are accepted beside runs."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM form."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
    """Clients need a certificate that this authority has signed."""


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """How the service is run."""

    host: str = "127.0.0.1"
    port: int = 50051
    """0: any free port."""
    workers: int = 1
    tls: Tls | None = None
    message_mb: int = USUAL_MESSAGE_MB
    """The most megabytes of a request and of a response."""

    @property
    def most_waiting(self) -> int:
        """Requests that may wait for a worker; more are refused."""
        return 4 * self.workers


async def serve(options: ServiceOptions, stop: asyncio.Event, on_ready: Callable[[str], None]) -> None:
    """Serve until `stop` is set, then finish running calls. Set twice (cleared in between), it ends them at once.

    `on_ready` is called with the address. Raises `Refused` if the service cannot listen there.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # failures are raised; its log would repeat them on standard error
    import grpc
    from grpc_health.v1 import health, health_pb2, health_pb2_grpc
    from grpc_reflection.v1alpha import reflection

    workers = BacktestProcesses(options.workers, options.most_waiting, options.message_mb)
    most = options.workers + options.most_waiting + _BESIDES
    server = grpc.aio.server(options=_server_options(options.message_mb * MEGABYTE), maximum_concurrent_rpcs=most)
    server.add_generic_rpc_handlers((_handlers(workers),))
    checks = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    port = _bound(server, options)
    try:
        await workers.start()
        await server.start()
        for name in ("", SERVICE):
            await checks.set(name, health_pb2.HealthCheckResponse.SERVING)
        on_ready(f"{options.host}:{port}")
        await stop.wait()
        stop.clear()
        await checks.enter_graceful_shutdown()
        draining = asyncio.create_task(server.stop(DRAIN))
        again = asyncio.create_task(stop.wait())
        await asyncio.wait({draining, again}, return_when=asyncio.FIRST_COMPLETED)
        again.cancel()
    finally:
        await server.stop(0)
        await workers.close()


def _server_options(most_message: int) -> list[tuple[str, int]]:
    return [
        ("grpc.so_reuseport", 0),  # a second service on the same port must fail, not share it
        ("grpc.max_receive_message_length", most_message),
        ("grpc.max_send_message_length", most_message),
        ("grpc.keepalive_time_ms", int(KEEPALIVE_INTERVAL * 1000)),
        ("grpc.keepalive_timeout_ms", int(KEEPALIVE_TIMEOUT * 1000)),
        ("grpc.http2.ping_timeout_ms", int(KEEPALIVE_TIMEOUT * 1000)),  # 60 s otherwise, whatever keepalive says
        ("grpc.keepalive_permit_without_calls", 1),
        # Clients that ping more often are disconnected. By default that is every 300 s.
        ("grpc.http2.min_ping_interval_without_data_ms", int(LEAST_KEEPALIVE * 1000)),
    ]


def _bound(server: Any, options: ServiceOptions) -> int:
    """Returns the port that the server listens on. Raises `Refused`."""
    address = f"{options.host}:{options.port}"
    try:
        if options.tls:
            return int(server.add_secure_port(address, _credentials(options.tls)))
        return int(server.add_insecure_port(address))
    except RuntimeError:
        raise Refused(f"cannot listen on {address}: another program may use the port, choose one with --port") from None


def _credentials(tls: Tls) -> Any:
    import grpc

    try:
        key, certificate = tls.key.read_bytes(), tls.certificate.read_bytes()
        authority = tls.client_ca.read_bytes() if tls.client_ca else None
    except OSError as error:
        raise SettingsError(f"cannot read {error.filename}: {error.strerror}") from None
    return grpc.ssl_server_credentials([(key, certificate)], authority, require_client_auth=authority is not None)


def _handlers(workers: BacktestProcesses) -> Any:
    """Returns the handlers of all methods. They pass bytes on: workers read requests and write responses.

    To gRPC they are handlers of streams, because those receive the request when they ask for it: what is refused or
    has to wait for a worker is not in memory.
    """
    import grpc

    from openbell.backtest.wire.methods import METHODS

    def handler(method: str) -> Callable[[Any, Any], Awaitable[None]]:
        async def handle(_requests: Any, context: Any) -> None:
            async def receive() -> bytes:
                received = await context.read()
                if received is grpc.aio.EOF:
                    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "there is no request")
                return bytes(received)

            remaining = context.time_remaining()
            limit = LONGEST if remaining is None else min(LONGEST, remaining)
            try:
                async with asyncio.timeout(limit), aclosing(workers.answers(method, receive)) as answers:
                    async for kind, content in answers:
                        if kind is FrameKind.ERROR:
                            status, _, message = content.decode().partition("\n")
                            await context.abort(grpc.StatusCode[status], message)
                        await context.write(content)
            except TimeoutError:
                await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, f"the run took longer than {limit:.0f} s")
            except Busy:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "all workers are busy: retry later")
            except NotReceived as late:
                await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, str(late))
            except WorkerEnded:
                await context.abort(grpc.StatusCode.INTERNAL, "the worker process ended in the middle of the run")

        return handle

    return grpc.method_handlers_generic_handler(
        SERVICE, {name: grpc.stream_stream_rpc_method_handler(handler(name)) for name in METHODS}
    )
