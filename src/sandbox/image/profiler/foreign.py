"""Tables of other programs, each read by one call of a library: Stata, SPSS, SAS, ORC, Avro, DuckDB, HTML pages."""

import re

from . import charset, columns
from .faults import Fault, one_line
from .loading import PATH, Load, call, literal

MAX_BYTES = 256 << 20
MAX_PAGE = 32 << 20
SAS7BDAT = bytes(12) + b"\xc2\xea\x81\x60"
SPREADSHEET_XML = b"urn:schemas-microsoft-com:office:spreadsheet"
PAGE = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<!--.{0,2000}?-->\s*)*<(?:!doctype\s+html|html|head|body|table|meta)\b", re.IGNORECASE | re.DOTALL)


def reader_of(head, suffix):
    """The name of the format and its `Load`, by first bytes or by name; None for other files."""
    if head.startswith(b"<stata_dta>") or suffix == "dta" and head[:1] and 102 <= head[0] <= 115:
        return "stata", Load(call("pd.read_stata", PATH, {}))
    if head.startswith((b"$FL2", b"$FL3")):
        return "spss", Load(f"pyreadstat.read_sav({PATH})[0]", ["pyreadstat"])
    if suffix == "por" and b"SPSS PORT" in head[:1000]:
        return "spss", Load(f"pyreadstat.read_por({PATH})[0]", ["pyreadstat"])
    if head.startswith(SAS7BDAT):
        return "sas", Load(f"pyreadstat.read_sas7bdat({PATH})[0]", ["pyreadstat"])
    if head.startswith(b"HEADER RECORD*******LIB"):
        return "sas", Load(f"pyreadstat.read_xport({PATH})[0]", ["pyreadstat"])
    if head.startswith(b"ORC"):
        return "orc", Load(call("pd.read_orc", PATH, {}))
    if head.startswith(b"Obj\x01"):
        return "avro", Load(f"polars.read_avro({PATH}).to_pandas()", ["polars"])
    return None


def profile(source, name, load):
    """The profile of a file that one call reads."""
    if source.size > MAX_BYTES:
        raise Fault("too_large", f"{source.name} ({source.kilobytes()}) is too large for this format's reader, which holds it as a whole",
                    "Convert it to Parquet or CSV, which are read as streams.")
    return _described(source, name, load, [])


def _described(source, name, load, warnings, extra=None):
    try:
        frame = load.run(source.path)
    except ImportError as error:
        package = load.imports[0] if load.imports else "lxml"
        raise Fault("unsupported", f"{source.name} is a {name} file, and its reader ({package}) is not in this sandbox yet",
                    f"Wait until the full set of packages is there, or add {package} to sandbox.packages.") from error
    except MemoryError:
        raise
    except Exception as error:  # readers raise errors of many kinds on damaged files
        raise Fault("corrupt", f"{source.name} is not a readable {name} file: {one_line(error)}", "Export it again, or export it as CSV.") from error
    described = columns.describe(frame)
    return {"file": source.name, "format": name, **(extra or {}), **described, "warnings": warnings + described["warnings"],
            "load": load.code(source.name)}


def is_duckdb(head):
    """Whether the bytes begin a DuckDB database."""
    return head[8:12] == b"DUCK"


def duckdb_profile(source):
    """The profile of a DuckDB database: its tables, the largest described."""
    import duckdb

    try:
        with duckdb.connect(source.path, read_only=True, config={"enable_external_access": "false"}) as connection:
            found = connection.execute("SELECT table_schema, table_name, table_type FROM information_schema.tables ORDER BY 1, 2").fetchall()
            tables = []
            for schema, table, kind in found[:500]:
                place = f'"{schema.replace(chr(34), chr(34) * 2)}"."{table.replace(chr(34), chr(34) * 2)}"'
                rows = connection.execute(f"SELECT count(*) FROM {place}").fetchone()[0]
                width = len(connection.execute(f"SELECT * FROM {place} LIMIT 0").description)
                tables.append({"name": table, "kind": "view" if kind == "VIEW" else "table", "rows": rows, "columns": width, "place": place})
    except duckdb.Error as error:
        raise Fault("corrupt", f"{source.name} cannot be read as a DuckDB database: {one_line(error)}", "Export its tables as Parquet.") from error
    if not tables:
        raise Fault("empty", f"{source.name} is a DuckDB database without tables", "Nothing to analyse.")
    largest = max(tables, key=lambda table: (table["kind"] == "table", table["rows"]))
    if largest["rows"] * largest["columns"] > 12_000_000:
        raise Fault("too_large", f"{source.name}: its largest table, {largest['name']}, has {largest['rows']:,} rows and {largest['columns']} columns",
                    "Export it as Parquet, which is read as a stream.")
    warnings = []
    if len(tables) > 1:
        others = ", ".join(f"{table['name']} ({table['rows']} × {table['columns']})" for table in tables if table is not largest)
        warnings.append(f"described is the largest table, {largest['name']}; the others are {columns.clip(others, 600)}")
    query = f"SELECT * FROM {largest.pop('place')}"
    for table in tables:
        table.pop("place", None)
    load = Load(f"duckdb.connect({PATH}, read_only=True).execute({literal(query)}).df()", ["duckdb"])
    return _described(source, "duckdb", load, warnings, {"table": largest["name"], "tables": tables})


def is_page(head):
    """Whether the bytes begin an HTML page."""
    return PAGE.match(head) is not None


def page_profile(source):
    """The profile of an HTML page under the name of a table: its largest table, or what the page says."""
    data = source.read(MAX_PAGE)
    found = charset.detect(data)
    title = re.search(r"<(title|h1)[^>]*>\s*(.{1,200}?)\s*</\1>", data.decode(found.codec, "replace"), re.IGNORECASE | re.DOTALL)
    said = f" ({columns.clip(' '.join(title.group(2).split()), 80)!r})" if title else ""
    nothing = Fault("corrupt", f"{source.name} is named .{source.suffix} but is an HTML page{said} without a table, as a server sends instead of the file",
                    "Download the file again, signed in where that is needed.")
    if b"<table" not in data.lower() or source.compression:
        raise nothing
    options = {"encoding": found.codec}
    every = Load(call("pd.read_html", PATH, options))
    try:
        frames = every.run(source.path)
    except ImportError as error:
        raise Fault("unsupported", f"{source.name} is an HTML page, and its reader (lxml) is not in this sandbox yet",
                    "Wait until the full set of packages is there, or export the table as CSV.") from error
    except ValueError as error:
        raise nothing from error
    place = max(range(len(frames)), key=lambda index: frames[index].size)
    warnings = [f"named .{source.suffix}, but it is an HTML page{said}; described is table {place + 1} of {len(frames)} in it"]
    return _described(source, "html", Load(f"{every.expression}[{place}]"), warnings, {"encoding": found.name, "bom": found.bom})


def refuse_spreadsheet_xml(source):
    """Say what an Excel 2003 XML spreadsheet is; there is no reader for it."""
    if SPREADSHEET_XML in source.head:
        raise Fault("unsupported", f"{source.name} is an XML spreadsheet of Excel 2003, which has no reader here",
                    "Open it in a spreadsheet program and save it as .xlsx.")
