"""The rival fastmcp over HTTP, in an environment of its own: a hello-world server on the port that is given."""

from __future__ import annotations

import sys

import uvicorn
from fastmcp import FastMCP

server = FastMCP("hello")


def hello() -> str:
    """Says hello."""
    return "hello"


server.tool(hello)
app = server.http_app(json_response=True)
uvicorn.run(app, port=int(sys.argv[1]), http="h11", loop=sys.argv[2], access_log=False, log_level="error")
