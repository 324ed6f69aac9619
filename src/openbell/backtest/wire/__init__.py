"""The messages of the gRPC backtester, and their conversion from and to jobs and results."""
