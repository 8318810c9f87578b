"""Files too large to hold: every row is seen within a bound of memory (see `measure`), none is sampled."""

import duckdb
import numpy as np

from . import cells, charset, columns, delimited, drawn, transcode
from . import dialect as dialects
from . import layout as layouts
from . import plan as plans
from .faults import Fault, one_line
from .loading import PATH, Load
from .measure import Column, Table, connect, many, quoted, text

HEAD_BYTES = 1 << 18
# Bytes looked at in one go, which stay in the processor's cache, and of the end.
SURVEY_BYTES = 1 << 18
TAIL_BYTES = 1 << 16
LINE_END = 10


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
    if found.codec.startswith("utf-8"):
        try:
            return _profile(source, source, head, found, options, progress, strict)
        except duckdb.Error as error:
            late = None if strict or "unicode" not in str(error).lower() and "utf-8" not in str(error).lower() else _late_charset(source)
            if late is None:
                raise _scan_fault(source, error) from error
            found = late
    if found.codec.startswith(("utf-16", "utf-32")):
        head = transcode.text_of_head(head, found.codec).encode(found.codec)
    with transcode.as_utf8(source, found.codec, options, progress) as copy:
        if copy.replaced:
            if strict:
                raise Doubt("invalid bytes")
            found = found._replace(sure=False, note=f"{copy.replaced} place(s) hold invalid bytes for {found.name}; they are replaced when read")
        try:
            return _profile(source, copy, head, found, options, progress, strict)
        except duckdb.Error as error:
            raise _scan_fault(source, error) from error


def _late_charset(source):
    """The charset of text that begins in ASCII and is no UTF-8 further on; None when its lines do not tell."""
    lines, size = [], 0
    with source.stream() as stream:
        for line in stream:
            if not line.isascii():
                lines.append(line[:4096])
                size += len(lines[-1])
                if size > HEAD_BYTES:
                    break
    found = charset.detect(b"".join(lines))
    return None if found.codec.startswith("utf-8") else found


def _profile(source, place, head, found, options, progress, strict):
    """The profile of the text at `place`: the source itself, or its copy in UTF-8."""
    plan, layout, dialect = _plan(source, head, found)
    if not layout.width:
        if strict:
            raise Doubt("no data at the beginning")
        raise Fault("empty", f"{source.name} begins with {len(head):,} bytes of blank lines or delimiters alone", "Check the file's origin.")
    delimited.bound_columns(source, plan.width)
    warnings = [*([found.note] if found.note else []), *layout.notes]
    lines, underscores, odd = _survey(source, place, head, plan, layout)
    if drawn.find(plan.text.split("\n")):
        odd.append("the table seems to be drawn with bars and rules, which are read as cells")
    if strict and (odd or layout.dropped or plan.mark or dialect.comment or plan.width > 60 or plan.width < 2
                   or dialect.escape or len({len(row) for row in plan.body}) > 1):
        raise Doubt(odd)
    warnings += odd
    # About how many rows there are, when the first part is like the rest.
    expected = 0 if source.compression else int(source.size / max(1, len(head)) * len(plan.body) * 1.1)
    connection = connect(options)
    try:
        try:
            described = _table(connection, source, place, plan, options, progress, "true", expected, underscores).describe(warnings)
        except duckdb.InvalidInputException as error:
            if strict:
                raise
            warnings.append(f"not every line is as the first ones: {_place(error)}; missing cells count as empty, surplus cells are dropped")
            plan.cut = True
            described = _table(connection, source, place, plan, options, progress, "false, null_padding = true", expected, underscores).describe(warnings)
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


def _survey(source, place, head, plan, layout):
    """The number of lines (0 when it is not known), whether underscores stand below the first line, and what stands at the end
    or inside that a stream cannot mend."""
    odd = []
    lines = zeros = 0
    above = head.partition(b"\n")[0].count(b"_")
    underscores = -above if source.compression is None else 1
    tail = b""
    if source.compression is None:
        with place.stream() as stream:
            while chunk := stream.read(SURVEY_BYTES):
                lines += int(np.count_nonzero(np.frombuffer(chunk, np.uint8) == LINE_END))
                if b"\0" in chunk:
                    zeros += chunk.count(b"\0")
                if underscores <= 0 and b"_" in chunk:
                    underscores += chunk.count(b"_")
                tail = (tail + chunk)[-TAIL_BYTES:] if len(chunk) < TAIL_BYTES else chunk[-TAIL_BYTES:]
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
    return lines, underscores > 0, odd


