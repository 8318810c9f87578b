"""Remarks on a column: how it must be treated so that nothing is lost, and what was odd in it."""

import decimal
import re

import numpy as np
import pandas as pd

from . import cells

EXACT_IN_FLOAT = 2**53
LEADING_ZERO = re.compile(r"0\d+")
# A negative amount of bookkeeping: (1,234.50).
NEGATIVE = re.compile(r"\(\d[\d,.]*\)")
# Numbers that stand for a missing one in many exports.
SENTINELS = [-9999, -999, -99, 9999, 99999]
DATE_FORMATS = [
    "%Y-%m-%d", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y%m%d", "%Y.%m.%d",
    "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M",
    "%Y/%m/%d %H:%M:%S", "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S", "%d %b %Y", "%d-%b-%Y", "%b %d, %Y", "%d-%b-%y",
    "%m/%d/%y", "%d/%m/%y", "%b-%y", "%H:%M:%S", "%H:%M", "%Y年%m月%d日",
]


def of(series, raw):
    """The notes of a column, given its values and, where known, its cells as text."""
    found = []
    try:
        if pd.api.types.is_integer_dtype(series.dtype) and len(series):
            high = max(abs(int(series.max())), abs(int(series.min()))) if series.notna().any() else 0
            if high > EXACT_IN_FLOAT:
                found.append("integers beyond 2^53: keep as int64 or text, a float rounds them")
        elif pd.api.types.is_float_dtype(series.dtype):
            if raw is not None and series.abs().max() > EXACT_IN_FLOAT and _wide_integers(raw):
                found.append("integers beyond 2^53 with missing cells: loaded as float they are rounded; use dtype=\"Int64\" or text")
        if raw is not None and pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_bool_dtype(series.dtype):
            zeros = sum(1 for cell in raw if LEADING_ZERO.fullmatch(cell.strip()))
            if zeros:
                found.append(f"leading zeros in {zeros} cell(s) are lost in numbers; load as text if these are codes")
        if pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_bool_dtype(series.dtype):
            found += _sentinel(series)
        if series.dtype == object:
            found += _mixed(series)
    except (TypeError, ValueError, OverflowError):
        pass
    return found


def _sentinel(series):
    """A note on a number far from all others that stands for a missing one by custom."""
    present = series.dropna()
    for mark in SENTINELS:
        count = int((present == mark).sum())
        if not count or count == len(present):
            continue
        rest = present[present != mark]
        spread = max(float(rest.max()) - float(rest.min()), 1.0)
        if mark < rest.min() - spread or mark > rest.max() + spread:
            return [f"{mark} stands in {count} cell(s), far from all other values: perhaps a mark for missing (na_values=[{mark}])"]
    return []


def _wide_integers(raw):
    return any(cell.strip().lstrip("+-").isdigit() and len(cell.strip()) > 15 for cell in raw)


def _mixed(series):
    """Notes on a text column of which most cells, but not all, are numbers or dates."""
    present = series.dropna()
    if not len(present):
        return []
    texts = present[present.map(lambda value: isinstance(value, str))]
    found = []
    if 0 < len(texts) < len(present):
        types = present.map(lambda value: type(value).__name__).value_counts()
        found.append("mixed types: " + ", ".join(f"{name} {count}" for name, count in types.head(4).items()))
    if not len(texts):
        if present.map(lambda value: isinstance(value, decimal.Decimal)).all():
            found.append(f"decimal.Decimal objects from {present.min()} to {present.max()}: use .astype(float) for statistics")
        return found
    probe = texts if len(texts) <= 200_000 else texts.iloc[:: max(1, len(texts) // 100_000)]
    kinds = probe.map(cells.kind)
    counts = kinds.value_counts()
    numeric, dated = int(counts.get("number", 0)), int(counts.get("date", 0))
    # Cells such as "-" or "?" stand for missing ones, but load as text.
    others = len(probe) - int(counts.get("missing", 0))
    amounts = int(counts.get("money", 0)) + int(probe.map(lambda value: bool(NEGATIVE.fullmatch(value.strip()))).sum())
    if amounts and amounts + numeric == others:
        example = next(value for value in probe if cells.kind(value) == "money" or NEGATIVE.fullmatch(value.strip()))
        found.append(f"amounts kept as text because of their signs or units (such as {_quoted(example)}); strip these before counting with them")
    zeros = int(probe.map(lambda value: bool(LEADING_ZERO.fullmatch(value.strip()))).sum())
    if zeros and numeric == others:
        found.append(f"codes of digits, {zeros} with leading zeros: keep as text")
    for name, count in (("number", numeric), ("date", dated)):
        if others and 0.5 * others < count < len(probe) and len(probe) == len(texts) and not found:
            odd = kinds[kinds != name]
            where = ", ".join(f"row {_row_number(series, index)}: {_quoted(texts.loc[index])}" for index in odd.index[:3])
            found.append(f"mostly {name}s, but {len(odd)} cell(s) are not ({where}), so the column stays text")
            break
    if dated and dated == others:
        fmt = date_format(texts)
        found.append(f"dates as text, format {fmt}" if fmt else "dates as text in more than one format")
        if fmt in ("%d/%m/%Y", "%m/%d/%Y") and _ambiguous(texts):
            found[-1] += " (day and month are not told apart by the values)"
    return found


def _row_number(series, index):
    return int(index) + 1 if isinstance(index, (int, np.integer)) else index


def _quoted(value):
    value = str(value)
    return repr(value if len(value) <= 30 else value[:29] + "…")


def _ambiguous(texts):
    parts = texts.head(2000).str.extract(r"^(\d{1,2})/(\d{1,2})/")
    try:
        return not ((parts[0].astype(float) > 12).any() or (parts[1].astype(float) > 12).any())
    except (ValueError, TypeError):
        return False


def date_format(texts):
    """The one format that every text follows, or None; decided on a sample, proven on all."""
    head = texts.head(50)
    for fmt in DATE_FORMATS:
        try:
            pd.to_datetime(head.str.strip(), format=fmt, errors="raise")
            pd.to_datetime(texts.str.strip(), format=fmt, errors="raise")
            return fmt
        except (ValueError, TypeError, AttributeError, OverflowError):
            continue
    return None


def date_span(present):
    """First and last date of a column of dates held as text, as 'a … b (n days)'; None for other text."""
    head = present.head(30)
    if not all(isinstance(value, str) and cells.kind(value) == "date" for value in head):
        return None
    fmt = date_format(present)
    if fmt is None:
        return None
    values = pd.to_datetime(present.str.strip(), format=fmt, errors="coerce")
    low, high = values.min(), values.max()
    return f"{low.date()} … {high.date()} ({(high - low).days} days)"
