"""The settings of a desk: each is written once, as a field of `Settings`; every process reads them once."""

from openbell.desk.settings.reading import file_of, home_of, load, unknown_variables
from openbell.desk.settings.settings import DEFAULT_HOME, DEFAULT_SCENARIO, DEFAULT_SEED, Settings, all_settings

__all__ = [
    "DEFAULT_HOME",
    "DEFAULT_SCENARIO",
    "DEFAULT_SEED",
    "Settings",
    "all_settings",
    "file_of",
    "home_of",
    "load",
    "unknown_variables",
]
