"""The gRPC backtester: a service that passes requests to worker processes, which check and run them."""
