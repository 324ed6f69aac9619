"""The methods of the gRPC backtester: for each kind of job, its messages and how they are converted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError

from openbell.backtest import jobs
from openbell.backtest.jobs import Job
from openbell.backtest.wire import backtester_pb2 as pb
from openbell.backtest.wire import messages
from openbell.backtest.wire.limits import SERVICE
from openbell.market.errors import InvalidParameter


@dataclass(frozen=True, slots=True)
class Method:
    """One method. Its responses have either `progress` or `result`."""

    name: str
    job: type[Any]
    request: Any
    response: Any
    to_request: Callable[[Any], Any]
    to_job: Callable[[Any], Job[Any]]
    """Raises `InputError`."""
    to_message: Callable[[Any], Any]
    """Of a result."""
    to_result: Callable[[Any, Any], Any]
    """Of a job and the message of its result."""

    def job_of(self, request: bytes) -> Job[Any]:
        """Returns the job of a serialized request. Raises `InputError`."""
        try:
            message = self.request.FromString(request)
        except DecodeError:
            raise InvalidParameter(f"the request is not a {self.request.DESCRIPTOR.name}") from None
        return self.to_job(message)

    def progress(self, done: int, total: int) -> bytes:
        """Returns a serialized response that reports progress."""
        return bytes(self.response(progress=pb.Progress(done=done, total=total)).SerializeToString())

    def response_of(self, result: Any) -> bytes:
        """Returns the serialized response with a result."""
        return bytes(self.response(result=self.to_message(result)).SerializeToString())

    @property
    def path(self) -> str:
        """Its name in a call."""
        return f"/{SERVICE}/{self.name}"


METHODS = {
    method.name: method
    for method in (
        Method(
            "RunBacktest",
            jobs.BacktestJob,
            pb.BacktestRequest,
            pb.BacktestResponse,
            messages.backtest_request,
            messages.backtest_job,
            messages.run_message,
            messages.backtest_result,
        ),
        Method(
            "RunWalkForward",
            jobs.WalkForwardJob,
            pb.WalkForwardRequest,
            pb.WalkForwardResponse,
            messages.walk_forward_request,
            messages.walk_forward_job,
            messages.walk_forward_message,
            messages.walk_forward_result,
        ),
        Method(
            "RunMonteCarlo",
            jobs.MonteCarloJob,
            pb.MonteCarloRequest,
            pb.MonteCarloResponse,
            messages.monte_carlo_request,
            messages.monte_carlo_job,
            messages.monte_carlo_message,
            messages.monte_carlo_result,
        ),
        Method(
            "RunPortfolio",
            jobs.PortfolioJob,
            pb.PortfolioRequest,
            pb.PortfolioResponse,
            messages.portfolio_request,
            messages.portfolio_job,
            messages.portfolio_message,
            messages.portfolio_result,
        ),
    )
}


def method_of(job: Job[Any]) -> Method:
    """Returns the method that runs a job."""
    return next(each for each in METHODS.values() if isinstance(job, each.job))
