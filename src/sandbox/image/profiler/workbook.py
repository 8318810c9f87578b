"""Workbooks (xlsx, xlsm, xlsb, xls, ods), read by calamine: every sheet named, the first one with data described.

`sheets`: name, rows and columns of data as loaded, used_range (A1 notation), used_rows and used_columns, hidden, merged (number of
merged ranges), error_cells where the format tells.
"""

import re
import zipfile
import zlib

import pandas as pd
from python_calamine import CalamineError, CalamineWorkbook, PasswordError, SheetTypeEnum, SheetVisibleEnum

from . import columns
from . import layout as layouts
from .faults import Fault, one_line
from .loading import PATH, Load, call

MAX_SHEETS = 255
MAX_CELLS = 12_000_000
MAX_XML = 1 << 30
# Rows in which header, titles and empty columns are looked for.
HEAD_ROWS = 5000
MAX_RATIO = 300
OLE_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")


def profile(source, options):
    """The profile of a workbook."""
    _check_container(source)
    try:
        book = CalamineWorkbook.from_path(source.path)
        sheets = [meta for meta in book.sheets_metadata if meta.typ in (SheetTypeEnum.WorkSheet, SheetTypeEnum.MacroSheet)]
    except PasswordError as error:
        raise _protected(source) from error
    except (CalamineError, OSError, ValueError) as error:
        raise _damaged(source, error) from error
    warnings, listed, grids = [], [], {}
    if len(sheets) > MAX_SHEETS:
        warnings.append(f"{len(sheets)} sheets; the first {MAX_SHEETS} are listed")
    for meta in sheets[:MAX_SHEETS]:
        entry, found = _sheet(book, meta, source, warnings)
        listed.append(entry)
        if found is not None:
            grids[meta.name] = found
    if not listed:
        raise Fault("empty", f"{source.name} has no worksheet with cells", "Nothing to analyse.")
    _count_errors(source, listed, warnings)
    full = [entry for entry in listed if entry["name"] in grids]
    chosen = next((entry for entry in full if not entry["hidden"]), full[0] if full else listed[0])
    result = {"file": source.name, "format": source.suffix if source.suffix in ("xlsx", "xlsm", "xlsb", "xls", "ods") else "xlsx",
              "sheet": chosen["name"], "sheets": listed}
    if len(listed) > 1:
        others = "; ".join(f"{entry['name']} ({entry['rows']} × {entry['columns']}{', hidden' if entry['hidden'] else ''})"
                           for entry in listed if entry is not chosen)
        warnings.append(f"described is the sheet {chosen['name']!r}; the others are {columns.clip(others, 800)}")
        most = max(full, key=lambda entry: entry["used_rows"], default=chosen)
        if most["used_rows"] > 2 * chosen["used_rows"]:
            warnings.append(f"most rows are in the sheet {most['name']!r}")
    if not full:
        empty = Load(call("pd.read_excel", PATH, {"sheet_name": chosen["name"], "header": None, "engine": "calamine"}))
        frame = empty.run(source.path) if chosen["used_rows"] else pd.DataFrame()
        described = columns.describe(frame)
        warnings += described.pop("warnings")
        said = "no sheet has a cell with a value" if chosen["used_rows"] else "every sheet is empty"
        return {**result, "header_rows": 0, **described, "warnings": [*warnings, said], "load": empty.code(source.name)}
    frame, load, layout = _load(source, chosen, *grids[chosen["name"]], warnings)
    described = columns.describe(frame)
    warnings += described.pop("warnings")
    chosen["rows"], chosen["columns"] = described["rows"], described["columns"]
    return {**result, "header_rows": len(layout.header), "preamble_lines": layout.preamble, "footer_lines": layout.footer,
            **described, "warnings": warnings, "load": load.code(source.name)}


def _check_extent(source, archive, infos):
    """Refuse sheets whose last cell is so far out that the dense range up to it would not fit in memory."""
    for info in infos:
        if not re.fullmatch(r"xl[/\\]worksheets[/\\][^/\\]+\.xml", info.filename, re.IGNORECASE) or info.file_size > (256 << 20):
            continue
        content = archive.read(info)
        rows = max(map(int, re.findall(rb'<(?:\w+:)?row [^>]*?\br="(\d{5,7})"', content)), default=1)
        names = set(re.findall(rb' r="([A-Z]{2,3})\d', content))
        width = max((_index(name.decode()) + 1 for name in names), default=26)
        if rows * width > 3 * MAX_CELLS:
            raise Fault("too_large", f"{source.name}: a sheet spans {rows:,} rows and {width:,} columns; at most {MAX_CELLS:,} cells are read",
                        "Delete stray cells far from the table, or export it as CSV.")


def _index(name):
    """The column of letters, counted from 0: A is 0, AB is 27."""
    out = 0
    for char in name:
        out = 26 * out + ord(char) - 64
    return out - 1


