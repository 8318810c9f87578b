"""The statistics of a table and of its columns, from a pandas DataFrame that holds every row.

Keys of a column: name, dtype, missing, missing_percent (two decimals, never rounded to nought), distinct, distinct_exact,
min, max; for numbers mean and quantiles (25, 50, 75 %); for text longest (characters) and longest_value; for
dates span; top (value, count) and examples; notes on how the column must be treated.
"""

import hashlib
import math

import numpy as np
import pandas as pd

from . import notes

DETAIL_COLUMNS = 1000
TEXT_CELL = 120


def plain(value, limit=TEXT_CELL):
    """A value of a cell as JSON can carry it; text bounded to `limit` characters."""
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        # What 64 bits cannot carry would lose digits on its way through JSON.
        return int(value) if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if math.isfinite(number) else None if math.isnan(number) else str(number)
    if isinstance(value, (pd.Timestamp, np.datetime64)):
        return pd.Timestamp(value).isoformat(sep=" ")
    if isinstance(value, (pd.Timedelta, np.timedelta64)):
        return str(pd.Timedelta(value))
    if isinstance(value, (bytes, bytearray)):
        return f"<{len(value)} bytes: {bytes(value[:8]).hex(' ')}{'…' if len(value) > 8 else ''}>"
    if isinstance(value, np.ndarray):
        return f"<array of {value.size} {value.dtype}: {brief(value.ravel()[:3].tolist())}>"
    if isinstance(value, (list, tuple, set)):
        return f"<list of {len(value)}: {brief(list(value)[:3])}>"
    if isinstance(value, dict):
        return f"<record of {len(value)}: {brief(list(value)[:5])}>"
    return clip(str(value), limit)


def brief(values):
    """A few values on one short line."""
    return clip(", ".join(clip(str(value), 24) for value in values), 80)


