"""Strategies: specs as data, their validation, and their evaluation over bars. Pure but for reading the library."""
