"""What is counted and measured: the names of currencies and units, one and many of them.

Knows no numbers and no patterns of a text.
"""

from __future__ import annotations

from engine.text.letters import letter_names

SCALES = {
    "k": "thousand", "m": "million", "mn": "million", "mm": "million", "mln": "million",
    "bn": "billion", "b": "billion", "mio": "million", "mrd": "billion", "tn": "trillion",
    "t": "trillion", "trn": "trillion",
}  # fmt: skip
SCALE = (
    r"(?:thousand|million|billion|trillion|lakh|crore|Mio|Mrd|mln|trn|bn|mn|tn|mm|MM|[kKmMbBtT])"
)
CURRENCIES = {
    "$": ("dollar", "cent"), "£": ("pound", "penny"), "€": ("euro", "cent"), "¥": ("yen", ""),
    "₹": ("rupee", "paisa"), "₽": ("rouble", ""), "₩": ("won", ""), "₿": ("bitcoin", ""),
    "₺": ("lira", ""), "₪": ("shekel", ""),
}  # fmt: skip
CODES = {
    "USD": "US dollar", "EUR": "euro", "GBP": "pound", "JPY": "yen", "CHF": "Swiss franc",
    "CAD": "Canadian dollar", "AUD": "Australian dollar", "INR": "rupee", "CNY": "yuan",
    "NZD": "New Zealand dollar", "HKD": "Hong Kong dollar", "SGD": "Singapore dollar",
    "SEK": "Swedish krona", "PLN": "zloty", "ZAR": "rand", "KRW": "won", "MXN": "Mexican peso",
}  # fmt: skip
COUNTRIES = {"US": "US", "A": "Australian", "AU": "Australian", "C": "Canadian",
              "CA": "Canadian", "NZ": "New Zealand", "HK": "Hong Kong", "S": "Singapore"}  # fmt: skip  # noqa: E501
