"""The gRPC backtester as a real process on a real socket: equal answers, limits, and what happens when something ends."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import grpc
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from openbell.backtest.errors import BacktesterUnavailable, BacktestTimeout
from openbell.backtest.jobs import BacktestJob, WalkForwardJob
from openbell.backtest.walk_forward import Windows
from openbell.backtest.wire import backtester_pb2
from openbell.backtest.wire.limits import MEGABYTE, SERVICE, USUAL_MESSAGE_MB
from openbell.backtest.wire.methods import METHODS
from openbell.desk.research.backtester import GrpcBacktester
from openbell.desk.settings import Settings, load
from openbell.market.errors import DataError, InvalidParameter
from openbell.stores.threads import CALLER
from openbell.strategies.compiled import compiled
from tests.backtest.sample_jobs import BARS, COMBINATIONS, SETUP, SPEC, image, jobs
from tests.client import run
from tests.gateway.services import Authority, Service, ended, free_port, long_job
from tests.strategies.specs import walk
from tests.waiting import until, wait_for

T = TypeVar("T")
JOBS = jobs()
SHORT = JOBS["backtest"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for all tests that leave it as it is."""
    with Service(tmp_path_factory.mktemp("home")) as made:
        yield made


def using(service: Service, work: Callable[[GrpcBacktester], Awaitable[T]], **settings: Any) -> T:
    """The result of work with a client."""

    async def main() -> T:
        client = GrpcBacktester(service.settings(**settings))
        try:
            async with asyncio.timeout(60):
                return await work(client)
        finally:
            await client.close()

    return asyncio.run(main())


def status_of(service: Service, method: str, request: bytes) -> tuple[grpc.StatusCode, str]:
    """The status with which the service refuses a request."""
    with grpc.insecure_channel(service.address, [("grpc.max_send_message_length", -1)]) as channel:
        call = channel.unary_stream(f"/{SERVICE}/{method}")(request, timeout=30)
        with pytest.raises(grpc.RpcError) as caught:
            list(call)
    return caught.value.code(), caught.value.details()


async def refused(service: Service) -> None:
    """Wait until the service, whose worker is busy, refuses new calls."""
    client = GrpcBacktester(service.settings(pool_backtester_connect=0.3, backtest_timeout=0.3))
    with suppress(BacktesterUnavailable):
        while True:
            with suppress(BacktestTimeout):  # it still accepts calls, which wait for the worker
                await client.run(SHORT)
    await client.close()


# Answers


def test_every_kind_of_job_has_the_same_result_as_in_this_process_to_the_bit(service: Service) -> None:
    async def work(client: GrpcBacktester) -> dict[str, Any]:
        return {name: await client.run(job) for name, job in JOBS.items()}

    for name, result in using(service, work).items():
        assert image(result) == image(JOBS[name].run()), name


def test_progress_arrives_before_the_result(service: Service) -> None:
    seen: list[tuple[int, int]] = []
    job = WalkForwardJob(SPEC, BARS, COMBINATIONS * 100, SETUP, Windows(500, 100))
    using(service, lambda client: client.run(job, lambda *each: seen.append(each)))
    assert seen
    assert seen == sorted(seen)
    assert {total for _, total in seen} == {400 + 10 * 401}


def test_many_jobs_at_once_use_at_most_three_connections(service: Service) -> None:
    async def work(client: GrpcBacktester) -> tuple[list[Any], int]:
        most = 0

        async def watched(name: str) -> Any:
            nonlocal most
            result = await client.run(JOBS[name])
            most = max(most, service.connections())
            return result

        await until(lambda: not service.connections(), "connections of other tests to close")
        return await asyncio.gather(*(watched(name) for name in ["backtest", "portfolio", "monte carlo"] * 3)), most

    results, most = using(service, work)
    assert 1 <= most <= 3
    assert [image(each) for each in results[:3]] == [image(each) for each in results[3:6]]


def test_health_is_reported_for_the_server_and_the_service(service: Service) -> None:
    with grpc.insecure_channel(service.address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for name in ("", SERVICE):
            answer = stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=30)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(grpc.RpcError) as caught:
            stub.Check(health_pb2.HealthCheckRequest(service="other"), timeout=30)
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_reflection_describes_the_service(service: Service) -> None:
    with grpc.insecure_channel(service.address) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        assert set(database.get_services()) >= {SERVICE, "grpc.health.v1.Health"}
        file = database.FindFileContainingSymbol(SERVICE)
    assert file.SerializeToString() == backtester_pb2.DESCRIPTOR.serialized_pb
    assert {each.name for each in file.service[0].method} == set(METHODS)


