"""The statistics of a table too large to hold, by SQL within a bound of memory, spilling to scratch.

Phases, as `progress` tells them: `columns` (counts, missing, extremes, means, distinct values of columns that have few),
`distinct` (the other distinct counts), `frequent` (quantiles and frequent values), `duplicates`. Cells of text are judged as
pandas would load them: all numbers, or text. Distinct counts are exact (see `hashes`) where memory allows; else they are
marked approximate and never above the present cells.
"""

import os
import tempfile
from collections import namedtuple

import duckdb

from . import columns, hashes

EXACT_DISTINCT = 500_000
FREQUENT_DISTINCT = 2_000
DUPLICATE_ROWS = 60_000_000
BATCH_COLUMNS = 60
# A column has few values when they are at most this share of the first rows.
FEW_SHARE = 0.2

Column = namedtuple("Column", "name source kind marks few", defaults=((".", None), False))
Column.__doc__ = """name as loaded, source: name in SQL, kind: int, float, bool, text, moment or other, marks: decimal and
thousands mark of its numbers, few: whether its first rows repeat few values."""

WHOLE = "regexp_full_match({r}, '\\s*[+-]?[0-9]+\\s*')"
# How a whole number is written: 0 plainly, 1 with leading zeros, 2 with a sign or blanks, none when it is no whole number.
WRITTEN = ("CASE WHEN {v}::VARCHAR = {r} THEN 0 WHEN {v} IS NOT NULL AND " + WHOLE
           + " THEN CASE WHEN starts_with({r}, '0') AND strlen({r}) > 1 THEN 1 ELSE 2 END END")
# For each kind: cells that fit it, least, largest, mean, one more fact; {r} is the cell as text, {v} its value, {k} how it is written.
FACTS = {
    "int": ["count({k})", "min({v})", "max({v})", "avg({v})", "count(*) FILTER ({k} = 1)"],
    "float": ["count({v}) FILTER (NOT contains({r}, '_'))", "min({v})", "max({v})", "avg({v})", "0"],
    "bool": ["count(*) FILTER ({r} IN ('True', 'TRUE', 'true', 'False', 'FALSE', 'false'))", "min({v})", "max({v})", "NULL", "0"],
    "text": ["count({v})", "min({v})", "max({v})", "NULL", "max(length({v}))"],
}
TYPED = {
    "int": ["count({v})", "min({v})", "max({v})", "avg({v})", "0"],
    "float": ["count({v})", "min({v})", "max({v})", "avg({v})", "0"],
    "bool": ["count({v})", "min({v})", "max({v})", "NULL", "0"],
    "text": FACTS["text"],
    "moment": ["count({v})", "min({v})", "max({v})", "NULL", "0"],
    "other": ["count({v})", "NULL", "NULL", "NULL", "0"],
}
PLAIN = {**FACTS, "float": ["count({v})", *FACTS["float"][1:]]}
VALUE = {"int": "try_cast({0} AS BIGINT)", "float": "try_cast({0} AS DOUBLE)", "bool": "lower({0})", "text": "{0}"}
WIDER = {"int": "float", "float": "text", "bool": "text"}


def connect(options):
    """A duckdb connection within the memory of the sandbox."""
    memory = memory_of(options)
    scratch = options.get("scratch") or tempfile.gettempdir()
    connection = duckdb.connect(config={
        "memory_limit": f"{max(128, int(memory * 0.45) >> 20)}MB",
        "threads": max(1, min(int(options.get("threads") or 0) or os.cpu_count() or 1, 4)),
        "temp_directory": os.path.join(scratch, f".profile-{os.getpid()}"),
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
    })
    connection.execute("SET enable_progress_bar = false")
    return connection


def memory_of(options):
    """The memory, in bytes, that the profile may use; 1 GiB unless it is given."""
    return int(options.get("memory_bytes") or (1 << 30))


