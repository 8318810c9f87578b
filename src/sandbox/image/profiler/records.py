"""JSON and JSON Lines: strict syntax with the place of a fault, then the table that the value holds.

A table is: a list of records; a list of lists under a first list of names; a list of values (one column, `value`);
the longest list of records under some key; lists of one length under keys; records under keys (one row each);
else one record as one row. Nested values stay as they are in their cells.
"""

import json
import re

import pandas as pd

from . import charset, columns
from .faults import Fault
from .loading import PATH, Load, literal
from .source import WHOLE_BYTES


class _Strict(ValueError):
    """A constant that JSON does not have."""


def _reject(constant):
    raise _Strict(constant)


def profile(source, options, larger, lines, progress=None):
    """The profile of JSON text. `larger`: too much to hold at once; `lines`: JSON Lines by name."""
    if larger:
        if lines or re.match(rb"(?:\xef\xbb\xbf)?\s*\[\s*\{", source.head):
            from . import streamed

            return streamed.profile_json(source, options, lines, progress or (lambda event: None))
        raise Fault("too_large", f"{source.name} ({source.kilobytes()}) is one large JSON value that is no list of records",
                    "Convert it to JSON Lines (one record a line), which is read as a stream.")
    data = source.read(WHOLE_BYTES * 2)
    found = charset.detect(data)
    warnings = []
    if not found.bom and not found.codec.startswith("utf-16"):
        failure = charset.decode_failure(data)
        if failure:
            line, offset, bad = failure
            raise Fault("syntax", f"{source.name} is not valid UTF-8, as JSON must be: bytes {bad.hex(' ')} at line {line} (byte {offset})",
                        "Save it as UTF-8.")
        found = found._replace(name="utf-8", codec="utf-8")
    try:
        text = data.decode(found.codec)
    except UnicodeDecodeError as error:
        raise Fault("syntax", f"{source.name} is not valid {found.name} at byte {error.start}", "Save it as UTF-8.") from error
    if not text.strip():
        raise Fault("empty", f"{source.name} holds nothing but blank space", "Nothing to analyse.")
    if found.bom:
        warnings.append("begins with a byte order mark, which JSON should not have")
    value, lines = _parse(source, text, lines)
    frame, tail, notes = table(value)
    warnings += notes
    if _repeated_keys(text):
        warnings.append("some record names a key more than once: only the last value is kept")
    described = columns.describe(frame)
    warnings += described.pop("warnings")
    described["columns_detail"], nested = described["columns_detail"], _nested(frame)
    if nested:
        warnings.append(f"nested values in column(s) {', '.join(nested[:8])}: pd.json_normalize takes them apart")
    return {
        "file": source.name,
        "format": "jsonl" if lines else "json",
        **({"compression": source.compression} if source.compression else {}),
        "encoding": found.name,
        "bom": found.bom,
        **described,
        "warnings": warnings,
        "load": _load(source, found, tail, lines).code(source.name),
    }


def _decode(text):
    return json.loads(text, parse_constant=_reject)


def _parse(source, text, lines):
    """The value of the text and whether it is JSON Lines."""
    if lines:
        try:
            return _parse_lines(source, text), True
        except Fault as fault:
            try:
                return _decode(text), False
            except (ValueError, RecursionError):
                raise fault from None
    try:
        return _decode(text), False
    except _Strict as error:
        place = text.find(str(error))
        raise Fault("syntax", f"{source.name} is not valid JSON: {error} at {_place(text, max(place, 0))}",
                    "JSON has no NaN or Infinity; write null.") from error
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            values = _lines_or_none(text)
            if values is not None:
                return values, True
        raise Fault("syntax", f"{source.name} is not valid JSON: {error.msg} at {_place(text, error.pos)}", _hint(text, error.pos)) from error
    except RecursionError as error:
        raise Fault("too_large", f"{source.name} is nested too deeply to be a table (at line 1, column 1)", "Flatten the data first.") from error
    except ValueError as error:
        raise Fault("syntax", f"{source.name} holds a number that cannot be read: {str(error)[:120]}", "Shorten the number.") from error