# Refusals


@pytest.mark.parametrize("method", METHODS)
def test_bytes_that_are_no_request_are_refused(service: Service, method: str) -> None:
    for request in (b"\xff" * 100, b""):
        status, message = status_of(service, method, request)
        assert status in {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION}
        assert message


def test_the_reason_of_a_refusal_arrives(service: Service) -> None:
    request = METHODS["RunBacktest"].to_request(SHORT)
    request.strategy.spec = '{"name": "x"}'
    status, message = status_of(service, "RunBacktest", request.SerializeToString())
    assert status is grpc.StatusCode.INVALID_ARGUMENT
    assert "indicators: must be a list" in message
    wrong = WalkForwardJob(SPEC, BARS, [{"other": 1}], SETUP, Windows(500, 100))
    with pytest.raises(InvalidParameter, match="no parameter 'other'"):
        using(service, lambda client: client.run(wrong))
    few = WalkForwardJob(SPEC, BARS, [{}], SETUP, Windows(5000, 100))
    with pytest.raises(DataError, match="1500 closed bars, 5100 needed"):
        using(service, lambda client: client.run(few))


def test_a_request_over_the_size_limit_is_refused_and_the_next_one_runs(service: Service) -> None:
    status, _ = status_of(service, "RunBacktest", bytes(USUAL_MESSAGE_MB * MEGABYTE + 1))
    assert status is grpc.StatusCode.RESOURCE_EXHAUSTED
    # Seven million empty parts are 14 MB.
    status, _ = status_of(service, "RunPortfolio", b"\x0a\x00" * 7_000_000)
    assert status is grpc.StatusCode.INVALID_ARGUMENT
    assert image(using(service, lambda client: client.run(SHORT))) == image(SHORT.run())


def test_requests_and_results_have_at_most_16_megabytes_by_default(service: Service) -> None:
    assert Settings().backtester_message_mb == USUAL_MESSAGE_MB == 16
    status, _ = status_of(service, "RunBacktest", bytes(16 * MEGABYTE))
    assert status is grpc.StatusCode.INVALID_ARGUMENT, "it is no request, but was decoded"
    status, message = status_of(service, "RunBacktest", bytes(16 * MEGABYTE + 1))
    assert status is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "16777217 vs. 16777216" in message