def quoted(name):
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def text(value):
    """A text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def field(column):
    """The SQL of a column's cells; where they are numbers, with the marks that a cast understands."""
    out = quoted(column.source)
    decimal, thousands = column.marks
    if column.kind in ("int", "float"):
        if thousands:
            out = f"replace({out}, {text(thousands)}, '')"
        if decimal != ".":
            out = f"replace({out}, {text(decimal)}, '.')"
    return out


class Table:
    """A table in SQL: `source` its table function, `columns` with the kinds that are expected (changed where the cells
    say otherwise), `typed` where they are sure, `expected` about how many rows there will be, `underscores` whether
    there can be any, which a cast to a number passes over."""

    def __init__(self, connection, source, guessed, options, progress, typed=False, expected=0, underscores=True):
        self.connection = connection
        self.source = source
        self.columns = guessed
        self.shown = guessed[: columns.DETAIL_COLUMNS]
        self.memory = memory_of(options)
        self.progress = progress
        self.typed = typed
        self.expected = expected
        self.underscores = underscores
        self.rows = 0

    def value(self, column):
        """The SQL of a column's cells as values of its kind."""
        return quoted(column.source) if self.typed else VALUE[column.kind].format(field(column))

    def row(self, select, inner=None):
        """The one row of an aggregate over the table (or over a query on it)."""
        return self.connection.execute(f"SELECT {', '.join(select)} FROM {inner or self.source}").fetchone()

    def describe(self, warnings):
        """Counts, column details and duplicates as the fields of a profile."""
        # Where all hashes fit, nothing needs to be estimated.
        hashed = [column for column in self.shown if not column.few and column.kind != "other"]
        estimate = not self.expected or not hashes.fit(self.expected, len(hashed), self.memory)
        facts, changes = self._facts(estimate)
        details = {name: _detail(*fact, self.rows, self.typed) for name, fact in facts.items()}
        self._distinct(facts, details)
        self._frequent(facts, details)
        for name, (kind, fitting, odd) in changes.items():
            if facts[name][0].kind == "text" and fitting > odd:
                details[name].setdefault("notes", []).append(self._first_odd(facts[name][0], kind, fitting, odd))
        self.columns = [facts[column.name][0] if column.name in facts else column for column in self.columns]
        duplicates = self._duplicates(facts, details)
        if duplicates is None:
            warnings.append("duplicate rows were not counted: the table has too many rows for the memory of the sandbox")
        elif duplicates:
            warnings.append(f"{duplicates} duplicate row(s)")
        if any(not detail["distinct_exact"] for detail in details.values()):
            warnings.append("distinct counts marked as not exact are estimates (about 2 % off)")
        wanted = ", ".join(quoted(column.source) for column in self.shown[:50])
        sample = self.connection.execute(f"SELECT {wanted} FROM {self.source} LIMIT 5").fetchall()
        return {
            "rows": self.rows, "columns": len(self.columns), "duplicate_rows": duplicates,
            "missing_cells": sum(detail["missing"] for detail in details.values()),
            "columns_detail": [details[column.name] for column in self.shown],
            "sample": [["" if cell is None else columns.clip(" ".join(str(cell).split()), 60) for cell in row] for row in sample],
        }

    def _facts(self, estimate):
        """Facts of each column by its name, and for those that were not of the expected kind (kind, cells that fit, others)."""
        facts, changes, waiting = {}, {}, self.shown
        while waiting:
            self.progress({"phase": "columns", "done": len(self.shown) - len(waiting), "total": len(self.shown)})
            # Very wide tables take several passes, so that the states of all the aggregates fit in memory.
            batch, later = waiting[:BATCH_COLUMNS], waiting[BATCH_COLUMNS:]
            try:
                values = self._facts_of(batch, estimate)
            except duckdb.OutOfMemoryException:
                # A column that seemed to have few values has many.
                if not any(column.few for column in batch):
                    raise
                batch = [column._replace(few=False) for column in batch]
                values = self._facts_of(batch, estimate)
            self.rows, again = values[0], []
            for index, column in enumerate(batch):
                present, fitting, low, high, mean, extra, distinct = values[1 + 7 * index: 8 + 7 * index]
                if column.kind in WIDER and not self.typed and fitting < present:
                    changes[column.name] = (column.kind, fitting, present - fitting)
                    again.append(column._replace(kind=WIDER[column.kind]))
                    continue
                facts[column.name] = (column, present, low, high, mean, extra, distinct)
            waiting = again + later
        return facts, changes

    def _facts_of(self, batch, estimate):
        inner, wanted = [], ["count(*)"]
        for index, column in enumerate(batch):
            raw, value = field(column), self.value(column)
            places = {"r": f"r{index}" if raw != value else f"v{index}", "v": f"v{index}", "k": f"k{index}"}
            inner += [f"{raw} AS r{index}"] * (raw != value) + [f"{value} AS v{index}"]
            if column.kind == "int" and not self.typed:
                inner.append(f"{WRITTEN.format(r=raw, v=value)} AS k{index}")
            distinct = "NULL" if column.kind == "other" else "count(DISTINCT {v})" if column.few else "approx_count_distinct({v})" if estimate else "NULL"
            facts = (TYPED if self.typed else FACTS if self.underscores else PLAIN)[column.kind]
            expressions = ["count({r})", *facts, distinct]
            wanted += [expression.format(**places) for expression in expressions]
        return self.row(wanted, f"(SELECT {', '.join(inner)} FROM {self.source})")

    def _distinct(self, facts, details):
        """Exact distinct counts: by hashes where they fit in memory, else by SQL for the columns that seem to have few enough."""
        open_, counted = [], []
        for name, (column, present, *_, distinct) in facts.items():
            if column.few and distinct is not None:
                details[name]["distinct_exact"] = True
            elif present and column.kind != "other":
                open_.append((name, column))
        if not open_:
            return
        self.progress({"phase": "distinct", "done": 0, "total": len(open_)})
        if hashes.fit(self.rows, len(open_), self.memory):
            counts = hashes.distinct(self.connection, self.source, [self.value(column) for _, column in open_], self.rows)
            counted = [(name, count - (1 if details[name]["missing"] else 0)) for (name, _), count in zip(open_, counts)]
        else:
            known = [(name, column) for name, column in open_ if facts[name][-1] is None]
            for name, estimate in zip([name for name, _ in known], self._each("approx_count_distinct({0})", known)):
                details[name]["distinct"] = min(estimate, facts[name][1])
            small = [(name, column) for name, column in open_ if details[name]["distinct"] <= EXACT_DISTINCT]
            counted = zip([name for name, _ in small], self._each("count(DISTINCT {0})", small))
        for name, count in counted:
            details[name]["distinct"], details[name]["distinct_exact"] = count, True

    def _each(self, expression, wanted):
        """An aggregate of each of some columns, in as many passes as their number needs."""
        out = []
        for start in range(0, len(wanted), BATCH_COLUMNS):
            out += self.row([expression.format(self.value(column)) for _, column in wanted[start: start + BATCH_COLUMNS]])
        return out

    def _frequent(self, facts, details):
        """Quantiles of numbers, and the most frequent of the columns with few values."""
        numbers = [(name, fact[0]) for name, fact in facts.items() if fact[0].kind in ("int", "float") and fact[1]]
        repeated = [(name, fact[0]) for name, fact in facts.items()
                    if fact[1] and details[name]["distinct"] is not None and details[name]["distinct"] <= FREQUENT_DISTINCT]
        quantile = "quantile_cont" if hashes.fit(self.rows, len(numbers), self.memory) else "approx_quantile"
        wanted = [(name, "quantiles", f"{quantile}({self.value(column)}, [0.25, 0.5, 0.75])") for name, column in numbers]
        wanted += [(name, "top", f"histogram({self.value(column)})") for name, column in repeated]
        for start in range(0, len(wanted), BATCH_COLUMNS):
            self.progress({"phase": "frequent", "done": start, "total": len(wanted)})
            part = wanted[start: start + BATCH_COLUMNS]
            for (name, what, _), value in zip(part, self.row([expression for _, _, expression in part])):
                if what == "quantiles" and value is not None:
                    details[name]["quantiles"] = {key: columns.plain(point) for key, point in zip(("0.25", "0.5", "0.75"), value)}
                elif value is not None:
                    details[name]["distinct"], details[name]["distinct_exact"] = len(value), True
                    most = sorted(value.items(), key=lambda item: -item[1])[:5]
                    details[name]["top"] = [{"value": columns.plain(key), "count": count} for key, count in most]

    def _first_odd(self, column, kind, fitting, odd):
        """The note on a column that is of one kind but for some cells."""
        cell = field(column._replace(kind=kind))
        fits = {"int": WHOLE.format(r=cell), "float": f"try_cast({cell} AS DOUBLE) IS NOT NULL"}.get(kind, f"lower({cell}) IN ('true', 'false')")
        example = self.connection.execute(
            f"SELECT {quoted(column.source)} FROM {self.source} WHERE {cell} IS NOT NULL AND NOT ({fits}) LIMIT 1").fetchone()
        shown = repr(columns.clip(str(example[0]), 30)) if example else ""
        return f"mostly {'numbers' if kind != 'bool' else 'booleans'} ({fitting:,}), but {odd:,} cell(s) are not (such as {shown}), so the column stays text"

    def _duplicates(self, facts, details):
        """Rows equal to an earlier one, by 64-bit hashes of the rows; None when there are too many."""
        if any(detail["distinct_exact"] and detail["distinct"] == self.rows and not detail["missing"] for detail in details.values()):
            return 0
        if self.rows > DUPLICATE_ROWS:
            return None
        self.progress({"phase": "duplicates", "done": 0, "total": self.rows})
        whole = f"hash({', '.join(self.value(column) for column in self.columns)})"
        if not hashes.fit(self.rows, 1, self.memory):
            try:
                return self.row([f"count(*) - count(DISTINCT {whole})"])[0]
            except duckdb.OutOfMemoryException:
                return None
        # A column that seems to have no value twice is looked at first: then no row is there twice.
        likely = [name for name, detail in details.items() if not detail["missing"] and (detail["distinct"] or 0) > 0.9 * self.rows]
        for name in likely[:1]:
            count, = hashes.distinct(self.connection, self.source, [self.value(facts[name][0])], self.rows)
            details[name]["distinct"], details[name]["distinct_exact"] = count, True
            if count == self.rows:
                return 0
        return self.rows - hashes.distinct(self.connection, self.source, [whole], self.rows, hashed=True)[0]


