"""SQLite databases: every table with its rows, the largest described in full; opened read-only."""

import sqlite3
from urllib.parse import quote

import pandas as pd

from . import columns
from .faults import Fault, one_line
from .loading import PATH, Load, literal

MAX_TABLES = 500
MAX_CELLS = 4_000_000
# SQLite calls the progress handler every STEP instructions; a query is given up after so many calls.
STEP = 1_000_000
MAX_CALLS = 20_000


def profile(source):
    """The profile of a database: `tables`, and the largest table as the top-level one."""
    if not source.head.startswith(b"SQLite format 3\0"):
        raise Fault("corrupt", f"{source.name} is not a SQLite database (first bytes {source.head[:8].hex(' ')})", "Check the file's origin.")
    try:
        connection = sqlite3.connect(f"file:{quote(source.path)}?mode=ro&immutable=1", uri=True)
        try:
            return _profile(source, connection)
        finally:
            connection.close()
    except (sqlite3.Error, pd.errors.DatabaseError) as error:
        raise Fault("corrupt", f"{source.name} cannot be read as a SQLite database: {one_line(error)}", "Restore it from a copy.") from error


def _profile(source, connection):
    calls = [0]

    def tick():
        calls[0] += 1
        return calls[0] > MAX_CALLS

    connection.set_progress_handler(tick, STEP)
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    names = connection.execute(
        # What a full-text or spatial index keeps beside its table is no table of anybody's.
        "SELECT name, CASE type WHEN 'view' THEN 'view' ELSE 'table' END FROM pragma_table_list "
        "WHERE schema = 'main' AND type <> 'shadow' AND name NOT LIKE 'sqlite_%' ORDER BY name").fetchall()
    warnings = []
    if len(names) > MAX_TABLES:
        warnings.append(f"{len(names)} tables and views; the first {MAX_TABLES} are listed")
        names = names[:MAX_TABLES]
    tables = []
    for name, kind in names:
        try:
            rows = connection.execute(f"SELECT count(*) FROM {_quoted(name)}").fetchone()[0]
            width = len(connection.execute(f"SELECT * FROM {_quoted(name)} LIMIT 0").description)
            tables.append({"name": name, "kind": kind, "rows": rows, "columns": width})
        except sqlite3.Error as error:
            warnings.append(f"{kind} {name} cannot be read: {one_line(error)}")
    if not tables:
        return {"file": source.name, "format": "sqlite", "tables": [], "rows": 0, "columns": 0, "duplicate_rows": 0, "columns_detail": [],
                "warnings": [*warnings, "the database has no tables"],
                "load": Load(f"sqlite3.connect({PATH})", ["sqlite3"]).code(source.name)}
    largest = max(tables, key=lambda table: (table["kind"] == "table", table["rows"]))
    query = f"SELECT * FROM {_quoted(largest['name'])}"
    load = Load(f"pd.read_sql_query({literal(query)}, sqlite3.connect({PATH}))", ["sqlite3"])
    if len(tables) > 1:
        others = ", ".join(f"{table['name']} ({table['rows']} × {table['columns']})" for table in tables if table is not largest)
        warnings.append(f"described is the largest table, {largest['name']}; the others are {columns.clip(others, 600)}")
    result = {"file": source.name, "format": "sqlite", "table": largest["name"], "tables": tables}
    if largest["rows"] * largest["columns"] > MAX_CELLS:
        warnings.append("the table is large: columns are named, without statistics")
        described = {"rows": largest["rows"], "columns": largest["columns"], "duplicate_rows": None,
                     "columns_detail": _named(connection, largest["name"])}
    else:
        described = columns.describe(pd.read_sql_query(query, connection))
        warnings += described.pop("warnings")
    return {**result, **described, "warnings": warnings, "load": load.code(source.name)}


def _named(connection, name):
    """Names and declared types, with missing cells counted by SQL."""
    details = []
    rows = connection.execute(f"SELECT count(*) FROM {_quoted(name)}").fetchone()[0]
    for _, column, declared, *_ in connection.execute(f"PRAGMA table_info({_quoted(name)})").fetchall():
        field = _quoted(column)
        missing, low, high = connection.execute(
            f"SELECT sum({field} IS NULL), min({field}), max({field}) FROM {_quoted(name)}").fetchone()
        details.append({"name": column, "dtype": {"INTEGER": "int64", "REAL": "float64"}.get(str(declared).upper(), "object"),
                        "missing": missing or 0, "missing_percent": columns.percent(missing or 0, rows),
                        "distinct": None, "distinct_exact": False, "min": columns.plain(low), "max": columns.plain(high)})
    return details


def _quoted(name):
    return '"' + name.replace('"', '""') + '"'