def _place(error):
    """The line and the reason of a CSV error of duckdb, without its advice."""
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    return columns.clip("; ".join(line for line in lines if line.startswith(("Expected", "CSV Error on Line", "Invalid"))) or lines[0], 200)


def _table(connection, source, place, plan, options, progress, mode, expected, underscores):
    """The table in SQL of the text. Every marker of a missing value that the reader must know costs as much as the rest of its
    work on a cell of few letters, so at first it is told those of the first part only."""
    seen = {cell for row in plan.body for cell in row if cell in cells.NA_MARKERS} | {"", "NA"}
    few, every = (_csv_table(source, place, plan, markers, mode) for markers in (seen, cells.NA_MARKERS))
    return Table(connection, few, _guess(plan), options, progress, expected=expected, fuller=every if few != every else None,
                 size=0 if source.compression else source.size, underscores=underscores)


def _csv_table(source, place, plan, markers, mode):
    """The SQL table function that reads the text, every column as text, the markers as missing."""
    dialect, layout = plan.dialect, plan.layout
    if place.compression not in (None, "gzip", "zstd"):
        raise Fault("too_large", f"{source.name} unfolds to a large table inside {source.compression}, which is not read as a stream",
                    "Unpack it first, or compress it with gzip.")
    single = dialect.delimiter in (None, dialects.WHITESPACE)
    delimiter = plan.mark or (dialects.STAND_IN if single else dialect.delimiter)
    quote = dialect.quote or ('"' if single else "")
    names = {f"c{index}": "VARCHAR" for index in range(plan.width)}
    # pandas skips blank lines; in one column they look like empty cells.
    missing = ", ".join(text(marker) for marker in sorted(markers) if marker or plan.width > 1)
    # Comment lines are not counted among the skipped ones.
    skip = layout.first if dialect.comment else plan.places()[layout.first]
    arguments = [
        text(place.path), "auto_detect = false", "header = false", f"skip = {skip}", f"delim = {text(delimiter)}",
        f"quote = {text(quote)}", f"escape = {text(dialect.escape or quote)}",
        f"columns = {names}", f"nullstr = [{missing}]", f"strict_mode = {mode}",
    ]
    if dialect.comment:
        arguments.append(f"comment = {text(dialect.comment)}")
    if place.compression:
        arguments.append(f"compression = '{place.compression}'")
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
        out.append(Column(label, f"c{index}", kind, (plan.decimal, plan.thousands), many(values)))
    return out


def _scan_fault(source, error):
    if isinstance(error, duckdb.OutOfMemoryException):
        return Fault("memory", f"{source.name} ({source.kilobytes()}) needs more memory than the sandbox has: {one_line(error, 120)}",
                     "Raise sandbox.memory, or give a part of the file.")
    return Fault("syntax", f"{source.name} cannot be read to its end: {one_line(error)}",
                 "Mend the named line, or read it with on_bad_lines=\"warn\" knowing that rows are lost.")


def profile_parquet(source, options, schema, rows, progress):
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
        table = f"read_parquet({text(source.path)})"
        kinds = _with_many(connection, table, kinds)
        described = Table(connection, table, kinds, options, progress, typed=True, expected=rows, columnar=True).describe(warnings)
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


def _with_many(connection, table, kinds):
    """The columns, with those marked whose first rows nearly all differ."""
    rows = connection.execute(f"SELECT {', '.join(quoted(column.source) for column in kinds)} FROM {table} LIMIT 2000").fetchall()
    return [column._replace(many=column.kind != "other" and many([row[place] for row in rows if row[place] is not None]))
            for place, column in enumerate(kinds)]


JSON_KINDS = {"BIGINT": "int", "UBIGINT": "int", "HUGEINT": "int", "DOUBLE": "float", "BOOLEAN": "bool", "VARCHAR": "text"}


def profile_json(source, options, lines, progress):
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
        result = Table(connection, table, kinds, options, progress, typed=True).describe(warnings)
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
