"""The statistics of a table too large to hold, by SQL within a bound of memory, spilling to scratch.

Phases, as `progress` tells them: `columns` (counts, missing, extremes, means), `distinct` (values), `frequent` (quantiles and
frequent values), `duplicates`. Cells of text are judged as pandas would load them: all numbers, or text. Where memory allows,
the values of delimited text are kept as a table of typed columns, and the text is parsed once; else each phase parses it.
Distinct counts are exact (see `hashes`) where memory allows; else they are marked approximate and never above the present cells.
"""

import os
import tempfile
from collections import namedtuple

import duckdb

from . import cells, columns, hashes

EXACT_DISTINCT = 500_000
FREQUENT_DISTINCT = 2_000
DUPLICATE_ROWS = 60_000_000
BATCH_COLUMNS = 60
# A column has many values when this share of the first rows differ.
MANY_SHARE = 0.98
# Bytes that a table of typed columns takes for each byte of its text, and the part of the memory that it may take.
KEPT_BYTES = 1.6
KEPT_SHARE = 0.3

Column = namedtuple("Column", "name source kind marks many", defaults=((".", None), False))
Column.__doc__ = """name as loaded, source: name in SQL, kind: int, float, bool, text, moment or other, marks: decimal and
thousands mark of its numbers, many: whether nearly all of its first rows differ."""

