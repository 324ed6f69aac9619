"""Exports of European banks and exchanges: names of columns in German, French, Italian or Spanish."""

from __future__ import annotations

from dataclasses import replace

from openbell.desk.importing.layout import Format, Layout, Sample, by_names, find

_TIMES = ("datum", "date", "data", "fecha")
_CLOCKS = ("zeit", "uhrzeit", "heure", "ora", "hora")
_ALIASES: dict[str, tuple[str, ...]] = {
    "open": ("eröffnung", "erster", "eröffnungskurs", "ouverture", "ouv", "apertura"),
    "high": ("hoch", "tageshoch", "höchst", "plus haut", "haut", "massimo", "máximo", "max"),
    "low": ("tief", "tagestief", "tiefst", "plus bas", "bas", "minimo", "mínimo", "min"),
    "close": (
        "schluss",
        "schlusskurs",
        "schluß",
        "letzter",
        "clôture",
        "cloture",
        "clot",
        "dernier",
        "chiusura",
        "cierre",
    ),
    "volume": ("volumen", "umsatz", "stücke", "stuecke", "volume", "vol"),
    "adjusted": (),
}


def _recognise(sample: Sample) -> Layout | None:
    names = sample.names
    pieces = tuple(name for name in ("stuecke", "stücke") if name in names)
    # Beside the number of pieces, Volumen is an amount of money.
    layout = by_names(sample, _ALIASES | {"volume": pieces or _ALIASES["volume"]}, _TIMES)
    if layout is None or (clock := find(names, _CLOCKS)) is None:
        return layout
    return replace(layout, time=(*layout.time, clock))


FORMAT = Format(
    "european", "Datum;Erster;Hoch;Tief;Schlusskurs;Volumen; decimal comma, 06.05.2024", _recognise, rank=55
)
