"""The desk over HTTP and gRPC: MCP, OAuth, the quotes and chart APIs, webhooks, and the backtester."""
