"""From a sentence to a chart config: all recognisers, the longest detections, defaults, reasons and warnings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from openbell.charts.config.choices import DEFAULT_INTERVAL, HEIGHT, WIDTH
from openbell.charts.config.ranges import bounds_of
from openbell.charts.language.appearance import SQUARE, LookFound, fitted, look_words, looks_in
from openbell.charts.language.assets import AssetFound, ExchangeFound, asset_words, assets_in
from openbell.charts.language.choosing import NoInstrument, choose
from openbell.charts.language.clauses import ClauseFound, clauses_in, positions_in
from openbell.charts.language.intervals import IntervalFound, intervals_in
from openbell.charts.language.spans import NEGATIONS, Detection, longest, negated
from openbell.charts.language.studies import EveryStudy, LooseInput, StudyFound, studies_in
from openbell.charts.language.study_words import joined_names, study_phrases
from openbell.charts.language.time_ranges import RangeFound, UnclearRange, ranges_in
from openbell.charts.language.words import Speller, Word, common_words, split_lengths, words_of
from openbell.charts.studies.study import Study
from openbell.indicators.spec import Setting

LONGEST_SENTENCE = 2000
"""Characters."""
_BY_DAYS = ((0.25, "5m"), (0.999, "15m"), (7, "1h"), (62, "4h"), (731, "1D"))
"""The interval of ranges up to so many days; longer ones have weeks."""
_BY_PRESET = {"DTD": "5m", "WTD": "1h", "MTD": "4h", "YTD": "1D", "ALL": "1W"}
COLORS = frozenset("red green blue orange yellow purple pink cyan magenta white black grey gray brown".split())
Found = Detection[Any]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a client asks for beside the sentence. It takes precedence, except for the exchange."""

    symbol: str = ""
    exchange: str = ""
    theme: str = ""
    interval: str = ""
    range: str = ""
    size: tuple[int, int] | None = None


_NO_WISHES = Wishes()


@dataclass(frozen=True, slots=True)
class Construction:
    """The result."""

    config: dict[str, Any]
    reasoning: str
    warnings: list[str]


@dataclass(slots=True)
class _Draft:
    """A config in the making."""

    sentence: str
    words: list[Word]
    wanted: list[Found]
    unwanted: list[Found]
    config: dict[str, Any] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def of(self, kind: type) -> list[Found]:
        """Returns the wanted detections of a kind."""
        return [each for each in self.wanted if isinstance(each.meaning, kind)]

    def quote(self, found: Found) -> str:
        """Returns the words of a detection as the sentence has them."""
        return self.sentence[self.words[found.start].start : self.words[found.end - 1].end]

    def choose(self, name: str, wish: str, values: Sequence[tuple[str, Found]]) -> str:
        """Returns the value of a field: the client's wish, else the first in the sentence."""
        distinct = list(dict.fromkeys(value for value, _ in values))
        if wish:
            self.reasons.append(f"{name} {wish} as asked in preferences")
            if distinct and distinct[0] != wish:
                quote = self.quote(values[0][1])
                self.warnings.append(f"preferences ask for {name} {wish}; {quote!r} in the sentence is not used")
            return wish
        if not values:
            return ""
        value, found = values[0]
        self.reasons.append(f"interpreted {self.quote(found)!r} as {name} {value!r}")
        if len(distinct) > 1:
            self.warnings.append(f"several values for {name}: {value} is used, not {', '.join(distinct[1:])}")
        return value


def construct(sentence: str, now: datetime, wishes: Wishes = _NO_WISHES) -> Construction:
    """Returns the config that a sentence asks for. Raises `NoInstrument` if it names none and `wishes` have none."""
    sentence = sentence[:LONGEST_SENTENCE]
    if not sentence.strip():
        raise NoInstrument("the sentence is empty: name an instrument, such as Bitcoin, and what the chart should show")
    words, changes = _speller().correct(split_lengths(words_of(sentence), joined_names()))
    found = _detections(sentence, words, now)
    unwanted = negated(words, found)
    draft = _Draft(sentence, words, [each for each in found if each not in unwanted], unwanted)
    draft.warnings += [f"{wrong!r} was read as {right!r}" for wrong, right in changes]
    _instrument(draft, wishes)
    _times(draft, wishes, now)
    _look(draft, wishes)
    _studies(draft)
    _drawings(draft)
    if unknown := _unknown(words, found):
        draft.warnings.append(f"not understood: {', '.join(unknown)}")
    if unused := _unused(draft, found):
        draft.warnings.append(f"numbers that are not used: {', '.join(unused)}")
    return Construction(draft.config, "; ".join(draft.reasons), draft.warnings)


