"""Indicators: pure functions of bars. One file per indicator in `catalogue/`, found by `registry`."""