def _protected(source):
    return Fault("encrypted", f"{source.name} is protected by a password", "Save a copy without password and give that.")


def _damaged(source, error):
    text = one_line(error)
    if "assword" in text or "encrypt" in text.lower():
        return _protected(source)
    return Fault("corrupt", f"{source.name} is not a readable workbook: {text}", "Open it in a spreadsheet program and save it again, or export it as CSV.")


def _check_container(source):
    """Refuse archives that unfold far beyond their size, and files that are no workbook at all."""
    head = source.head
    if head.startswith(b"PK\x03\x04"):
        try:
            with zipfile.ZipFile(source.path) as archive:
                infos = archive.infolist()
                content = next((info for info in infos if info.filename.lower() == "content.xml"), None)
                if content is not None and content.file_size < (64 << 20):
                    _check_repeats(source, archive.read(content))
                manifest = next((info for info in infos if info.filename == "META-INF/manifest.xml"), None)
                if manifest is not None and manifest.file_size < (1 << 20) and b"encryption-data" in archive.read(manifest):
                    raise _protected(source)
                unfolded = sum(info.file_size for info in infos)
                if unfolded <= MAX_XML and not any(info.file_size > MAX_RATIO * max(info.compress_size, 1) > (64 << 20) for info in infos):
                    _check_extent(source, archive, infos)
        except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, NotImplementedError, EOFError, zlib.error) as error:
            raise _damaged(source, error) from error
        if unfolded > MAX_XML or any(info.file_size > (64 << 20) and info.file_size > MAX_RATIO * max(info.compress_size, 1) for info in infos):
            raise Fault("too_large", f"{source.name} would unfold from {source.size:,} to {unfolded:,} bytes, as a zip bomb does",
                        "Export the sheet you need as CSV.")
        return
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        if OLE_ENCRYPTED in head or _ole_has(source, OLE_ENCRYPTED):
            raise _protected(source)
        return
    if head.lstrip()[:1] == b"<" or head[:2] in (b"\x09\x08", b"\x09\x04", b"\x09\x02", b"\x09\x00"):
        return
    raise Fault("corrupt", f"{source.name} is named .{source.suffix} but is no workbook (first bytes {head[:8].hex(' ')})",
                "Check the file's origin; if it is text, rename it to .csv.")


def _ole_has(source, mark):
    with open(source.path, "rb") as stream:
        return mark in stream.read(8 << 20)


def _check_repeats(source, content):
    """ODS repeats rows and columns by number: refuse cells with content that are repeated without bound."""
    for match in re.finditer(rb'number-rows-repeated="(\d+)"[^>]*>(?:(?!</table:table-row>).){0,4000}', content[: 32 << 20], re.DOTALL):
        rows = int(match.group(1))
        wide = max([int(value) for value in re.findall(rb'number-columns-repeated="(\d+)"[^>]*office:', match.group(0))] or [1])
        if rows * wide > MAX_CELLS and b"office:value" in match.group(0):
            raise Fault("too_large", f"{source.name} repeats filled cells {rows:,} × {wide:,} times, beyond any real sheet", "Check the file's origin.")
    for value in re.findall(rb'number-columns-repeated="(\d+)"[^>]*office:value', content[: 32 << 20]):
        if int(value) > 1_000_000:
            raise Fault("too_large", f"{source.name} repeats a filled cell {int(value):,} times, beyond any real sheet", "Check the file's origin.")


def _sheet(book, meta, source, warnings):
    """The entry of a sheet, and its first cells from A1 on as text with their layout, or None where it has none."""
    entry = {"name": meta.name, "rows": 0, "columns": 0, "used_range": None, "used_rows": 0, "used_columns": 0,
             "hidden": meta.visible != SheetVisibleEnum.Visible, "merged": 0}
    try:
        sheet = book.get_sheet_by_name(meta.name)
        height, width = sheet.total_height, sheet.total_width
        if height * width > MAX_CELLS:
            raise Fault("too_large", f"{source.name}: sheet {meta.name!r} spans {height:,} × {width:,} cells; at most {MAX_CELLS:,} are read",
                        "Delete stray cells far from the table, or export it as CSV.")
        grid = sheet.to_python(skip_empty_area=False)
    except PasswordError as error:
        raise _protected(source) from error
    except (CalamineError, OSError, ValueError, OverflowError) as error:
        if len(book.sheet_names) == 1:
            raise _damaged(source, error) from error
        warnings.append(f"sheet {meta.name!r} cannot be read: {one_line(error, 120)}")
        return entry, None
    if sheet.start is None or sheet.end is None:
        return entry, None
    (top, left), (bottom, right) = sheet.start, sheet.end
    entry["used_range"] = f"{letters(left)}{top + 1}:{letters(right)}{bottom + 1}"
    entry["used_rows"], entry["used_columns"] = bottom - top + 1, right - left + 1
    try:
        entry["merged"] = len(sheet.merged_cell_ranges or [])
    except (CalamineError, ValueError):
        pass
    if not grid or all(cell == "" for row in grid for cell in row):
        return {**entry, "columns": entry["used_columns"]}, None
    rows = _text(grid)
    layout = layouts.find(rows, ",")
    # Beyond what was looked at, every row is data.
    entry["rows"] = layout.end - layout.first - len(layout.dropped) + len(grid) - len(rows)
    entry["columns"] = entry["used_columns"]
    return entry, (rows, layout)