def _detections(sentence: str, words: Sequence[Word], now: datetime) -> list[Found]:
    today = now.date()
    assets = list(assets_in(sentence, words))
    sure: list[Found] = longest(each for each in assets if not getattr(each.meaning, "weak", False))
    looks = list(looks_in(words))
    sizes: list[Found] = [each for each in looks if any(name == "width" for name, _ in each.meaning.fields)]
    taken = frozenset(at for each in (*sure, *sizes) for at in each.places)
    every: list[Found] = [
        *assets,
        *studies_in(words, taken),
        *clauses_in(sentence, words, today),
        *positions_in(sentence, words),
        *ranges_in(words, today),
        *intervals_in(words),
        *looks,
    ]
    found = longest(each for each in every if each.end > each.start)
    return _without_weak_exchanges(found, every)


def _without_weak_exchanges(found: list[Found], every: Iterable[Found]) -> list[Found]:
    """Replaces an instrument that is an exchange too (`coinbase`) by the exchange if the sentence has another one."""
    others = [each for each in found if isinstance(each.meaning, AssetFound)]
    exchanges = [each for each in every if isinstance(each.meaning, ExchangeFound) and each.meaning.weak]
    for exchange in exchanges:
        same = [each for each in others if each.start == exchange.start and each.end == exchange.end]
        rest = [each for each in others if each not in same and not each.meaning.weak]
        if (
            same
            and rest
            and any(each.meaning.named and exchange.meaning.exchange.lists(each.meaning.named) for each in rest)
        ):
            found = [exchange if each is same[0] else each for each in found]
    return [
        each for each in found if not (isinstance(each.meaning, ExchangeFound) and each.meaning.weak and not others)
    ]


@cache
def _speller() -> Speller:
    return Speller(asset_words() | study_phrases().vocabulary | look_words())


def _instrument(draft: _Draft, wishes: Wishes) -> None:
    chosen = choose(draft.words, draft.wanted, wishes.symbol, wishes.exchange, draft.sentence)
    draft.config["symbol"] = chosen.symbol
    draft.reasons.append(chosen.reason)
    draft.warnings += chosen.warnings


# Range and interval


def _times(draft: _Draft, wishes: Wishes, now: datetime) -> None:
    span = draft.choose("range", wishes.range, [(each.meaning.range, each) for each in draft.of(RangeFound)])
    for each in draft.of(UnclearRange):
        draft.warnings.append(f"{draft.quote(each)!r} {each.meaning.reason}: it sets no range")
    intervals = draft.of(IntervalFound)
    interval = draft.choose("interval", wishes.interval, [(each.meaning.interval, each) for each in intervals])
    for each in intervals:
        if each.meaning.asked:
            draft.warnings.append(f"there is no interval {each.meaning.asked}; {each.meaning.interval} is used")
    weekly = [each for each in draft.of(StudyFound) if each.meaning.weekly]
    if not interval and weekly:
        interval = "1W"
        draft.reasons.append(f"selected interval 1W for {draft.quote(weekly[0])!r}")
    if not interval:
        interval = interval_for(span, now) if span else DEFAULT_INTERVAL
        draft.reasons.append(f"selected interval {interval} {f'for range {span}' if span else 'by default'}")
    draft.config["interval"] = interval
    if span:
        draft.config["range"] = span


def interval_for(span: str, now: datetime) -> str:
    """Returns the interval that shows a range well."""
    if span in _BY_PRESET:
        return _BY_PRESET[span]
    bounds = bounds_of(span, now)
    days = (bounds.end - (bounds.start or now)) / timedelta(days=1)
    return next((interval for most, interval in _BY_DAYS if days <= most), "1W")


# Appearance


def _look(draft: _Draft, wishes: Wishes) -> None:
    values: dict[str, list[tuple[Any, Found]]] = {}
    for each in draft.of(LookFound):
        for name, value in each.meaning.fields:
            values.setdefault(name, []).append((value, each))
    refused = {
        value for each in draft.unwanted if isinstance(each.meaning, LookFound) for _, value in each.meaning.fields
    }
    config = draft.config
    config["theme"] = draft.choose("theme", wishes.theme, values.get("theme", ())) or (
        "dark" if "light" in refused else "light"
    )
    styles = values.get("style", [])
    # "candles" beside another style names no second one.
    config["style"] = draft.choose("style", "", [each for each in styles if each[0] != "candle"] or styles) or "candle"
    _drop_default_square(values)
    width, height = (
        values[name][0][0] if name in values else default for name, default in (("width", WIDTH), ("height", HEIGHT))
    )
    sized = [*values.get("width", ()), *values.get("height", ())]
    if wishes.size:
        if sized and wishes.size != (width, height):
            shown = "x".join(map(str, wishes.size))
            draft.warnings.append(f"preferences ask for resolution {shown}; {draft.quote(sized[0][1])!r} is not used")
        width, height = wishes.size
    elif sized:
        draft.reasons.append(f"size {width}x{height} from {draft.quote(sized[0][1])!r}")
    config["width"], config["height"], warning = fitted(width, height)
    draft.warnings += [warning] if warning else []
    for name in ("scale", "session"):
        if value := draft.choose(name, "", values.get(name, ())):
            config[name] = value


