"""Tables in columns of fixed width: fields between runs of blanks that every line shares."""

import re

from . import cells, columns
from .faults import Fault
from .loading import PATH, Load, call

MAX_LINES = 200_000
SAMPLE_LINES = 2000
MIN_LINES = 4
# Blanks one wide fall together by chance in fewer lines than this.
NARROW_LINES = 4
MAX_FIELDS = 200
# A rule below a header whose runs are as wide as the columns, as database consoles draw it; what they say below the rows.
RUNS = re.compile(r" *[-=]{2,}(?: +[-=]{2,})+ *")
COUNT = re.compile(r"\s*\(?\d[\d,]* (?:rows?|records?)\b.*")
HEAD_LINES = 200
# Lines that a loading call names one by one.
MAX_SKIPPED = 2000


def fields(lines):
    """The [start, end) of each field of the lines, or None when the text is no such table."""
    lines = [line.rstrip() for line in lines[:SAMPLE_LINES] if line.strip()]
    if len(lines) < MIN_LINES or any("\t" in line for line in lines):
        return None
    width = max(map(len, lines))
    if width > 4000:
        return None
    used = [False] * width
    for line in lines:
        for place, char in enumerate(line):
            if char != " ":
                used[place] = True
    narrow = 1 if len(lines) >= NARROW_LINES else 2
    out, start, gap = [], None, 0
    for place in range(width + 1):
        if place < width and used[place]:
            if start is None:
                start = place
            gap = 0
        elif start is not None:
            gap += 1
            if gap >= narrow or place == width:
                out.append((start, place - gap + 1))
                start, gap = None, 0
    if start is not None:
        out.append((start, width))
    if not 2 <= len(out) <= MAX_FIELDS:
        return None
    return out if _holds_values(lines, out) else None


def _holds_values(lines, found):
    """Whether every field is filled on most lines, and some field holds values only under the first line: prose does neither."""
    rows = [[line[start:end].strip() for start, end in found] for line in lines]
    body = rows[1:]
    if any(sum(1 for row in rows if row[place]) < 0.5 * len(rows) for place in range(len(found))):
        return False
    return any(sum(1 for row in body if cells.kind(row[place]) in cells.VALUE_KINDS) >= 0.9 * len(body) for place in range(len(found)))


def _is_rule(line):
    return len(line.strip()) > 2 and set(line.strip()) <= set("-= +|_")


def profile(source, text, found):
    """The profile of a table of fixed width, or None for other text."""
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        return None
    content = [number for number, line in enumerate(lines) if line.strip()]
    rules = [number for number in content if _is_rule(lines[number])]
    if len(rules) > 3:
        return None
    places = fields([lines[number] for number in content if number not in rules])
    if places is None:
        return None
    first = lines[next(number for number in content if number not in rules)]
    header = not any(cells.kind(first[start:end]) in cells.VALUE_KINDS for start, end in places)
    options = {"colspecs": [list(place) for place in places]}
    if not header:
        options["header"] = None
    if rules:
        options["skiprows"] = rules
    if found.codec != "utf-8":
        options["encoding"] = found.codec
    load = Load(call("pd.read_fwf", PATH, options))
    frame = load.run(source.path)
    expected = len(content) - len(rules) - (1 if header else 0)
    if frame.shape != (expected, len(places)):
        raise Fault("syntax", f"{source.name} looks like {expected} rows in columns of fixed width, but {frame.shape[0]} are loaded", "Give it as CSV.")
    described = columns.describe(frame)
    warnings = [f"columns of fixed width: {', '.join(f'{start}-{end}' for start, end in places[:20])}", *([found.note] if found.note else [])]
    return {"file": source.name, "format": "fwf", "encoding": found.name, "bom": found.bom, "delimiter": None, "quote": None, "decimal": ".",
            "header_rows": 1 if header else 0, "preamble_lines": 0, "footer_lines": 0, **described,
            "warnings": warnings + described["warnings"], "load": load.code(source.name)}


def ruled(source, text, found):
    """The profile of a table below a rule whose runs are as wide as its columns, or None for other text."""
    lines = text.rstrip("\n").split("\n")
    rule = next((number for number in range(1, min(len(lines), HEAD_LINES))
                 if RUNS.fullmatch(lines[number]) and lines[number - 1].strip() and not RUNS.fullmatch(lines[number - 1])), None)
    if rule is None or len(lines) > MAX_LINES or source.compression or "\0" in text:
        return None
    places = [list(run.span()) for run in re.finditer("[-=]+", lines[rule])]
    gaps = list(zip([0, *(end for _, end in places)], [start for start, _ in places]))
    # Headers and rules stand again on each page; blank lines would be counted as rows.
    again = {lines[rule - 1], lines[rule]}
    skipped = [*range(rule - 1), *(number for number in range(rule, len(lines)) if lines[number] in again or not lines[number].strip())]
    body = [number for number in range(rule + 1, len(lines)) if lines[number].strip() and lines[number] not in again]
    footer = 0
    while body and COUNT.fullmatch(lines[body[-1]]):
        footer += 1
        body.pop()
    fitting = all(not lines[number][start:end].strip() and not lines[number][places[-1][1]:].strip() for number in body for start, end in gaps)
    if not body or not fitting or len(places) > MAX_FIELDS or len(skipped) > MAX_SKIPPED:
        return None
    options = {"colspecs": places, "skiprows": skipped, "nrows": len(body)}
    if found.codec != "utf-8":
        options["encoding"] = found.codec
    load = Load(call("pd.read_fwf", PATH, options))
    frame = load.run(source.path)
    if frame.shape != (len(body), len(places)):
        return None
    described = columns.describe(frame)
    warnings = [*([found.note] if found.note else []), "columns as wide as the rule below the header says"]
    above = sum(1 for line in lines[: rule - 1] if line.strip())
    if above:
        warnings.append(f"{above} line(s) above the table are left out")
    return {"file": source.name, "format": "fwf", "encoding": found.name, "bom": found.bom, "delimiter": None, "quote": None, "decimal": ".",
            "header_rows": 1, "preamble_lines": rule - 1, "footer_lines": footer, **described,
            "warnings": warnings + described["warnings"], "load": load.code(source.name)}