def test_attack_many_large_requests_at_once_hold_little_memory_and_give_it_back(tmp_path: Path) -> None:
    """At most two are decoded at once, however many workers there are: decoded, one takes thirty times its size."""
    request = b"\x0a\x00" * (USUAL_MESSAGE_MB * MEGABYTE // 2 - 1024)  # empty parts, refused when they were decoded
    options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    with Service(tmp_path, workers=4) as own:
        process, workers = psutil.Process(own.process.pid), own.workers()

        def held() -> tuple[int, int]:
            """Bytes of the service, and of its workers."""
            return process.memory_info().rss, sum(each.memory_info().rss for each in workers)

        def most_held(requests: int) -> tuple[int, int]:
            """The most bytes that some requests at once take of each."""
            before, most = held(), (0, 0)
            channels = [grpc.insecure_channel(own.address, options) for _ in range(requests)]
            calls = [each.unary_stream(f"/{SERVICE}/RunPortfolio")(request, timeout=60) for each in channels]
            while not all(call.done() for call in calls):
                now = held()
                most = max(most[0], now[0]), max(most[1], now[1])
            assert {call.code() for call in calls} == {grpc.StatusCode.INVALID_ARGUMENT}
            for each in channels:
                each.close()
            return most[0] - before[0], most[1] - before[1]

        _, one = most_held(1)
        assert one > 10 * len(request), "one request is seen while it is decoded"
        before = held()
        service, decoded = most_held(8)
        assert decoded < 2.5 * one, f"{decoded / MEGABYTE:.0f} MB, one takes {one / MEGABYTE:.0f} MB"
        assert service < 12 * len(request), f"{service / MEGABYTE:.0f} MB"
        wait_for(lambda: held()[0] - before[0] < 3 * len(request), "the memory of the service to be returned")
        wait_for(lambda: held()[1] - before[1] < one / 2, "the memory of the workers to be returned")


def test_attack_a_compressed_request_is_not_unpacked_beyond_the_limit(tmp_path: Path) -> None:
    """A quarter of a megabyte that would be 256 MB in memory."""
    with Service(tmp_path, workers=1) as own:
        process = psutil.Process(own.process.pid)
        before, most = process.memory_info().rss, 0
        with grpc.insecure_channel(own.address, [("grpc.max_send_message_length", -1)]) as channel:
            method = channel.unary_stream(f"/{SERVICE}/RunBacktest")
            call = method(bytes(256 * MEGABYTE), timeout=60, compression=grpc.Compression.Gzip)
            while not call.done():
                most = max(most, process.memory_info().rss)
            assert call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED, call.details()
        assert most - before < 4 * USUAL_MESSAGE_MB * MEGABYTE, f"{(most - before) / MEGABYTE:.0f} MB"
        assert image(using(own, lambda client: client.run(SHORT))) == image(SHORT.run())


def test_attack_a_service_that_others_reach_does_not_start_without_tls(tmp_path: Path) -> None:
    done = run(tmp_path, "backtester", "--host", "0.0.0.0", "--port", "0")
    assert (done.returncode, done.stdout) == (1, "")
    assert "without TLS, anyone who can reach 0.0.0.0" in done.stderr
    assert "--insecure" in done.stderr
    with Service(tmp_path, "--host", "0.0.0.0", "--insecure", workers=1) as own:
        assert "no TLS" in own.first_line


def test_other_methods_do_not_exist(service: Service) -> None:
    assert status_of(service, "Evaluate", b"1+1")[0] is grpc.StatusCode.UNIMPLEMENTED


def test_a_port_on_which_nothing_listens_is_unavailable(service: Service) -> None:
    settings = {"backtester": f"127.0.0.1:{free_port()}", "pool_backtester_connect": 0.5}
    with pytest.raises(BacktesterUnavailable, match="cannot connect to the backtester at"):
        using(service, lambda client: client.run(SHORT), **settings)


def test_a_port_on_which_something_else_listens_is_unavailable(service: Service) -> None:
    async def main() -> None:
        async def close(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(close, "127.0.0.1", 0) as other:
            address = f"127.0.0.1:{other.sockets[0].getsockname()[1]}"
            client = GrpcBacktester(service.settings(backtester=address, pool_backtester_connect=0.5))
            with pytest.raises(BacktesterUnavailable):
                await client.run(SHORT)
            await client.close()

    asyncio.run(main())


def test_a_second_service_on_the_same_port_is_refused(service: Service, tmp_path: Path) -> None:
    done = run(tmp_path, "backtester", "--port", service.address.rpartition(":")[2])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("openbell: cannot listen on 127.0.0.1:")
    assert len(done.stderr.splitlines()) == 1


def test_incomplete_tls_options_are_refused(tmp_path: Path) -> None:
    for words in (("--tls-cert", "a"), ("--tls-key", "a"), ("--tls-client-ca", "a")):
        assert "TLS needs --tls-cert and --tls-key" in run(tmp_path, "backtester", *words).stderr
    done = run(tmp_path, "backtester", "--port", "0", "--tls-cert", "/none", "--tls-key", "/none")
    assert (done.returncode, done.stderr) == (1, "openbell: cannot read /none: No such file or directory\n")


def test_a_run_that_does_not_fit_into_memory_fails_alone(tmp_path: Path) -> None:
    with Service(tmp_path, "--max-message-mb", "128", workers=1) as own:
        assert image(using(own, lambda client: client.run(SHORT))) == image(SHORT.run())  # loads the modules
        (worker,) = own.workers()
        used = worker.memory_info().vms
        large = METHODS["RunBacktest"].to_request(BacktestJob(compiled(SPEC), walk(1, 300_000))).SerializeToString()
        # Room for the request and its message, but not for the indicators.
        worker.rlimit(psutil.RLIMIT_AS, (used + 2 * len(large), used + 2 * len(large)))
        status, message = status_of(own, "RunBacktest", large)
        assert (status, message) == (
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "the run needs more than 4 GiB: use fewer bars",
        )
        assert image(using(own, lambda client: client.run(SHORT))) == image(SHORT.run())
        assert own.workers() == [worker], "it can be used again"
        # No room for the request: this worker ends, and another one runs it. Joined messages are one message.
        with grpc.insecure_channel(own.address) as channel:
            assert list(channel.unary_stream(f"/{SERVICE}/RunBacktest")(large * 7, timeout=60))
        wait_for(lambda: ended(worker), "the worker to end")


# Stopping work


def test_a_cancelled_job_stops_computing(tmp_path: Path) -> None:
    with Service(tmp_path, workers=1) as own:

        async def work(client: GrpcBacktester) -> Any:
            task = asyncio.create_task(client.run(long_job()))
            busy = await asyncio.to_thread(own.busy_worker)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await until(lambda: ended(busy), "the worker to end")
            return await client.run(SHORT)

        assert image(using(own, work)) == image(SHORT.run())
        assert len(own.workers()) == 1


def test_a_job_over_its_deadline_stops_computing(tmp_path: Path) -> None:
    with Service(tmp_path, workers=1) as own:

        async def work(client: GrpcBacktester) -> Any:
            began = time.monotonic()
            task = asyncio.create_task(client.run(long_job()))
            busy = await asyncio.to_thread(own.busy_worker)
            with pytest.raises(BacktestTimeout, match="longer than 2 s"):
                await task
            assert 2 <= time.monotonic() - began < 15
            await until(lambda: ended(busy), "the worker to end")
            return await client.run(SHORT)

        assert image(using(own, work, backtest_timeout=2)) == image(SHORT.run())


def test_a_client_that_ends_stops_its_job(tmp_path: Path) -> None:
    with Service(tmp_path, workers=1) as own:
        channel = grpc.insecure_channel(own.address)
        request = METHODS["RunWalkForward"].to_request(long_job()).SerializeToString()
        call = channel.unary_stream(f"/{SERVICE}/RunWalkForward")(request)
        busy = own.busy_worker()
        channel.close()
        wait_for(lambda: ended(busy), "the worker to end")
        with suppress(grpc.RpcError):
            list(call)


def test_requests_beyond_the_limit_are_refused_at_once_and_others_wait(tmp_path: Path) -> None:
    with Service(tmp_path, workers=1) as own:

        async def work(client: GrpcBacktester) -> None:
            running = []  # one runs, four wait; each of another principal, because one may not send so many at once
            for number in range(5):
                CALLER.set(f"principal {number}")
                running.append(asyncio.create_task(client.run(long_job())))
            CALLER.set("another")
            await asyncio.to_thread(own.busy_worker)

            async def accepted() -> Any:
                while True:
                    with suppress(BacktesterUnavailable):
                        return await client.run(SHORT)

            with pytest.raises(BacktesterUnavailable, match="all workers are busy"):
                while True:  # until all five have arrived
                    with suppress(TimeoutError):
                        async with asyncio.timeout(0.3):
                            await client.run(SHORT)
            for task in running[1:]:
                task.cancel()
            waiting = asyncio.create_task(accepted())
            running[0].cancel()
            assert image(await waiting) == image(SHORT.run())
            await asyncio.gather(*running, return_exceptions=True)

        using(own, work)


# Ends


def test_a_service_that_is_killed_in_the_middle_is_unavailable_and_leaves_no_worker(tmp_path: Path) -> None:
    with Service(tmp_path, workers=1) as own:

        async def work(client: GrpcBacktester) -> None:
            task = asyncio.create_task(client.run(long_job()))
            busy = await asyncio.to_thread(own.busy_worker)
            own.process.kill()
            with pytest.raises(BacktesterUnavailable, match=own.address):
                await task
            await until(lambda: ended(busy), "the worker to end")

        using(own, work)


def test_a_service_that_no_longer_answers_pings_is_unavailable(tmp_path: Path) -> None:
    with Service(tmp_path, workers=1) as own:

        async def work(client: GrpcBacktester) -> float:
            task = asyncio.create_task(client.run(long_job()))
            await asyncio.to_thread(own.busy_worker)
            own.process.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            with pytest.raises(BacktesterUnavailable, match="ping timeout"):
                await task
            own.process.send_signal(signal.SIGCONT)
            return time.monotonic() - began

        assert using(own, work, pool_backtester_keepalive=1, pool_backtester_keepalive_timeout=1) < 20


def test_a_request_that_was_sent_is_not_sent_again_to_a_service_that_comes_back(tmp_path: Path) -> None:
    port = free_port()
    with Service(tmp_path, workers=1, port=port) as first:

        async def work(client: GrpcBacktester) -> Any:
            task = asyncio.create_task(client.run(long_job()))
            await asyncio.to_thread(first.busy_worker)
            first.process.kill()
            with pytest.raises(BacktesterUnavailable):
                await task
            first.process.wait()
            with await asyncio.to_thread(Service, tmp_path, workers=1, port=port):
                return await client.run(SHORT)

        found = using(first, work, pool_backtester_connect=20)
        assert image(found) == image(SHORT.run()), "the same client connects again"


def test_a_client_waits_for_a_service_that_starts(tmp_path: Path) -> None:
    port = free_port()

    async def main() -> Any:
        client = GrpcBacktester(
            load(
                {
                    "OPENBELL_HOME": str(tmp_path),
                    "OPENBELL_BACKTESTER": f"127.0.0.1:{port}",
                    "OPENBELL_POOL_BACKTESTER_CONNECT": "30",
                }
            )
        )
        task = asyncio.create_task(client.run(SHORT))
        with await asyncio.to_thread(Service, tmp_path, workers=1, port=port):
            found = await task
            await client.close()
            return found

    assert image(asyncio.run(main())) == image(SHORT.run())


def test_a_worker_that_is_killed_fails_its_run_only(tmp_path: Path) -> None:
    with Service(tmp_path, workers=1) as own:

        async def work(client: GrpcBacktester) -> Any:
            task = asyncio.create_task(client.run(long_job()))
            (await asyncio.to_thread(own.busy_worker)).kill()
            with pytest.raises(BacktesterUnavailable, match="worker process ended"):
                await task
            found = await client.run(SHORT)
            for idle in own.workers():
                idle.kill()
                await until(lambda each=idle: ended(each), "it to end")  # type: ignore[misc]
            again = await client.run(SHORT)
            return image(found) == image(again)

        assert using(own, work)


def test_a_signal_lets_running_jobs_finish_and_refuses_new_ones(tmp_path: Path) -> None:
    job = long_job(1_500)
    with Service(tmp_path, workers=1) as own:

        async def work(client: GrpcBacktester) -> Any:
            task = asyncio.create_task(client.run(job))
            await asyncio.to_thread(own.busy_worker)
            own.process.send_signal(signal.SIGTERM)
            await refused(own)
            assert not task.done()
            return await task

        found = using(own, work)
        assert own.process.wait(60) == 0
        assert own.process.stdout
        assert own.process.stdout.read() == "backtester stopped\n"
    assert image(found) == image(job.run())


def test_a_second_signal_ends_running_jobs(tmp_path: Path) -> None:
    with Service(tmp_path, workers=1) as own:

        async def work(client: GrpcBacktester) -> None:
            task = asyncio.create_task(client.run(long_job()))
            await asyncio.to_thread(own.busy_worker)
            own.process.send_signal(signal.SIGINT)
            await refused(own)
            own.process.send_signal(signal.SIGINT)
            with pytest.raises(BacktesterUnavailable):
                await task

        using(own, work)
        assert own.process.wait(60) == 0


# TLS


def test_tls_with_a_client_certificate(tmp_path: Path) -> None:
    ours, others = Authority(tmp_path / "tls", "ours"), Authority(tmp_path / "tls", "others")
    server, client, stranger = ours.issue("server"), ours.issue("client"), others.issue("stranger")
    words = ("--tls-cert", str(server.certificate), "--tls-key", str(server.key), "--tls-client-ca", str(ours.file))
    with Service(tmp_path, *words, workers=1) as own:
        assert "TLS)" in own.first_line
        assert "no TLS" not in own.first_line
        trusted = {"backtester_tls_ca": ours.file, "pool_backtester_connect": 5}
        known = {"backtester_tls_cert": client.certificate, "backtester_tls_key": client.key}
        unknown = {"backtester_tls_cert": stranger.certificate, "backtester_tls_key": stranger.key}
        found = using(own, lambda each: each.run(SHORT), **trusted, **known)
        assert image(found) == image(SHORT.run())
        for wrong in ({}, trusted, {**trusted, **unknown}, {**trusted, **known, "backtester_tls_ca": others.file}):
            with pytest.raises(BacktesterUnavailable):
                using(own, lambda each: each.run(SHORT), **{**wrong, "pool_backtester_connect": 0.5})
        assert own.stop() == 0