def letters(index):
    """The letters of a column counted from 0: 0 is A, 27 is AB."""
    out = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        out = chr(65 + rest) + out
    return out


def _text(grid):
    """The first cells as text, for the search of header and titles."""
    return [["" if cell is None else str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell) for cell in row]
            for row in grid[:HEAD_ROWS]]


def _load(source, entry, rows, layout, warnings):
    """The frame of a sheet, the call that loads it, and the layout found."""
    width = max(map(len, rows), default=0)
    options = {"sheet_name": entry["name"], "engine": "calamine"}
    first_column = next((index for index in range(width) if any(index < len(row) and row[index].strip() for row in rows)), 0)
    left = int(first_column)
    if not layout.header:
        options["header"] = None
        if layout.preamble:
            options["skiprows"] = layout.preamble
        warnings.append("no header row was recognised: the first row counts as data and columns are numbered from 0")
    elif len(layout.header) > 1:
        from .plan import unique

        names = layouts.join_header([rows[index] for index in layout.header], width)
        options.update(header=None, names=unique(names + [""] * (width - len(names)))[left:], skiprows=layout.header[-1] + 1)
        warnings.append(f"{len(layout.header)} header rows are joined into one name for each column")
    elif layout.preamble:
        options["skiprows"] = layout.header[0]
    if layout.dropped:
        skipped = [*range(options.pop("skiprows", 0)), *layout.dropped]
        options["skiprows"] = skipped
    if layout.footer and len(rows) < HEAD_ROWS:
        options["nrows"] = layout.end - layout.first - len(layout.dropped)
    warnings += layout.notes
    if layout.preamble:
        warnings.append(f"{layout.preamble} row(s) before the table are skipped")
    if left:
        options["usecols"] = f"{letters(left)}:{letters(width - 1)}"
        warnings.append(f"{left} empty column(s) before the table are skipped")
    if entry["merged"]:
        warnings.append(f"{entry['merged']} merged range(s): only the first cell of each holds the value")
    blank = [str(index + 1) for index, name in enumerate((layout.names or [])[left:]) if not name.strip()]
    if blank:
        warnings.append(f"column(s) without a name: {', '.join(blank[:10])}")
    repeated = sorted({name for name in layout.names or [] if name.strip() and (layout.names or []).count(name) > 1})
    if repeated:
        warnings.append(f"column name(s) used more than once, numbered when loaded: {', '.join(repeated[:5])}")
    load = Load(call("pd.read_excel", PATH, options))
    try:
        return load.run(source.path), load, layout
    except (ValueError, TypeError, KeyError, IndexError, CalamineError, OverflowError, pd.errors.ParserError):
        plain = Load(call("pd.read_excel", PATH, {"sheet_name": entry["name"], "header": None, "engine": "calamine"}))
        warnings.append("header and titles could not be told apart: the whole used range is loaded")
        return plain.run(source.path), plain, layouts.Layout()


def _count_errors(source, listed, warnings):
    """Count error cells (#DIV/0! and the like) of xlsx sheets, which load as missing."""
    if not source.head.startswith(b"PK\x03\x04"):
        return
    total, kinds, unknown = 0, set(), 0
    try:
        with zipfile.ZipFile(source.path) as archive:
            for info in archive.infolist():
                if re.fullmatch(r"xl[/\\]worksheets[/\\][^/\\]+\.xml", info.filename, re.IGNORECASE) and info.file_size < (64 << 20):
                    content = archive.read(info)
                    found = re.findall(rb't="e"[^>]*>(?:<f[^>]*>[^<]*</f>|<f[^>]*/>)?<v>([^<]{1,20})</v>', content)
                    unknown += len(re.findall(rb"</f>\s*(?:<v\s*/>|<v></v>|</c>)", content))
                    total += len(found)
                    kinds |= {value.decode("ascii", "replace") for value in found[:1000]}
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, NotImplementedError, EOFError):
        return
    if unknown:
        warnings.append(f"{unknown} formula cell(s) have no stored result and load as missing; open and save the workbook once in a spreadsheet program")
    if total:
        warnings.append(f"{total} error cell(s) ({', '.join(sorted(kinds)[:7])}) load as missing")
