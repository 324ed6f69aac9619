"""Services for other machines: the gRPC backtester."""
