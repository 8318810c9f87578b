"""Delimited text of moderate size: found dialect and layout, the call that loads it, and the profile of what it loads."""

from collections import Counter

from . import charset, columns, drawn, repair
from . import dialect as dialects
from . import layout as layouts
from .faults import Fault
from .loading import literal
from .plan import Plan

MAX_LINE = 32 << 20
MAX_COLUMNS = 20_000


def profile(source, data, progress=None):
    """The profile of delimited text, or a Fault. `data` are the bytes of the content."""
    found = charset.detect(data)
    text, found = decode(data, found)
    return of_text(source, text, found, data)


def decode(data, found):
    """The bytes as text, and the charset with a note where bytes could not be read."""
    try:
        return data.decode(found.codec), found
    except UnicodeDecodeError as error:
        note = found.note or (f"invalid bytes {data[error.start: error.end][:4].hex(' ')} for {found.name} at byte {error.start}"
                              f" (line {data.count(bytes([10]), 0, error.start) + 1}); they are replaced when read")
        return data.decode(found.codec, "replace"), found._replace(sure=False, note=note)


def of_text(source, original, found, data):
    """The profile of decoded text."""
    warnings = []
    if original.startswith("\ufeff"):
        original = original[1:]
    zeros = original.count("\0")
    if zeros:
        line = original.count("\n", 0, original.index("\0")) + 1
        warnings.append(f"{zeros} zero byte(s) in the text, the first on line {line}; they are dropped when loading")
    marked = original.count("\ufeff")
    if marked:
        warnings.append(f"{marked} byte order mark(s) inside the text, as where files were joined; they are dropped when loading")
    text = dialects.normalise(original)
    if not zeros and not marked and (table := drawn.profile(source, text, found)):
        return table
    if not text.strip():
        raise Fault("empty", f"{source.name} holds no data: {'no bytes' if not data else 'only blank lines'}", "Nothing to analyse.")
    _bound_lines(source, text)
    if found.note:
        warnings.append(found.note)
    if source.misnamed:
        warnings.append(f"named .{source.misnamed}, but it is delimited text")
    if source.others:
        warnings.append(f"the archive also holds {columns.clip(', '.join(source.others), 300)}; described is {source.member}")
    mark = dialects.several_characters(text, source.suffix)
    if mark:
        text = text.replace(mark, dialects.STAND_IN)
        warnings.append(f"the delimiter is {literal(mark)}, which is replaced by one character when loading")
    dialect, certainty = dialects.detect(text, source.suffix)
    bound_columns(source, max(map(len, dialects.records(text, dialect, 5)), default=0))
    rows = dialects.records(text, dialect)
    unclosed = _unclosed_quote(text, dialect, rows)
    if unclosed:
        warnings.append(f"a quote opened on line {unclosed} is never closed; quotes are read as plain characters")
        dialect = dialect._replace(quote=None)
        rows = dialects.records(text, dialect)
    layout = layouts.find(rows, dialect.delimiter)
    if not layout.width:
        raise Fault("empty", f"{source.name} holds nothing but delimiters and blank lines", "Nothing to analyse.")
    bound_columns(source, layout.width)
    replacements, mended = repair.mend(text, dialect, layout)
    if replacements:
        lines = text.split("\n")
        for number, _, new in replacements:
            lines[number] = new
        text = "\n".join(lines)
        rows = dialects.records(text, dialect)
        layout = layouts.find(rows, dialect.delimiter)
    warnings += mended
    plan = Plan(source, original, text, dialect, layout, rows, found, replacements, bool(zeros), mark)
    frame, load = plan.load(warnings)
    warnings += layout.notes
    warnings += plan.remarks()
    if certainty < 0.55 and dialect.delimiter is not None and layout.width > 1:
        warnings.append(f"the delimiter {literal(dialect.delimiter)} is the likeliest, but not certain")
    described = columns.describe(frame, plan.raw_column)
    warnings += described.pop("warnings")
    if described["duplicate_rows"]:
        warnings.append(f"{described['duplicate_rows']} duplicate row(s)")
    return {
        "file": source.name,
        "format": {"\t": "tsv"}.get(dialect.delimiter, "csv"),
        **({"compression": source.compression} if source.compression else {}),
        "encoding": found.name,
        "bom": found.bom,
        "delimiter": mark or dialect.delimiter or ",",
        "quote": dialect.quote or '"',
        **({"escape": dialect.escape} if dialect.escape else {}),
        "decimal": plan.decimal,
        "thousands": plan.thousands,
        "header_rows": len(layout.header),
        "preamble_lines": layout.preamble,
        "footer_lines": layout.footer,
        **described,
        "warnings": warnings,
        "load": load.code(source.name),
    }


def bound_columns(source, width):
    """Refuse more columns than can be profiled."""
    if width > MAX_COLUMNS:
        raise Fault("too_large", f"{source.name} has {width:,} columns; at most {MAX_COLUMNS:,} can be profiled", "Transpose or split the file.")


def _unclosed_quote(text, dialect, rows):
    """The line of a quote that runs to the end of the text, when the rows are more even without quotes; else None."""
    if not dialect.quote or dialect.escape or not dialect.delimiter or not rows or not rows[-1]:
        return None
    tail = rows[-1][-1]
    if "\n" not in tail or text.rstrip("\n").endswith(dialect.quote):
        return None
    plain = [len(row) for row in dialects.records(text, dialect._replace(quote=None)) if row]
    if Counter(plain).most_common(1)[0][1] < 0.9 * len(plain):
        return None
    return text.count("\n") + 1 - tail.count("\n") - (1 if text.endswith("\n") and not tail.endswith("\n") else 0)


def _bound_lines(source, text):
    if len(text) <= MAX_LINE:
        return
    start = 0
    while start < len(text):
        end = text.find("\n", start, start + MAX_LINE + 1)
        if end < 0 and len(text) - start > MAX_LINE:
            raise Fault("too_large", f"{source.name} has a line of more than {MAX_LINE:,} characters, at character {start:,}",
                        "This is not a table of rows; break the line, or give the right file.")
        if end < 0:
            break
        # Jump to the last line end of this window.
        start = max(text.rfind("\n", start, start + MAX_LINE), end) + 1
