"""Remarks on a column: how it must be treated so that nothing is lost, and what was odd in it."""

import decimal
import re

import numpy as np
import pandas as pd

from . import cells

EXACT_IN_FLOAT = 2**53
LEADING_ZERO = re.compile(r"0\d+")
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
        if series.dtype == object:
            found += _mixed(series)
    except (TypeError, ValueError, OverflowError):
        pass
    return found


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
    others = len(probe) - int(counts.get("missing", 0))
    zeros = int(probe.map(lambda value: bool(LEADING_ZERO.fullmatch(value.strip()))).sum())
    if zeros and numeric == others:
        found.append(f"codes of digits, {zeros} with leading zeros: keep as text")
    for name, count in (("number", numeric), ("date", dated)):
        if others and 0.5 * others < count < others and len(probe) == len(texts):
            odd = kinds[(kinds != name) & (kinds != "missing")]
            where = ", ".join(f"row {_row_number(series, index)}: {_quoted(texts.loc[index])}" for index in odd.index[:3])
            found.append(f"mostly {name}s, but {others - count} cell(s) are not ({where}), so the column stays text")
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