def clip(text, limit):
    """At most `limit` characters, an ellipsis in place of the rest."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def percent(part, whole):
    """The share in per cent with two decimals, never shown as 0 or 100 when it is not."""
    if not whole:
        return 0.0
    value = round(100.0 * part / whole, 2)
    if value == 0 and part:
        return 0.01
    if value == 100 and part < whole:
        return 99.99
    return value


def describe(frame, raw=None, day_first=None):
    """The counts and column details of a frame as the fields of a profile.

    `raw` maps a column's position to its cells as text where they are known, for the notes.
    """
    rows, width = frame.shape
    warnings = []
    details = []
    shown = min(width, DETAIL_COLUMNS)
    if width > shown:
        warnings.append(f"{width} columns: details are given of the first {shown}; missing cells are counted in all")
    light = width > 200 and rows * width > 200_000 or width > 600
    for position in range(shown):
        series = frame.iloc[:, position]
        detail = guarded(str(frame.columns[position]), series, rows, light)
        found = notes.of(series, raw(position) if raw else None)
        if found:
            detail["notes"] = found
        details.append(detail)
    return {
        "rows": int(rows),
        "columns": int(width),
        "duplicate_rows": duplicates(frame),
        "missing_cells": int(frame.isna().sum().sum()) if width else 0,
        "columns_detail": details,
        "warnings": warnings,
        "sample": sample(frame),
    }


def sample(frame, rows=5, cell=60, width=50):
    """The first rows as lists of short text, for a prompt."""
    head = frame.iloc[:rows, :width]
    cells = [_short(head.iloc[:, position], cell) for position in range(head.shape[1])]
    return [list(row) for row in zip(*cells)]


def _short(series, limit):
    """The cells of a column as short text; a mark where a value cannot be turned into text."""
    out = []
    for position in range(len(series)):
        try:
            value = series.iloc[position]
            out.append("" if _missing(value) else clip(" ".join(str(plain(value, limit)).split()), limit))
        except (ValueError, OverflowError, TypeError):
            out.append("?")
    return out


def _missing(value):
    return value is None or (isinstance(value, float) and math.isnan(value)) or value is pd.NaT or value is pd.NA


def hashable(series):
    """The column with unhashable cells (lists, records, arrays) as text, for counting equal ones."""
    if series.dtype != object:
        return series
    first = series.dropna().head(50)
    if any(isinstance(value, (list, dict, set, np.ndarray, bytearray, bytes)) for value in first):
        return series.map(_key)
    try:
        hash(tuple(first))
        return series
    except TypeError:
        return series.map(_key)


def _key(value):
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return repr(value.tolist())
        return f"{value.dtype} {value.shape} {hashlib.blake2b(value.tobytes(), digest_size=16).hexdigest()}"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (list, dict, set, bytearray)):
        return repr(value)
    return value


def duplicates(frame):
    """Rows equal to an earlier one, as `DataFrame.duplicated().sum()` counts them; None where cells cannot be compared."""
    if not len(frame) or not frame.shape[1]:
        return 0
    try:
        return int(frame.duplicated().sum())
    except (TypeError, ValueError, NotImplementedError):
        pass
    try:
        parts = {position: hashable(frame.iloc[:, position]).astype(str) for position in range(frame.shape[1])}
        return int(pd.DataFrame(parts).duplicated().sum())
    except (TypeError, ValueError, NotImplementedError, OverflowError):
        return None


def guarded(name, series, rows, light=False):
    """The statistics of a column; only its counts where its values defeat the rest (dates beyond pandas' range)."""
    try:
        return column(name, series, rows, light)
    except (TypeError, ValueError, OverflowError, NotImplementedError, ArithmeticError, AttributeError, UnicodeError) as error:
        missing = int(series.isna().sum())
        return {"name": name, "dtype": str(series.dtype), "missing": missing, "missing_percent": percent(missing, rows),
                "distinct": None, "distinct_exact": False, "min": None, "max": None,
                "notes": [f"no further statistics: {type(error).__name__}: {clip(str(error), 80)}"]}


def column(name, series, rows, light=False):
    """The statistics of one column."""
    missing = int(series.isna().sum())
    detail = {
        "name": name,
        "dtype": str(series.dtype),
        "missing": missing,
        "missing_percent": percent(missing, rows),
    }
    present = series.dropna()
    keyed = hashable(present)
    counts = _counts(keyed)
    detail["distinct"] = int(len(counts)) if counts is not None else int(keyed.astype(str).nunique())
    detail["distinct_exact"] = True
    detail["min"], detail["max"] = extremes(present)
    if not len(present):
        return detail
    if pd.api.types.is_bool_dtype(series.dtype):
        detail["top"] = _top(counts)
        return detail
    if pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_complex_dtype(series.dtype):
        _numbers(detail, present, light)
    elif pd.api.types.is_datetime64_any_dtype(series.dtype) or pd.api.types.is_timedelta64_dtype(series.dtype):
        try:
            detail["span"] = str(present.max() - present.min())
        except (OverflowError, ValueError):
            detail["span"] = f"{present.min()} … {present.max()}"
    elif series.dtype == object or isinstance(series.dtype, (pd.CategoricalDtype, pd.StringDtype)):
        _texts(detail, present, keyed)
    if counts is not None and (not light or series.dtype == object):
        if len(counts) < len(present):
            detail["top"] = _top(counts)
    detail["examples"] = [plain(value) for value in _first_distinct(present, keyed)]
    return detail


def _counts(keyed):
    try:
        return keyed.value_counts(sort=True, dropna=True)
    except (TypeError, ValueError, NotImplementedError):
        return None


def _top(counts, limit=5):
    return [{"value": plain(value), "count": int(count)} for value, count in counts.head(limit).items()] if counts is not None else []


def _first_distinct(present, keyed, limit=3):
    seen, out = set(), []
    for value, key in zip(present.head(200), keyed.head(200)):
        mark = str(key)
        if mark not in seen:
            seen.add(mark)
            out.append(value)
            if len(out) >= limit:
                break
    return out


def extremes(present):
    """The smallest and largest value, None where values have no order."""
    if not len(present):
        return None, None
    try:
        if present.dtype == object:
            if not isinstance(present.iloc[0], (str, int, float, bool)) and not hasattr(present.iloc[0], "isoformat") \
                    and type(present.iloc[0]).__name__ != "Decimal":
                return None, None
            low, high = min(present), max(present)
            return plain(low), plain(high)
        return plain(present.min()), plain(present.max())
    except (TypeError, ValueError, NotImplementedError):
        return None, None


def _numbers(detail, present, light):
    with np.errstate(all="ignore"):
        detail["mean"] = plain(present.mean())
        if light:
            return
        values = present.astype("float64")
        points = values.quantile([0.25, 0.5, 0.75])
        detail["quantiles"] = {"0.25": plain(points.iloc[0]), "0.5": plain(points.iloc[1]), "0.75": plain(points.iloc[2])}


def _texts(detail, present, keyed):
    first = present.iloc[0]
    if isinstance(first, str):
        lengths = present.map(lambda value: len(value) if isinstance(value, str) else len(str(value)))
        at = int(np.argmax(lengths.to_numpy()))
        detail["longest"] = int(lengths.iloc[at])
        detail["longest_value"] = plain(present.iloc[at])
        spread = notes.date_span(present)
        if spread:
            detail["span"] = spread
    elif isinstance(first, (list, np.ndarray, dict, tuple)):
        lengths = [len(value) for value in present if hasattr(value, "__len__")]
        if lengths:
            detail["lengths"] = {"min": int(min(lengths)), "max": int(max(lengths))}