BOOLEANS = "('True', 'TRUE', 'true', 'False', 'FALSE', 'false')"
MISSING = "(" + ", ".join("'" + marker + "'" for marker in sorted(cells.NA_MARKERS) if marker) + ")"
LONGEST_MARKER = max(map(len, cells.NA_MARKERS))
WHOLE = "regexp_full_match({r}, '\\s*[+-]?[0-9]+\\s*')"
# How a cell of text {r} with the value {v} is written: 0 as a value of the kind, 1 with leading zeros, 2 with a sign or blanks,
# 3 otherwise, 4 as a marker of a missing value ({s} is the cell without changes); none where the cell is missing.
REST = " WHEN {s} IN " + MISSING + " THEN 4::UTINYINT WHEN {r} IS NOT NULL THEN 3::UTINYINT END"
WRITTEN = {
    "int": "CASE WHEN {v}::VARCHAR = {r} THEN 0::UTINYINT WHEN {v} IS NOT NULL AND " + WHOLE + " THEN "
           "CASE WHEN starts_with({r}, '0') AND strlen({r}) > 1 THEN 1::UTINYINT ELSE 2::UTINYINT END" + REST,
    "float": "CASE WHEN {v} IS NOT NULL AND NOT contains({r}, '_') THEN 0::UTINYINT" + REST,
    "plain float": "CASE WHEN {v} IS NOT NULL THEN 0::UTINYINT" + REST,
    "bool": "CASE WHEN {r} IN " + BOOLEANS + " THEN 0::UTINYINT" + REST,
}
# Present cells, whether some need a second look, least, largest, mean, one more fact; {v} is the value, {k} how it is written.
COUNTED = ["count({k})", "max({k}) > 0", "min({v})", "max({v})"]
FACTS = {
    "int": [*COUNTED, "avg({v})", "0"],
    "float": [*COUNTED, "avg({v})", "0"],
    "bool": [*COUNTED, "NULL", "0"],
    "text": ["count({v})", f"max(CASE WHEN strlen({{v}}) <= {LONGEST_MARKER} THEN {{v}} IN {MISSING} END)",
             "min({v})", "max({v})", "NULL", "max(length({v}))"],
}
# What a second look counts: cells that fit the kind, markers of missing values, leading zeros.
SECOND = ["count(*) FILTER ({k} < 3)", "count(*) FILTER ({k} = 4)", "count(*) FILTER ({k} = 1)"]
VALUES = ["count({v})", "false", "min({v})", "max({v})"]
TYPED = {
    "int": [*VALUES, "avg({v})", "0"],
    "float": [*VALUES, "avg({v})", "0"],
    "bool": [*VALUES, "NULL", "0"],
    "text": [*VALUES, "NULL", "max(length({v}))"],
    "moment": [*VALUES, "NULL", "0"],
    "other": ["count({v})", "false", "NULL", "NULL", "NULL", "0"],
}
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
    """A table in SQL. `source`: its table function; `columns`: with the kinds that are expected, changed where the cells say
    otherwise; `typed`: the kinds are sure, the cells no text; `expected`: about how many rows there will be; `columnar`: a column
    is read without the others; `fuller`: the table function for the case that there are other markers of missing values than those
    that `source` knows; `size`: bytes of text, 0 when they are not known; `underscores`: there can be some, which a cast to a number passes over."""

    def __init__(self, connection, source, guessed, options, progress, *, typed=False, expected=0, columnar=False, fuller=None, size=0, underscores=True):
        self.connection = connection
        self.source = source
        self.columns = guessed
        self.shown = guessed[: columns.DETAIL_COLUMNS]
        self.memory = memory_of(options)
        self.progress = progress
        self.typed = typed
        self.expected = expected
        self.columnar = columnar
        self.fuller = fuller
        self.underscores = underscores
        # The table of typed columns that is kept of the text, if there is one.
        self.kept = None
        self.keep = not typed and 0 < size * KEPT_BYTES <= self.memory * KEPT_SHARE and len(guessed) <= BATCH_COLUMNS
        self.rows = 0

    @property
    def place(self):
        """Where values are read from."""
        return self.kept or self.source

    def value(self, column):
        """The SQL of a column's values at the place where they are read from."""
        return quoted(column.source) if self.typed or self.kept else VALUE[column.kind].format(field(column))

    def row(self, select, inner=None):
        """The one row of an aggregate over the table (or over a query on it)."""
        return self.connection.execute(f"SELECT {', '.join(select)} FROM {inner or self.place}").fetchone()

    def describe(self, warnings):
        """Counts, column details and duplicates as the fields of a profile."""
        # Where all hashes fit, nothing needs to be estimated.
        hashed = [column for column in self.shown if column.kind != "other"]
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
            if self.keep:
                # A table that is kept holds every column, of its kind.
                changed = {column.name: column for column in batch}
                batch = [changed.get(column.name) or facts[column.name][0] for column in self.shown]
                self._keep(batch)
            values = self._facts_of(batch, FACTS, estimate)
            self.rows, again = values[0], []
            read = [(column, *values[1 + 7 * index: 8 + 7 * index]) for index, column in enumerate(batch)]
            doubtful = [column for column, _, odd, *_ in read if odd and column.kind in WRITTEN]
            second = self._facts_of(doubtful, dict.fromkeys(WRITTEN, SECOND))[1:] if doubtful else []
            looked = {column.name: second[3 * index: 3 * index + 3] for index, column in enumerate(doubtful)}
            if self.fuller and (any(odd and column.kind == "text" or high != high for column, _, odd, _, high, *_ in read)
                                or any(marked for _, marked, _ in looked.values())):
                self.source, self.fuller, self.kept = self.fuller, None, None
                return self._facts(estimate)
            for column, present, _, low, high, mean, extra, distinct in read:
                fitting, _, zeros = looked.get(column.name, (present, 0, 0))
                if fitting < present:
                    changes[column.name] = (column.kind, fitting, present - fitting)
                    again.append(column._replace(kind=WIDER[column.kind]))
                    continue
                facts[column.name] = (column, present, low, high, mean, zeros or extra, distinct)
            waiting = again + later
        return facts, changes

    def _cells(self, column):
        """The SQL of a column's values, and for text that should be numbers or booleans of how each is written."""
        raw, value = field(column), VALUE[column.kind].format(field(column))
        out = [f"{value} AS {quoted(column.source)}"]
        if column.kind in WRITTEN:
            kind = "plain float" if column.kind == "float" and not self.underscores else column.kind
            out.append(f"{WRITTEN[kind].format(r=raw, v=value, s=quoted(column.source))} AS {_written(column)}")
        return out

    def _keep(self, batch):
        """Keep the values of the columns as a table; not where memory turns out too small."""
        wanted = [cell for column in batch for cell in self._cells(column)]
        try:
            self.connection.execute(f"CREATE OR REPLACE TABLE kept AS SELECT {', '.join(wanted)} FROM {self.source}")
            self.kept, self.columnar = "kept", True
        except duckdb.OutOfMemoryException:
            self.connection.execute("DROP TABLE IF EXISTS kept")
            self.kept, self.keep, self.columnar = None, False, False

    def _facts_of(self, batch, wanted, estimate=None):
        """The number of rows and the wanted facts of some columns, by one pass; `estimate`: the distinct values of those with many too."""
        select = ["count(*)"]
        for column in batch:
            facts = list((TYPED if self.typed else wanted)[column.kind])
            if column.kind == "text" and not self.fuller:
                facts[1] = "false"
            if estimate is not None:
                facts.append("approx_count_distinct({v})" if estimate and column.many else "NULL")
            select += [fact.format(v=quoted(column.source), k=_written(column)) for fact in facts]
        if self.typed or self.kept:
            return self.row(select)
        return self.row(select, f"(SELECT {', '.join(cell for column in batch for cell in self._cells(column))} FROM {self.source})")

    def _distinct(self, facts, details):
        """Distinct counts by hashes: all exact where they fit in memory, else of those columns that do not seem to have too many."""
        waiting = [(name, fact[0]) for name, fact in facts.items() if fact[1] and fact[0].kind != "other"]
        most = None
        if not hashes.fit(self.rows, len(waiting), self.memory):
            most = min(EXACT_DISTINCT, hashes.bound(min(len(waiting), BATCH_COLUMNS), self.memory))
            # What the first pass has estimated as far more than can be counted needs no further one.
            waiting = [(name, column) for name, column in waiting if (facts[name][-1] or 0) <= most]
        for start in range(0, len(waiting), BATCH_COLUMNS):
            self.progress({"phase": "distinct", "done": start, "total": len(waiting)})
            part = waiting[start: start + BATCH_COLUMNS]
            counts = hashes.distinct(self.connection, self.place, [self.value(column) for _, column in part], self.rows, most)
            for (name, _), (count, exact) in zip(part, counts):
                details[name]["distinct"] = min(count - (1 if details[name]["missing"] else 0), facts[name][1])
                details[name]["distinct_exact"] = exact

    def _frequent(self, facts, details):
        """Quantiles of numbers, and the most frequent of the columns with few values."""
        numbers = [(name, fact[0]) for name, fact in facts.items() if fact[0].kind in ("int", "float") and fact[1]]
        repeated = [(name, fact[0]) for name, fact in facts.items()
                    if fact[1] and details[name]["distinct"] is not None and details[name]["distinct"] <= FREQUENT_DISTINCT]
        quantile = "quantile_cont" if hashes.fit(self.rows, len(numbers), self.memory) else "approx_quantile"
        wanted = [(name, "quantiles", f"{quantile}({self.value(column)}, [0.25, 0.5, 0.75])") for name, column in numbers]
        if not self.columnar:
            wanted += [(name, "top", f"histogram({self.value(column)})") for name, column in repeated]
        for start in range(0, len(wanted), BATCH_COLUMNS):
            self.progress({"phase": "frequent", "done": start, "total": len(wanted)})
            part = wanted[start: start + BATCH_COLUMNS]
            for (name, what, _), value in zip(part, self.row([expression for _, _, expression in part])):
                if what == "quantiles" and value is not None:
                    details[name]["quantiles"] = {key: columns.plain(point) for key, point in zip(("0.25", "0.5", "0.75"), value)}
                elif value is not None:
                    details[name]["top"] = _top(sorted(value.items(), key=lambda item: -item[1]))
        for name, column in repeated if self.columnar else []:
            self.progress({"phase": "frequent", "done": len(wanted), "total": len(wanted)})
            value = self.value(column)
            details[name]["top"] = _top(self.connection.execute(
                f"SELECT {value}, count(*) FROM {self.place} WHERE {value} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 5").fetchall())

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
            (count, _), = hashes.distinct(self.connection, self.place, [self.value(facts[name][0])], self.rows)
            details[name]["distinct"], details[name]["distinct_exact"] = count, True
            if count == self.rows:
                return 0
        (count, _), = hashes.distinct(self.connection, self.place, [whole], self.rows, hashed=True)
        return self.rows - count


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


def many(values):
    """Whether nearly all of the first values of a column differ."""
    return len(values) >= 100 and len(set(values)) >= MANY_SHARE * len(values)


def _top(pairs):
    """The most frequent of values with their counts."""
    return [{"value": columns.plain(value), "count": count} for value, count in pairs[:5]]


def _written(column):
    """The name in SQL of what says how the cells of a column are written."""
    return quoted("written " + column.source)
