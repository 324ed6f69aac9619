"""The canonical strategies, one YAML file each: `sma_ema_crossover.yaml` holds SMA_EMA_CROSSOVER."""

from __future__ import annotations

from functools import cache
from importlib import resources

from openbell.strategies.reading import read_spec
from openbell.strategies.spec import Spec
from openbell.strategies.yaml_text import read_yaml


def text_of(name: str) -> str:
    """The file of a canonical strategy. Raises `KeyError` if there is none."""
    if name not in canonical():
        raise KeyError(name)
    return resources.files(__name__).joinpath(f"{name.lower()}.yaml").read_text("utf-8")


@cache
def canonical() -> dict[str, Spec]:
    """All canonical strategies by name, sorted."""
    files = sorted(each.name for each in resources.files(__name__).iterdir() if each.name.endswith(".yaml"))
    found = [read_spec(read_yaml(resources.files(__name__).joinpath(name).read_text("utf-8"))) for name in files]
    return {spec.name: spec for spec in found}