def _detail(column, present, low, high, mean, extra, distinct, rows, typed):
    missing = rows - present
    if column.kind == "bool" and not typed and present:
        low, high = low == "true", high == "true"
    dtype = {"int": "int64", "float": "float64", "bool": "bool", "moment": "datetime64[ns]"}.get(column.kind, "object")
    if column.kind == "int" and missing:
        dtype = "float64"
    if column.kind == "bool" and missing:
        dtype = "object"
    if not present:
        dtype = "object" if not rows or typed and column.kind in ("text", "other") else "float64"
    detail = {"name": column.name, "dtype": dtype, "missing": missing, "missing_percent": columns.percent(missing, rows),
              "distinct": min(distinct, present) if distinct is not None else 0 if not present else None, "distinct_exact": present == 0,
              "min": columns.plain(low), "max": columns.plain(high)}
    if column.kind in ("int", "float") and mean is not None:
        detail["mean"] = columns.plain(mean)
    if column.kind == "text" and present:
        detail["longest"] = extra
    if column.kind == "int" and extra:
        detail.setdefault("notes", []).append(f"leading zeros in {extra} cell(s) are lost in numbers; load as text if these are codes")
    if column.kind == "int" and present and max(abs(low), abs(high)) > 2**53:
        detail.setdefault("notes", []).append("integers beyond 2^53: keep as int64 or text, a float rounds them")
    return detail


def few(values):
    """Whether the first values of a column repeat."""
    return len(values) >= 100 and len(set(values)) <= FEW_SHARE * len(values)
