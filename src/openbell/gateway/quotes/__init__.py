"""The quotes API over HTTP: `/v2/quotes`, `/v2/quotes/historical`, `/v2/openapi.json`, and `/healthz`.

`endpoint` checks a request, asks the desk's quotes API and sends its answer. Every error has the error envelope.
"""
