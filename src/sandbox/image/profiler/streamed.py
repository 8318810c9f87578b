"""Files too large to hold: every row is seen by duckdb within a bound of memory, spilling to scratch.

Three passes: counts, missing, extremes and means (with distinct counts estimated); then exact distinct counts, quantiles and
frequent values where they fit; then duplicate rows. Cells of text are judged as pandas would load them: all numbers, or text.
Distinct counts are exact up to `EXACT_DISTINCT` values a column; beyond, they are marked approximate and never above the present cells.
"""

import os
import tempfile
from collections import namedtuple

import duckdb

from . import cells, charset, columns, delimited
from . import dialect as dialects
from . import layout as layouts
from . import plan as plans
from .faults import Fault, one_line
from .loading import PATH, Load

EXACT_DISTINCT = 500_000
FREQUENT_DISTINCT = 2_000
HEAD_BYTES = 1 << 18
DUPLICATE_ROWS = 60_000_000
BATCH_COLUMNS = 60

Column = namedtuple("Column", "name source kind marks", defaults=((".", None),))
Column.__doc__ = """name as loaded, source: name in SQL, kind: int, float, bool, text, moment or other, marks: decimal and
thousands mark of its numbers."""


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


def connect(options):
    """A duckdb connection within the memory of the sandbox."""
    memory = int(options.get("memory_bytes") or (1 << 30))
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