def _drop_default_square(values: dict[str, list[tuple[Any, Found]]]) -> None:
    """Removes the size of the word `square` if the sentence has another size."""
    for name in ("width", "height"):
        sizes = values.get(name, [])
        exact = [each for each in sizes if each[1].meaning is not SQUARE]
        if exact:
            values[name] = exact


# Studies and annotations


def _studies(draft: _Draft) -> None:
    refused = {each.meaning.study.name for each in draft.unwanted if isinstance(each.meaning, StudyFound)}
    if any(isinstance(each.meaning, EveryStudy) for each in draft.unwanted):
        refused |= {each.meaning.study.name for each in draft.of(StudyFound)}
    studies: list[dict[str, Any]] = []
    for each, meaning in _with_loose_inputs(draft):
        draft.warnings += meaning.refused
        if meaning.study.name in refused:
            continue
        for inputs in meaning.inputs:
            entry = entry_of(meaning.study, inputs)
            if entry not in studies:
                studies.append(entry)
                draft.reasons.append(f"added {shown(entry)} from {draft.quote(each)!r}")
    draft.reasons += [f"left out {name.partition('@')[0]}" for name in sorted(refused)]
    if studies:
        draft.config["studies"] = studies


def _with_loose_inputs(draft: _Draft) -> list[tuple[Found, StudyFound]]:
    """Returns the studies with the inputs that are named apart from them: those of the last study that has them."""
    found: list[tuple[Found, StudyFound]] = []
    for each in draft.wanted:
        if isinstance(each.meaning, StudyFound):
            found.append((each, each.meaning))
        elif isinstance(each.meaning, LooseInput):
            for at in reversed(range(len(found))):
                changed = found[at][1].with_input(each.meaning.word, each.meaning.value)
                if changed is not None:
                    found[at] = found[at][0], changed
                    break
    return found


def entry_of(study: Study, inputs: Mapping[str, Setting]) -> dict[str, Any]:
    """Returns a study of a config: all main inputs, and others that were set."""
    wanted = [each for each in study.inputs if not each.extra or each.name in inputs]
    values = {each.name: inputs.get(each.name, each.default) for each in wanted}
    return {"name": study.name, "inputs": {name: _plain(value) for name, value in values.items()}}


def _plain(value: Setting) -> Setting:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def shown(entry: Mapping[str, Any]) -> str:
    """Returns a study of a config in words: `MA (length 50)`."""
    inputs = ", ".join(f"{name} {value}" for name, value in entry["inputs"].items())
    return f"{entry['name'].partition('@')[0]}{f' ({inputs})' if inputs else ''}"


def _drawings(draft: _Draft) -> None:
    drawings: list[dict[str, object]] = []
    for each in draft.of(ClauseFound):
        drawings += [one for one in each.meaning.drawings if one not in drawings]
        if each.meaning.drawings:
            kinds = ", ".join(dict.fromkeys(str(one["type"]) for one in each.meaning.drawings))
            draft.reasons.append(f"drew {kinds} from {draft.quote(each)!r}")
        draft.warnings += [each.meaning.warning] if each.meaning.warning else []
    if drawings:
        draft.config["drawings"] = drawings


# What is not understood


def _unknown(words: Sequence[Word], found: Sequence[Found]) -> list[str]:
    """Returns the words that no recogniser knows and that are no common English words."""
    used = {at for each in found for at in each.places}
    unknown = [word.text for at, word in enumerate(words) if at not in used and _is_strange(word)]
    return [text[:30] for text in dict.fromkeys(unknown)][:8]


def _unused(draft: _Draft, found: Sequence[Found]) -> list[str]:
    """Returns the numbers that no detection has, as the sentence writes them. Money depends on numbers."""
    used = {at for each in found for at in each.places}
    unused = [word for at, word in enumerate(draft.words) if at not in used and word.is_number]
    return list(dict.fromkeys(draft.sentence[word.start : word.end][:30] for word in unused))[:8]


def _is_strange(word: Word) -> bool:
    text = word.text
    if word.is_number or not text[:1].isalpha() or len(text) < 3 or text in NEGATIONS:
        return False
    known = common_words()
    if text in COLORS:
        return True  # sentences set no colours
    return text not in known and text.removesuffix("s") not in known and text not in asset_words()