def _place(text, position):
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    shown = text[position: position + 12].split("\n")[0]
    return f"line {line}, column {column}" + (f" (before {shown!r})" if shown else " (end of text)")


def _hint(text, position):
    before, after = text[:position].rstrip(), text[position:].lstrip()
    if before.endswith(",") and after[:1] in ("]", "}"):
        return "JSON allows no comma after the last item; remove it."
    if after.startswith(("//", "/*", "#")):
        return "JSON has no comments; remove them."
    if before.endswith(("}", "]")) and after.startswith(("{", "[")):
        return "Several JSON values stand one after the other; write each on a line of its own, as JSON Lines."
    if text[position: position + 1] == "'":
        return "JSON strings and names stand in double quotes."
    return "Open the file at that place and mend it."


def _parse_lines(source, text):
    values = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            values.append(_decode(line))
        except (ValueError, RecursionError) as error:
            what = getattr(error, "msg", None) or str(error)[:80]
            raise Fault("syntax", f"{source.name} is not JSON Lines: line {number}, column {getattr(error, 'colno', 1)}: {what}",
                        "Each line must be one JSON value; mend or remove that line.") from error
    return values


def _lines_or_none(text):
    """The values of text of which every line is a record or a list of records; None for other text."""
    pieces = [line for line in text.split("\n") if line.strip()]
    if len(pieces) < 2:
        return None
    values = []
    for line in pieces:
        try:
            value = _decode(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict) and not (isinstance(value, list) and value and all(isinstance(item, dict) for item in value)):
            return None
        values.append(value)
    return values


def table(value):
    """The table in a value: (frame, source of the expression with VALUE for the value, notes)."""
    if isinstance(value, list):
        return _of_list(value, "VALUE", [])
    if isinstance(value, dict):
        return _of_record(value)
    return pd.DataFrame({"value": [value]}), 'pd.DataFrame({"value": [VALUE]})', [f"the file holds one {_kind(value)}, no table"]


def _kind(value):
    names = {str: "text", bool: "boolean", int: "number", float: "number", type(None): "null", list: "list", dict: "record"}
    return names[type(value)]


def _of_list(value, expression, notes):
    if value and all(isinstance(item, dict) for item in value):
        keys = [len(item) for item in value]
        if min(keys) < max(keys):
            sparse = sum(1 for item in value if len(item) < max(keys))
            notes = [*notes, f"{sparse} record(s) lack some of the keys; these cells are missing"]
        if max(keys) == 0:
            notes = [*notes, "every record is empty"]
        return pd.DataFrame(value), f"pd.DataFrame({expression})", notes
    if len(value) > 1 and all(isinstance(item, list) for item in value):
        head, width = value[0], len(value[0])
        if width and all(isinstance(name, str) for name in head) and len(set(head)) == width and all(len(item) == width for item in value):
            return pd.DataFrame(value[1:], columns=head), f"(lambda rows: pd.DataFrame(rows[1:], columns=rows[0]))({expression})", notes
        if len({len(item) for item in value}) == 1 and width and not any(isinstance(cell, (list, dict)) for item in value for cell in item):
            return pd.DataFrame(value), f"pd.DataFrame({expression})", [*notes, "rows are lists without names; columns are numbered from 0"]
    if not value:
        notes = [*notes, "the list is empty"]
    kinds = sorted({_kind(item) for item in value})
    if len(kinds) > 1:
        notes = [*notes, f"the list mixes {', '.join(kinds)}"]
    return pd.DataFrame({"value": value}), f'pd.DataFrame({{"value": {expression}}})', notes