def quoted(name):
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def text(value):
    """A text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


class Doubt(Exception):
    """Something in the text that the reading as a whole understands better."""


def profile(source, options, progress, strict=False):
    """The profile of large delimited text. `strict`: raise `Doubt` rather than warn, the text can be read otherwise."""
    head = source.read(HEAD_BYTES, exact=False)
    cut = max(head.rfind(b"\n"), head.rfind(b"\r"))
    if cut < 0 and len(head) == HEAD_BYTES:
        if strict:
            raise Doubt("very long lines")
        raise Fault("too_large", f"{source.name} ({source.kilobytes()}) has no line end in its first {HEAD_BYTES:,} bytes",
                    "This is not a table of rows; break the line, or give the right file.")
    if len(head) == HEAD_BYTES:
        head = head[: cut + 1]
    found = charset.detect(head, complete=False)
    if not found.codec.startswith("utf-8"):
        if strict:
            raise Doubt(found.name)
        raise Fault("too_large", f"{source.name} ({source.kilobytes()}) is large and in {found.name}; large text is read as UTF-8 only",
                    f'Convert it first, for example: iconv -f {found.name} -t utf-8 "{source.name}".')
    plan, layout, dialect = _plan(source, head, found)
    if not layout.width:
        if strict:
            raise Doubt("no data at the beginning")
        raise Fault("empty", f"{source.name} begins with {len(head):,} bytes of blank lines or delimiters alone", "Check the file's origin.")
    delimited.bound_columns(source, plan.width)
    warnings = list(layout.notes)
    lines, odd = _survey(source, head, plan, layout)
    if strict and (odd or layout.dropped or plan.mark or dialect.comment or plan.width > 60 or plan.width < 2
                   or dialect.escape or len({len(row) for row in plan.body}) > 1):
        raise Doubt(odd)
    warnings += odd
    connection = connect(options)
    try:
        try:
            table = _csv_table(source, plan, dialect, layout, "true")
            described = _measure(connection, table, _guess(plan), options, progress, warnings)
        except duckdb.InvalidInputException as error:
            if strict:
                raise
            warnings.append(f"not every line is as the first ones: {_place(error)}; missing cells count as empty, surplus cells are dropped")
            plan.cut = True
            table = _csv_table(source, plan, dialect, layout, "false, null_padding = true")
            described = _measure(connection, table, _guess(plan), options, progress, warnings)
    except duckdb.Error as error:
        raise _scan_fault(source, error) from error
    finally:
        connection.close()
    if lines and described["rows"] < 0.9 * lines * len(plan.rows) / max(1, plan.text.count("\n")):
        missing = f"{lines:,} lines hold only {described['rows']:,} rows: many line breaks inside quoted cells, or a quote that is never closed"
        if strict:
            raise Doubt(missing)
        warnings.append(missing)
    warnings += plan.remarks()
    load = plan.expression(plan.options(True))
    return {
        "file": source.name,
        "format": {"\t": "tsv"}.get(dialect.delimiter, "csv"),
        **({"compression": source.compression} if source.compression else {}),
        "encoding": found.name, "bom": found.bom, "delimiter": plan.mark or dialect.delimiter or ",", "quote": dialect.quote or '"',
        "decimal": plan.decimal, "thousands": plan.thousands, "header_rows": len(layout.header),
        "preamble_lines": layout.preamble, "footer_lines": 0,
        **described, "warnings": warnings, "load": load.code(source.name),
    }


def _plan(source, head, found):
    """The loading plan, by the first part of the file."""
    original, found = delimited.decode(head, found)
    plain = dialects.normalise(original.lstrip("\ufeff"))
    mark = dialects.several_characters(plain, source.suffix)
    if mark:
        plain = plain.replace(mark, dialects.STAND_IN)
    dialect, _ = dialects.detect(plain, source.suffix)
    rows = dialects.records(plain, dialect)
    layout = layouts.find(rows, dialect.delimiter)
    layout.footer, layout.end = 0, len(rows)
    return plans.Plan(source, original, plain, dialect, layout, rows, found, [], False, mark), layout, dialect


def _survey(source, head, plan, layout):
    """The number of lines (0 when it is not known) and what stands at the end or inside that a stream cannot mend."""
    odd = []
    lines = zeros = 0
    tail = b""
    if source.compression is None:
        with open(source.path, "rb") as stream:
            while chunk := stream.read(1 << 22):
                lines += chunk.count(b"\n")
                zeros += chunk.count(b"\0")
                tail = (tail + chunk)[-65536:]
    if zeros:
        odd.append(f"{zeros} zero byte(s) in the text")
    text_of_tail = tail.decode("utf-8", "replace").split("\n", 1)[-1]
    if plan.mark:
        text_of_tail = text_of_tail.replace(plan.mark, dialects.STAND_IN)
    rows = dialects.records(dialects.normalise(text_of_tail), plan.dialect)[1:]
    last = [row for row in rows[-30:] if row]
    if any(cells.is_blank(row) for row in last) or any(len(row) < layout.width for row in last):
        odd.append("the last lines hold blank records, notes or fewer cells than the table; they count as rows")
    if layout.names and rows:
        title = [cell.strip() for cell in layout.names]
        if any([cell.strip() for cell in row] == title for row in rows):
            odd.append("the header stands again near the end; such lines count as rows")
    return lines, odd


def _place(error):
    """The line and the reason of a CSV error of duckdb, without its advice."""
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    return columns.clip("; ".join(line for line in lines if line.startswith(("Expected", "CSV Error on Line", "Invalid"))) or lines[0], 200)


def _csv_table(source, plan, dialect, layout, mode):
    """The SQL table function that reads the text, every column as text."""
    if source.compression not in (None, "gzip", "zstd"):
        raise Fault("too_large", f"{source.name} unfolds to a large table inside {source.compression}, which is not read as a stream",
                    "Unpack it first, or compress it with gzip.")
    single = dialect.delimiter in (None, dialects.WHITESPACE)
    delimiter = plan.mark or (dialects.STAND_IN if single else dialect.delimiter)
    quote = dialect.quote or ('"' if single else "")
    names = {f"c{index}": "VARCHAR" for index in range(plan.width)}
    # pandas skips blank lines; in one column they look like empty cells.
    missing = ", ".join(text(marker) for marker in sorted(cells.NA_MARKERS) if marker or plan.width > 1)
    # Comment lines are not counted among the skipped ones.
    skip = layout.first if dialect.comment else plan.places()[layout.first]
    arguments = [
        text(source.path), "auto_detect = false", "header = false", f"skip = {skip}", f"delim = {text(delimiter)}",
        f"quote = {text(quote)}", f"escape = {text(dialect.escape or quote)}",
        f"columns = {names}", f"nullstr = [{missing}]", f"strict_mode = {mode}",
    ]
    if dialect.comment:
        arguments.append(f"comment = {text(dialect.comment)}")
    if source.compression:
        arguments.append(f"compression = '{source.compression}'")
    table = f"read_csv({', '.join(arguments)})"
    return table if plan.width > 1 else f"(SELECT * FROM {table} WHERE c0 IS NULL OR c0 <> '')"


def _guess(plan):
    """Columns with the kinds that the first rows suggest; the passes over all rows prove or change them."""
    names = plan.layout.names
    if names is None:
        labels = [str(index) for index in range(plan.width)]
    else:
        labels = plans.unique(list(names)[: plan.width] + [""] * (plan.width - len(names)))
    out = []
    for index, label in enumerate(labels):
        values = [row[index].strip() for row in plan.body[:5000] if index < len(row)]
        values = [value for value in values if value not in cells.NA_MARKERS]
        plain = [value.replace(plan.thousands, "") if plan.thousands else value for value in values]
        plain = [value.replace(plan.decimal, ".") for value in plain]
        if label in plan.protected:
            kind = "text"
        elif values and all(value in ("True", "TRUE", "true", "False", "FALSE", "false") for value in values):
            kind = "bool"
        elif all(value.lstrip("+-").isdigit() for value in plain):
            kind = "int"
        elif all(cells.NUMBER.fullmatch(value) or value.lower() in ("inf", "-inf") for value in plain):
            kind = "float"
        else:
            kind = "text"
        out.append(Column(label, f"c{index}", kind, (plan.decimal, plan.thousands)))
    return out


def _scan_fault(source, error):
    if isinstance(error, duckdb.OutOfMemoryException):
        return Fault("memory", f"{source.name} ({source.kilobytes()}) needs more memory than the sandbox has: {one_line(error, 120)}",
                     "Raise sandbox.memory, or give a part of the file.")
    return Fault("syntax", f"{source.name} cannot be read to its end: {one_line(error)}",
                 "Mend the named line, or read it with on_bad_lines=\"warn\" knowing that rows are lost.")


INTEGER = "regexp_full_match({0}, '\\s*[+-]?[0-9]+\\s*')"
FACTS = {
    "int": ["count(try_cast({0} AS BIGINT)) FILTER (" + INTEGER + ")", "min(try_cast({0} AS BIGINT))", "max(try_cast({0} AS BIGINT))",
            "avg(try_cast({0} AS BIGINT))", "count(*) FILTER (starts_with({0}, '0') AND length({0}) > 1)", "approx_count_distinct(try_cast({0} AS BIGINT))"],
    "float": ["count(try_cast({0} AS DOUBLE)) FILTER (NOT contains({0}, '_'))", "min(try_cast({0} AS DOUBLE))", "max(try_cast({0} AS DOUBLE))", "avg(try_cast({0} AS DOUBLE))", "0",
              "approx_count_distinct(try_cast({0} AS DOUBLE))"],
    "bool": ["count(*) FILTER ({0} IN ('True', 'TRUE', 'true', 'False', 'FALSE', 'false'))", "min(lower({0}))", "max(lower({0}))", "NULL", "0",
             "approx_count_distinct(lower({0}))"],
    "text": ["count({0})", "min({0})", "max({0})", "NULL", "max(length({0}))", "approx_count_distinct({0})"],
}
TYPED = {
    "int": ["count({0})", "min({0})", "max({0})", "avg({0})", "0", "approx_count_distinct({0})"],
    "float": ["count({0})", "min({0})", "max({0})", "avg({0})", "0", "approx_count_distinct({0})"],
    "bool": ["count({0})", "min({0})", "max({0})", "NULL", "0", "approx_count_distinct({0})"],
    "text": FACTS["text"],
    "moment": ["count({0})", "min({0})", "max({0})", "NULL", "0", "approx_count_distinct({0})"],
    "other": ["count({0})", "NULL", "NULL", "NULL", "0", "NULL"],
}
VALUE = {"int": "try_cast({0} AS BIGINT)", "float": "try_cast({0} AS DOUBLE)", "bool": "lower({0})", "text": "{0}"}
WIDER = {"int": "float", "float": "text", "bool": "text"}


def _measure(connection, table, guessed, options, progress, warnings, typed=False):
    """Counts, column details and duplicates of a table of text cells (or, `typed`, of typed ones)."""
    facts, shown = {}, guessed[: columns.DETAIL_COLUMNS]
    rows, waiting, notes = None, shown, {}
    while waiting:
        progress({"phase": "columns", "done": len(shown) - len(waiting), "total": len(shown)})
        # Very wide tables take several passes, so that the states of all the aggregates fit in memory.
        batch, later = waiting[:BATCH_COLUMNS], waiting[BATCH_COLUMNS:]
        wanted = [expression.format(field(column)) for column in batch
                  for expression in ["count({0})", *(TYPED if typed else FACTS)[column.kind]]]
        values = connection.execute(f"SELECT count(*), {', '.join(wanted)} FROM {table}").fetchone()
        rows, again = values[0], []
        for index, column in enumerate(batch):
            present, fitting, low, high, mean, extra, distinct = values[1 + 7 * index: 8 + 7 * index]
            if column.kind in WIDER and not typed and fitting < present:
                wider = WIDER[column.kind]
                notes.setdefault(column.name, []).append((column.kind, fitting, present - fitting))
                again.append(column._replace(kind=wider))
                continue
            facts[column.name] = (column, present, low, high, mean, extra, distinct)
        waiting = again + later
    details = {name: _detail(*fact, rows, typed) for name, fact in facts.items()}
    _second_pass(connection, table, facts, details, rows, progress, typed)
    for name, changes in notes.items():
        kind, fitting, odd = changes[-1]
        if facts[name][0].kind == "text" and fitting > odd:
            details[name].setdefault("notes", []).append(_first_odd(connection, table, facts[name][0], kind, fitting, odd))
    for detail in details.values():
        detail.pop("estimate", None)
    duplicates = _duplicates(connection, table, guessed, rows, details, progress)
    if duplicates is None:
        warnings.append("duplicate rows were not counted: the table has too many rows for the memory of the sandbox")
    elif duplicates:
        warnings.append(f"{duplicates} duplicate row(s)")
    if any(not detail["distinct_exact"] for detail in details.values()):
        warnings.append("distinct counts marked as not exact are estimates (about 2 % off)")
    sample = connection.execute(f"SELECT {', '.join(quoted(c.source) for c in shown[:50])} FROM {table} LIMIT 5").fetchall()
    return {
        "rows": rows, "columns": len(guessed), "duplicate_rows": duplicates,
        "missing_cells": sum(detail["missing"] for detail in details.values()),
        "columns_detail": [details[column.name] for column in shown],
        "sample": [["" if cell is None else columns.clip(" ".join(str(cell).split()), 60) for cell in row] for row in sample],
    }


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
              "distinct": min(distinct, present) if distinct is not None else None, "distinct_exact": present == 0,
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


def _second_pass(connection, table, facts, details, rows, progress, typed):
    """Exact distinct counts, quantiles and frequent values of the columns whose distinct values fit in memory."""
    wanted, places = [], []
    for name, (column, present, _, _, _, _, distinct) in facts.items():
        if not present or distinct is None:
            continue
        value = quoted(column.source) if typed else VALUE[column.kind].format(field(column))
        if distinct <= FREQUENT_DISTINCT:
            wanted.append(f"histogram({value})")
            places.append((name, "histogram"))
        elif distinct <= EXACT_DISTINCT:
            wanted.append(f"count(DISTINCT {value})")
            places.append((name, "distinct"))
        if column.kind in ("int", "float"):
            wanted.append(f"approx_quantile({value}, [0.25, 0.5, 0.75])")
            places.append((name, "quantiles"))
    if not wanted:
        return
    values = []
    for start in range(0, len(wanted), BATCH_COLUMNS):
        progress({"phase": "distinct", "done": start, "total": len(wanted)})
        values += connection.execute(f"SELECT {', '.join(wanted[start: start + BATCH_COLUMNS])} FROM {table}").fetchone()
    for (name, what), value in zip(places, values):
        detail = details[name]
        if what == "distinct":
            detail["distinct"], detail["distinct_exact"] = value, True
        elif what == "quantiles" and value is not None:
            detail["quantiles"] = {key: columns.plain(point) for key, point in zip(("0.25", "0.5", "0.75"), value)}
        elif what == "histogram" and value is not None:
            detail["distinct"], detail["distinct_exact"] = len(value), True
            most = sorted(value.items(), key=lambda item: -item[1])[:5]
            detail["top"] = [{"value": columns.plain(key), "count": count} for key, count in most]


def _first_odd(connection, table, column, kind, fitting, odd):
    """The note on a column that is of one kind but for some cells."""
    cell = field(column._replace(kind=kind))
    fits = {"int": INTEGER.format(cell), "float": f"try_cast({cell} AS DOUBLE) IS NOT NULL"}.get(kind, f"lower({cell}) IN ('true', 'false')")
    example = connection.execute(
        f"SELECT {quoted(column.source)} FROM {table} WHERE {cell} IS NOT NULL AND NOT ({fits}) LIMIT 1").fetchone()
    shown = repr(columns.clip(str(example[0]), 30)) if example else ""
    return f"mostly {'numbers' if kind != 'bool' else 'booleans'} ({fitting:,}), but {odd:,} cell(s) are not (such as {shown}), so the column stays text"


def _duplicates(connection, table, guessed, rows, details, progress):
    """Rows equal to an earlier one, by 64-bit hashes of the rows; None when there are too many."""
    if any(detail["distinct_exact"] and detail["distinct"] == rows and not detail["missing"] for detail in details.values()):
        return 0
    if rows > DUPLICATE_ROWS:
        return None
    progress({"phase": "duplicates", "done": 0, "total": rows})
    fields = ", ".join(quoted(column.source) for column in guessed)
    try:
        return connection.execute(f"SELECT count(*) - count(DISTINCT hash({fields})) FROM {table}").fetchone()[0]
    except duckdb.OutOfMemoryException:
        return None


def profile_parquet(source, options, schema, rows):
    """The profile of a large Parquet file."""
    import pyarrow as pa

    kinds = []
    for field in schema:
        kind = field.type
        name = ("int" if pa.types.is_integer(kind) else "float" if pa.types.is_floating(kind) else "bool" if pa.types.is_boolean(kind)
                else "text" if pa.types.is_string(kind) or pa.types.is_large_string(kind)
                else "moment" if pa.types.is_temporal(kind) and not pa.types.is_duration(kind) else "other")
        kinds.append(Column(field.name, field.name, name))
    warnings = []
    connection = connect(options)
    try:
        described = _measure(connection, f"read_parquet({text(source.path)})", kinds, options, lambda event: None, warnings, typed=True)
    except duckdb.Error as error:
        raise Fault("corrupt", f"{source.name} is not a readable Parquet file: {one_line(error)}", "Write or download the file again.") from error
    finally:
        connection.close()
    usual = schema.empty_table().to_pandas().dtypes
    for detail in described["columns_detail"]:
        base = str(usual.get(detail["name"], "object"))
        if base.startswith(("int", "uint")) and detail["missing"]:
            base = "float64"
        elif base == "bool" and detail["missing"]:
            base = "object"
        detail["dtype"] = base
    if described["rows"] != rows:
        raise Fault("corrupt", f"{source.name} says that it holds {rows} rows, but {described['rows']} are there", "Write the file again.")
    load = Load(f"pd.read_parquet({PATH})")
    return {"file": source.name, "format": "parquet", **described, "warnings": warnings, "load": load.code(source.name)}


JSON_KINDS = {"BIGINT": "int", "UBIGINT": "int", "HUGEINT": "int", "DOUBLE": "float", "BOOLEAN": "bool", "VARCHAR": "text"}


def profile_json(source, options, lines):
    """The profile of large JSON Lines, or of a large JSON list of records."""
    if source.compression not in (None, "gzip", "zstd"):
        raise Fault("too_large", f"{source.name} unfolds to a large file inside {source.compression}", "Unpack it first, or compress it with gzip.")
    warnings = []
    shape = "newline_delimited" if lines else "array"
    table = f"read_json({text(source.path)}, format = '{shape}', sample_size = -1, maximum_object_size = {16 << 20}, map_inference_threshold = -1)"
    connection = connect(options)
    try:
        described = connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()
        kinds = [Column(name, name, JSON_KINDS.get(kind, "moment" if kind.startswith(("DATE", "TIMESTAMP")) else "other")) for name, kind, *_ in described]
        result = _measure(connection, table, kinds, options, lambda event: None, warnings, typed=True)
    except duckdb.Error as error:
        raise Fault("syntax", f"{source.name} is not {'JSON Lines' if lines else 'a JSON list of records'}: {one_line(error)}",
                    "Mend it at the named place; each record must be a JSON object.") from error
    finally:
        connection.close()
    for detail, column in zip(result["columns_detail"], kinds):
        if column.kind in ("moment", "other"):
            detail["dtype"] = "object"
    opened = f'gzip.open({PATH}, "rt", encoding="utf-8")' if source.compression == "gzip" else (
        f'io.StringIO(pa.input_stream({PATH}, compression="zstd").read().decode("utf-8"))' if source.compression else f'open({PATH}, encoding="utf-8")')
    imports = ["json", *{"gzip": ["gzip"], "zstd": ["io", "pyarrow as pa"]}.get(source.compression, [])]
    load = Load(f"pd.DataFrame([json.loads(line) for line in {opened} if line.strip()])" if lines else f"pd.DataFrame(json.load({opened}))", imports)
    return {"file": source.name, "format": "jsonl" if lines else "json", "encoding": "utf-8", "bom": False, **result, "warnings": warnings, "load": load.code(source.name)}
