"""Scripts for PyneCore, a runtime of TradingView's script language, and the process that runs them over bars.

The scripts are not imported by tests: PyneCore rewrites their code when it loads them, with a hook into Python's imports.
"""