PERIODS = {
    "h": "hour", "hr": "hour", "hour": "hour", "day": "day", "d": "day", "wk": "week",
    "week": "week", "mo": "month", "month": "month", "yr": "year", "year": "year", "y": "year",
    "night": "night", "person": "person", "unit": "unit", "min": "minute", "minute": "minute",
    "s": "second", "sec": "second", "kg": "kilogram", "lb": "pound", "mile": "mile", "km":
    "kilometer", "l": "liter", "L": "liter", "dL": "deciliter", "mL": "milliliter", "gal": "gallon",
    "g": "gram", "m": "meter", "m²": "square meter", "m³": "cubic meter", "ft": "foot",
    "sq ft": "square foot", "cm²": "square centimeter", "cm³": "cubic centimeter",
    "m2": "square meter", "m3": "cubic meter", "cm2": "square centimeter",
    "cm3": "cubic centimeter", "s2": "second squared", "s²": "second squared", "oz": "ounce",
    "bbl": "barrel", "mol": "mole",
}  # fmt: skip
_LETTERED = ("psi", "rpm", "bpm", "fps", "dpi", "cc", "ppm", "dBm")
UNITS = {
    "km": "kilometer", "m": "meter", "cm": "centimeter", "mm": "millimeter", "nm": "nanometer",
    "µm": "micrometer", "mi": "mile", "ft": "foot", "yd": "yard", "yds": "yard", "kg": "kilogram",
    "g": "gram", "mg": "milligram", "µg": "microgram", "mcg": "microgram", "lb": "pound",
    "lbs": "pound", "oz": "ounce", "fl oz": "fluid ounce", "l": "liter", "L": "liter",
    "ml": "milliliter", "mL": "milliliter", "cl": "centiliter", "dl": "deciliter",
    "gal": "gallon", "pt": "pint",
    "mph": "mile per hour", "kph": "kilometer per hour", "kmh": "kilometer per hour",
    "Hz": "hertz", "kHz": "kilohertz", "MHz": "megahertz", "GHz": "gigahertz", "B": "byte",
    "KB": "kilobyte", "kB": "kilobyte", "MB": "megabyte", "GB": "gigabyte", "TB": "terabyte",
    "Mbps": "megabit per second", "Gbps": "gigabit per second", "kbps": "kilobit per second",
    "ms": "millisecond", "µs": "microsecond", "ns": "nanosecond", "s": "second", "sec": "second",
    "secs": "second", "min": "minute", "mins": "minute", "h": "hour", "hr": "hour", "hrs": "hour",
    "kW": "kilowatt", "kWh": "kilowatt hour", "MW": "megawatt", "GW": "gigawatt", "W": "watt",
    "V": "volt", "mV": "millivolt", "kV": "kilovolt", "A": "amp", "mA": "milliamp",
    "mAh": "milliamp hour",
    "Ah": "amp hour", "°C": "degree Celsius", "°F": "degree Fahrenheit", "°": "degree",
    "º": "degree", "℃": "degree Celsius", "℉": "degree Fahrenheit", "K": "kelvin", "kcal":
    "kilocalorie", "cal": "calorie", "kJ": "kilojoule", "J": "joule", "hp": "horsepower",
    "Pa": "pascal", "kPa": "kilopascal", "hPa": "hectopascal", "dB": "decibel",
    "px": "pixel",
    "ha": "hectare", "Wh": "watt hour", "MWh": "megawatt hour",
    "GWh": "gigawatt hour", "TWh": "terawatt hour",
    "MP": "megapixel", "mpg": "mile per gallon", "ct": "carat", "N": "newton",
    "yr": "year", "yrs": "year", "mo": "month", "wk": "week", "wks": "week", "Ω": "ohm",
    "nmi": "nautical mile",
    "kΩ": "kilohm", "tsp": "teaspoon", "tbsp": "tablespoon", "kr": "krona",
    "kt": "knot", "kts": "knot", "kn": "knot",
    "mol": "mole", "lm": "lumen", "mmHg": "millimeter of mercury",
    "atm": "atmosphere",
    "KiB": "kibibyte", "MiB": "mebibyte", "GiB": "gibibyte", "TiB": "tebibyte", "Mb": "megabit",
    "Gb": "gigabit", "kb": "kilobit", "Mbit": "megabit", "Gbit": "gigabit", "kbit": "kilobit",
    "µF": "microfarad", "nF": "nanofarad", "pF": "picofarad",
    "Nm": "newton meter", "N·m": "newton meter", "lb-ft": "pound foot",
    "ft-lb": "foot pound", "ft-lbs": "foot pound",
    "eV": "electronvolt", "keV": "kiloelectronvolt", "MeV": "megaelectronvolt",
    "GeV": "gigaelectronvolt", "TeV": "teraelectronvolt", "ly": "light year",
    "µM": "micromolar", "mM": "millimolar", "nM": "nanomolar",
    "zł": "zloty", "tsps": "teaspoon", "tbsps": "tablespoon",
    **{unit: letter_names(unit) for unit in _LETTERED},
}  # fmt: skip
TIMES = {"wk": "week", "mo": "month", "yr": "year", "hr": "hour"}
SPOONS = {"c": "cup", "T": "tablespoon", "t": "teaspoon", "qt": "quart", "pts": "pint"}
SIZES = {"lg": "large", "med": "medium"}
EACH = {
    "pcm": "per calendar month", "pw": "per week", "pm": "per month", "pa": "per annum",
    "pp": "per person", "pppn": "per person per night", "p/m": "per month", "p/w": "per week",
    "p/h": "per hour", "p/a": "per annum", "p/d": "per day",
}  # fmt: skip
PORTIONS = {"mL": "milliliter", "ml": "milliliter", "L": "liter", "kg": "kilogram",
             "min": "minute", "sec": "second"}  # fmt: skip
SQUARES = {"mi": "square miles", "km": "square kilometers", "ft": "square feet"}
POWERS = {"²": "square", "2": "square", "^2": "square", "³": "cubic", "3": "cubic", "^3": "cubic"}
LENGTHS = ("km", "m", "cm", "mm", "mi", "ft", "in", "yd")
_SAME = ("zloty", "hertz", "yen", "won", "horsepower", "yuan", "molar", "rand")
_IRREGULAR = {"krona": "kronor", "foot": "feet", "penny": "pence", "inch": "inches", "lira": "lira"}
_QUALIFIED = ("square", "cubic", "Swiss", "Swedish", "Mexican", "nautical", "US",
              "megawatt", "gigawatt", "terawatt", "watt", "Canadian", "Australian", "New", "Hong",
              "Zealand",
              "Kong", "Singapore", "kilowatt", "milliamp",
              "amp", "newton", "light", "fluid", "foot",
              "pound")  # fmt: skip


def plural(noun: str) -> str:
    first, space, rest = noun.partition(" ")
    if rest and first in _QUALIFIED:
        return f"{first} {plural(rest)}"
    if "-" in first or first.endswith(_SAME):  # names of letters
        return noun
    return f"{_IRREGULAR.get(first, f'{first}s')}{space}{rest}"


def agree(noun: str, amount: str) -> str:
    return noun if amount.replace(",", "").lstrip("0") == "1" else plural(noun)
