"""Oscillators: how fast and how far the price has moved."""

from __future__ import annotations

from openbell.charts.studies.study import LONGEST, Category, Input, Plot, Study, factor, length, plot, smoothing, source

_M, _T = Category.MOMENTUM, Category.TREND


def _one(
    short: str,
    title: str,
    default: int,
    indicator: str,
    *phrases: str,
    key: str = "",
    category: Category = _M,
    least: int = 1,
    most: int = LONGEST,
) -> Study:
    """Returns a study in its own panel with a length only."""
    inputs = (length(default, key=key, least=least, most=most),)
    return Study(short, title, category, inputs, (plot(indicator, length="length"),), phrases)


_ERGODIC = (length(5, "shortLength"), length(20, "longLength"), length(5, "signalLength"))
_MOVEMENT = (length(14, "smoothing"), length(14))
_KST = (
    *(length(each, f"rocLength{at}", most=300) for at, each in enumerate((10, 15, 20, 30), 1)),
    *(length(each, f"smaLength{at}", most=300) for at, each in enumerate((10, 10, 10, 15), 1)),
    length(9, "signalLength", most=300),
)

STUDIES = (
    Study(
        "MACD",
        "MACD",
        _M,
        (length(12, "fastLength"), length(26, "slowLength"), length(9, "signalLength"), source()),
        (plot("macd", fast="fastLength", slow="slowLength", signal="signalLength"),),
        ("moving average convergence divergence",),
    ),
    Study(
        "RSI",
        "Relative Strength Index",
        _M,
        (length(14, key="length"), *smoothing(14)),
        (plot("rsi", length="length"),),
        ("rsi", "relative strength"),
        display="RSI",
    ),
    Study(
        "Stochastic",
        "Stochastic",
        _M,
        (length(14, "kLength"), length(1, "kSmoothing", most=100), length(3, "dSmoothing", most=100)),
        (plot("stoch", k="kLength", smooth="kSmoothing", d="dSmoothing"),),
        ("stoch", "stochastics", "stochastic oscillator"),
    ),
    Study(
        "StochasticRSI",
        "Stochastic RSI",
        _M,
        (length(14, "rsiLength"), length(14, "stochasticLength"), length(3, "k", most=100), length(3, "d", most=100)),
        (plot("stoch_rsi", rsi_length="rsiLength", stoch_length="stochasticLength", k="k", d="d"),),
        ("stoch rsi", "stochrsi", "stochastic relative strength index"),
    ),
    _one("WilliamsR", "Williams %R", 14, "williams_r", "williams r", "williams percent r", "%r", "willr"),
    Study("AwesomeOscillator", "Awesome Oscillator", _M, (), (plot("awesome"),), ("ao", "awesome")),
    Study("Momentum", "Momentum", _M, (length(10), source()), (plot("momentum", length="length"),), ("mom",)),
    _one("ROC", "Rate Of Change", 9, "roc", "roc"),
    Study(
        "CCI",
        "Commodity Channel Index",
        _M,
        (length(20, key="in_0", least=2), *smoothing(20)),
        (plot("cci", length="length"),),
        ("cci", "commodity channel"),
    ),
    _one("MFI", "Money Flow Index", 14, "mfi", "mfi", "money flow", category=Category.VOLUME),
    Study(
        "UltimateOscillator",
        "Ultimate Oscillator",
        _M,
        (length(7, "fastLength"), length(14, "middleLength"), length(28, "slowLength")),
        (plot("ultimate", fast="fastLength", middle="middleLength", slow="slowLength"),),
        ("uo",),
    ),
    _one("ChandeMO", "Chande Momentum Oscillator", 9, "cmo", "cmo", "chande momentum"),
    Study(
        "ConnorsRSI",
        "Connors RSI",
        _M,
        (length(3, "rsiLength"), length(2, "streakLength"), length(100, "rankLength")),
        (plot("connors_rsi", rsi_length="rsiLength", streak_length="streakLength", rank_length="rankLength"),),
        ("crsi",),
    ),
    _one("FisherTransform", "Fisher Transform", 9, "fisher", "fisher"),
    Study(
        "TrueStrengthIndex",
        "True Strength Index",
        _M,
        (length(25, "longLength"), length(13, "shortLength"), length(13, "signalLength")),
        (plot("tsi", long="longLength", short="shortLength", signal="signalLength"),),
        ("tsi", "true strength"),
    ),
    _one("RelativeVigorIndex", "Relative Vigor Index", 10, "rvi", "rvgi", "rvi", "relative vigor"),
    _one("Aroon", "Aroon", 14, "aroon", category=_T, least=2),
    Study(
        "ADX",
        "Average Directional Index",
        _T,
        _MOVEMENT,
        (plot("adx", length="length", lines=("ADX",)),),
        ("adx", "average directional movement index"),
    ),
    Study(
        "DirectionalMovement",
        "Directional Movement",
        _T,
        _MOVEMENT,
        (plot("adx", length="length"),),
        ("dmi", "directional movement index", "directional index"),
    ),
    Study(
        "DetrendedPriceOscillator",
        "Detrended Price Oscillator",
        _M,
        (length(21), Input("centered", default=False, extra=True)),
        (plot("dpo", length="length"),),
        ("dpo", "detrended price"),
    ),
    Study(
        "PriceOscillator",
        "Price Oscillator",
        _M,
        (length(10, "shortLength"), length(21, "longLength")),
        (plot("ppo", fast="shortLength", slow="longLength", lines=("PPO",)),),
        ("ppo", "percentage price oscillator"),
    ),
    Study(
        "CoppockCurve",
        "Coppock Curve",
        _M,
        (length(10, "wmaLength", most=300), length(14, "longRoc"), length(11, "shortRoc")),
        (plot("coppock", wma_length="wmaLength", long_roc="longRoc", short_roc="shortRoc"),),
        ("coppock",),
    ),
    Study(
        "KnowSureThing",
        "Know Sure Thing",
        _M,
        _KST,
        (
            Plot(
                "kst",
                {f"{kind}{at}": f"{kind}Length{at}" for kind in ("roc", "sma") for at in range(1, 5)}
                | {"signal": "signalLength"},
                {},
            ),
        ),
        ("kst",),
    ),
    Study(
        "TRIX",
        "TRIX",
        _M,
        (length(18, most=300),),
        (plot("trix", length="length", lines=("TRIX",)),),
        ("triple exponential average",),
    ),
    _one("VortexIndicator", "Vortex Indicator", 14, "vortex", "vortex", category=_T),
    Study(
        "SMIErgodicIndicator",
        "SMI Ergodic Indicator",
        _M,
        _ERGODIC,
        (plot("smi_ergodic", short="shortLength", long="longLength", signal="signalLength"),),
        ("smi ergodic", "smi", "smii"),
    ),
    Study(
        "SMIErgodicOscillator",
        "SMI Ergodic Oscillator",
        _M,
        _ERGODIC,
        (plot("smi_oscillator", short="shortLength", long="longLength", signal="signalLength"),),
        ("smio", "smi oscillator"),
    ),
    _one("TrendStrengthIndex", "Trend Strength Index", 9, "trend_strength", "trend strength", key="periods", least=2),
    _one(
        "LinearRegressionSlope",
        "Linear Regression Slope",
        14,
        "linreg_slope",
        "regression slope",
        "linreg slope",
        key="periods",
        category=_T,
        least=2,
    ),
    Study("BalanceOfPower", "Balance of Power", _M, (), (plot("bop"),), ("bop",)),
    _one("MassIndex", "Mass Index", 10, "mass_index", category=Category.VOLATILITY),
    Study(
        "AccumulativeSwingIndex",
        "Accumulative Swing Index",
        _M,
        (factor("limit", 10.0, 0.1, 100_000.0),),
        (plot("asi", limit="limit"),),
        ("asi", "swing index"),
    ),
    _one("MajorityRule", "Majority Rule", 14, "majority_rule", key="rollingPeriod"),
    _one("AdvanceDecline", "Advance/Decline", 10, "advance_decline", "advance decline", "advance/decline ratio"),
)
