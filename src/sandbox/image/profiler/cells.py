"""What a single text cell looks like: number, date, time, boolean, missing, text.

The dialect detection scores a reading by how many of its cells look like something; the layout
tells a header from data by it; the repair of damaged rows compares shapes of cells.
"""

import re
from functools import lru_cache

# The markers that `pandas.read_csv` reads as missing by default (pandas.io.parsers, STR_NA_VALUES).
NA_MARKERS = frozenset({
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
})

NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
# Thousands by threes, or by twos above the last three as in India (12,34,567).
THOUSANDS_COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d{2})+,\d{3})(?:\.\d+)?")
THOUSANDS_DOT = re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+(?:,\d+)?")
DATE = re.compile(
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})"
    r"|\d{1,2}[- ](?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[- ,]+(?:\d{4}|\d{2})"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[- ]\d{1,2}(?:,? \d{2,4})?"
    r"|\d{4}年\d{1,2}月(?:\d{1,2}日)?)"
    r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[AaPp][Mm])?(?:Z|[+-]\d{2}:?\d{2})?)?",
    re.IGNORECASE,
)
TIME = re.compile(r"\d{1,3}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[AaPp][Mm])?")
MONEY = re.compile(r"[+-]?\(?(?:[$€£¥₹]|USD|EUR|GBP|CNY) ?[+-]?\d[\d,. ]*\)?|[+-]?\d[\d,.]* ?(?:[$€£¥%‰]|元)")
WEB = re.compile(r"(?:https?|ftp)://\S+|www\.\S+|[\w.+-]+@[\w-]+\.[\w.-]+", re.IGNORECASE)
IDENTIFIER = re.compile(r"(?=.*\d)[A-Za-z0-9]+(?:[-_./:][A-Za-z0-9]+)*")
WORDS = re.compile(r"[^\W\d_]+(?:[ '’.&()/-]+[^\W_]+)*[.)]?")
BOOLEANS = frozenset({"true", "false", "yes", "no"})


@lru_cache(maxsize=65536)
def kind(text):
    """One of: missing, number, date, time, money, boolean, web, identifier, words, text."""
    value = text.strip()
    if value in NA_MARKERS or value in ("-", "--", "?", "."):
        return "missing"
    if len(value) > 400:
        return "text"
    if NUMBER.fullmatch(value) or value.lower() in ("inf", "-inf", "infinity", "-infinity"):
        return "number"
    if DATE.fullmatch(value):
        return "date"
    if TIME.fullmatch(value):
        return "time"
    if DECIMAL_COMMA.fullmatch(value) or THOUSANDS_COMMA.fullmatch(value) or THOUSANDS_DOT.fullmatch(value):
        return "number"
    if MONEY.fullmatch(value):
        return "money"
    if value.lower() in BOOLEANS:
        return "boolean"
    if WEB.fullmatch(value):
        return "web"
    if IDENTIFIER.fullmatch(value):
        return "identifier"
    if WORDS.fullmatch(value):
        return "words"
    return "text"


# Kinds that a column of values has and a column's name hardly ever has.
VALUE_KINDS = frozenset({"number", "date", "time", "money"})


def is_blank(row):
    """Whether a record holds nothing: no cells, or only empty ones."""
    return not any(cell and not cell.isspace() for cell in row)


def span(row):
    """How many cells there are up to the last one that holds something."""
    for index in range(len(row) - 1, -1, -1):
        if row[index] and not row[index].isspace():
            return index + 1
    return 0


def filled(row):
    """How many cells hold something."""
    return sum(1 for cell in row if cell and not cell.isspace())


@lru_cache(maxsize=65536)
def shape(text):
    """The coarse shape of a cell: runs of digits become 9, of letters a; the rest stays.

    At most 24 characters, so that long prose has few shapes.
    """
    value = text.strip()[:80]
    out = []
    for char in value:
        if char.isdigit():
            mark = "9"
        elif char.isalpha():
            mark = "a"
        elif char.isspace():
            mark = " "
        else:
            mark = char
        if not out or out[-1] != mark:
            out.append(mark)
    return "".join(out)[:24]
