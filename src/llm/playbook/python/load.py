import json
import re

import numpy as np
import pandas as pd
import matplotlib.pyplot as plt

@loads@

def num(value):
    """A number as people read it: whole numbers whole, others with four decimals, small ones with six significant digits."""
    value = float(value)
    if not np.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.4f}".rstrip("0").rstrip(".") if abs(value) >= 1 else f"{value:.6g}"


def as_table(value):
    """The value as a table, or None where it is none."""
    if isinstance(value, pd.Series):
        value = value.to_frame()
    if isinstance(value, np.ndarray) and value.ndim == 2 and value.shape[1] <= 200:
        value = pd.DataFrame(value)
    if not isinstance(value, pd.DataFrame):
        return None
    value = value.copy()
    value.columns = [re.sub(r"\s+", " ", str(name)).strip() for name in value.columns]
    return value.loc[:, ~value.columns.duplicated()]


def with_dates(df):
    """Text columns that hold dates become dates."""
    for name in df.columns:
        if not (df[name].dtype == object or pd.api.types.is_string_dtype(df[name])):
            continue
        texts = df[name].dropna().astype(str)
        if texts.empty or texts.head(200).str.contains(r"^\s*\d{1,4}[-/.年]\d{1,2}(?:[-/.月]\d|\b)").mean() < 0.95:
            continue
        try:
            clean = df[name].astype(str).str.replace("[年月]", "-", regex=True).str.replace("日", "")
            dates = pd.to_datetime(clean.where(df[name].notna()), errors="coerce", format="mixed")
        except (ValueError, TypeError):
            continue
        if dates.notna().sum() >= 0.95 * len(texts):
            df[name] = dates
    return df


def kind_of(column):
    """What a column is, by its values: number, year, date, category, identifier, text or empty."""
    values = column.dropna()
    if values.empty:
        return "empty"
    if pd.api.types.is_bool_dtype(column):
        return "category"
    if pd.api.types.is_datetime64_any_dtype(column):
        return "date"
    if pd.api.types.is_numeric_dtype(column) and not np.iscomplexobj(values):
        whole = bool((values % 1 == 0).all())
        named = re.search(r"(^|[^a-z])(id|no|index|key)$|编号|序号", str(column.name).lower())
        if whole and values.is_unique and len(values) > 1 and (named or (values.diff().dropna() == 1).all()):
            return "identifier"
        if whole and values.between(1800, 2200).all() and re.search("year|年", str(column.name).lower()):
            return "year"
        return "number"
    distinct = values.astype(str).nunique()
    return "category" if distinct <= 30 and (distinct < len(values) or len(values) <= 30) else "text"


def show(name, df):
    """Says what is in a table, one line a column."""
    duplicates = int(df.astype(str).duplicated().sum())
    print(f"Table {json.dumps(name, ensure_ascii=False)}: {len(df)} rows, {df.shape[1]} columns, {duplicates} duplicate rows")
    for column in df.columns[:40]:
        values = df[column].dropna()
        kind = kind_of(df[column])
        distinct = values.astype(str).nunique()
        line = f"- {json.dumps(column, ensure_ascii=False)}: {kind}, {len(values)} values, {len(df) - len(values)} missing, {distinct} distinct"
        if kind in ("number", "year"):
            line += f", min {num(values.min())}, max {num(values.max())}, mean {num(values.mean())}, median {num(values.median())}, sum {num(values.sum())}"
        elif kind == "date":
            line += f", from {values.min().date()} to {values.max().date()}"
        elif kind == "category":
            top = values.astype(str).value_counts().head(8)
            line += f", top {json.dumps({key[:60]: int(count) for key, count in top.items()}, ensure_ascii=False)}"
        print(line)
    if df.shape[1] > 40:
        print(f"… and {df.shape[1] - 40} more columns")
    numbers = df[[column for column in df.columns[:40] if kind_of(df[column]) == "number" and df[column].nunique() > 1]]
    if numbers.shape[1] > 1 and len(df) > 4:
        table = numbers.astype(float).corr()
        pairs = [(abs(table.iloc[i, j]), table.index[i], table.columns[j], table.iloc[i, j]) for i in range(len(table)) for j in range(i)]
        pairs = sorted((pair for pair in pairs if pair[0] >= 0.3), reverse=True)
        for _, first, second, value in pairs[:5]:
            print(f"Correlation {json.dumps(second, ensure_ascii=False)} / {json.dumps(first, ensure_ascii=False)}: {value:.3f}")


def describe(value):
    """A few words about a value that is no table."""
    if isinstance(value, str):
        return f"text of {len(value.splitlines())} lines, {len(value.split())} words and {len(value)} characters"
    if isinstance(value, np.ndarray) and value.ndim == 3:
        plt.figure()
        plt.imshow(value)
        plt.axis("off")
        plt.show()
        return f"a picture of {value.shape[1]} × {value.shape[0]} pixels with {value.shape[2]} channels, mean value {num(value.mean())}"
    if hasattr(value, "shape"):
        return f"{type(value).__name__} of shape {value.shape}"
    return f"{type(value).__name__} of {len(value)} entries" if hasattr(value, "__len__") else type(value).__name__


tables = {}
for name, value in loaded.items():
    table = as_table(value)
    if table is None:
        print(f"No table {json.dumps(name, ensure_ascii=False)}: {describe(value)}")
    else:
        tables[name] = with_dates(table)
        show(name, tables[name])