def _of_record(value):
    found = _records_under_key(value, "VALUE", 0)
    if found:
        items, expression, key = found
        others = [name for name in value if name != key]
        notes = [f"the records are under the key {key!r}"]
        if others:
            notes.append("beside them: " + ", ".join(columns.clip(str(name), 30) for name in others[:8]))
        return _of_list(items, expression, notes)
    names, data = value.get("columns"), value.get("data")
    if isinstance(names, list) and names and isinstance(data, list) and all(isinstance(name, str) for name in names) \
            and all(isinstance(row, list) and len(row) == len(names) for row in data):
        # What pandas writes with orient="split".
        return (pd.DataFrame(data, columns=names), '(lambda parts: pd.DataFrame(parts["data"], columns=parts["columns"]))(VALUE)',
                ["names and rows are lists of their own"])
    inner = list(value.values())
    if len(inner) > 1 and all(isinstance(item, list) for item in inner) and len({len(item) for item in inner}) == 1 and inner[0]:
        return pd.DataFrame(value), "pd.DataFrame(VALUE)", ["columns are lists under keys"]
    if len(inner) > 1 and all(isinstance(item, dict) and item for item in inner) and _alike(inner):
        frame = pd.DataFrame.from_dict(value, orient="index")
        return frame, 'pd.DataFrame.from_dict(VALUE, orient="index")', ["one row for each key; the keys are the index"]
    return pd.DataFrame([value]), "pd.DataFrame([VALUE])", ["one record, read as one row"]


def _alike(items):
    """Whether records share most of their keys."""
    common = set(items[0]).intersection(*items[1:])
    every = set().union(*items)
    return len(common) >= 0.5 * len(every)


def _records_under_key(value, expression, depth):
    """The longest list of records under a key, at most three keys deep: (list, expression, first key)."""
    best = None
    for key, inner in value.items():
        here = f"{expression}[{literal(key)}]"
        if isinstance(inner, list) and inner and all(isinstance(item, dict) for item in inner):
            candidate = (inner, here, key)
        elif isinstance(inner, dict) and depth < 2:
            deeper = _records_under_key(inner, here, depth + 1)
            candidate = (deeper[0], deeper[1], key) if deeper else None
        else:
            candidate = None
        if candidate and (best is None or len(candidate[0]) > len(best[0])):
            best = candidate
    return best


def _nested(frame):
    out = []
    for position in range(min(frame.shape[1], columns.DETAIL_COLUMNS)):
        series = frame.iloc[:, position]
        if series.dtype == object and any(isinstance(cell, (list, dict)) for cell in series.dropna().head(20)):
            out.append(str(frame.columns[position]))
    return out


def _repeated_keys(text):
    """Whether a small text repeats a key inside one record."""
    if len(text) > 2_000_000 or '"' not in text:
        return False
    repeated = []

    def collect(pairs):
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            repeated.append(True)
        return dict(pairs)

    for piece in [text] if len(text.split("\n")) > 5000 or not re.search(r"}\s*\n\s*{", text) else text.split("\n"):
        try:
            json.loads(piece, object_pairs_hook=collect)
        except (ValueError, RecursionError):
            continue
    return bool(repeated)


def _load(source, found, tail, lines):
    imports = ["json"]
    codec = found.codec
    if source.compression in ("gzip", "bz2", "xz"):
        module = {"gzip": "gzip", "bz2": "bz2", "xz": "lzma"}[source.compression]
        imports.append(module)
        opened = f'{module}.open({PATH}, "rt", encoding={literal(codec)})'
    elif source.compression == "zip":
        imports += ["io", "zipfile"]
        opened = f"io.StringIO(zipfile.ZipFile({PATH}).read({literal(source.member)}).decode({literal(codec)}))"
    elif source.compression == "zstd":
        imports += ["io", "pyarrow as pa"]
        opened = f'io.StringIO(pa.input_stream({PATH}, compression="zstd").read().decode({literal(codec)}))'
    else:
        opened = f"open({PATH}, encoding={literal(codec)})"
    value = f"[json.loads(line) for line in {opened} if line.strip()]" if lines else f"json.load({opened})"
    return Load(tail.replace("VALUE", value, 1), imports)
