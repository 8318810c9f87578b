"""Tables drawn with bars and rules: Markdown, psql, mysql, Org, boxes of line-drawing characters."""

import re

from . import columns
from .faults import one_line
from .loading import PATH, Code, Load, call

MAX_LINES = 200_000
# Lines in which the header is looked for, rules that a loading call names one by one, and characters of a line.
HEAD_LINES = 200
MAX_RULES = 200
MAX_LINE = 20_000
# The share of the lines that the table must have for the text to be one.
TABLE_SHARE = 0.5

BAR = "|│║"
SEPARATOR = r"\s*[|│║]\s*"
# Below a header: runs of dashes, joined where the header has its bars.
BELOW = re.compile(r"\s*[|+├╞╠]?(?:\s*:?[-=─═]{2,}:?\s*[|+┼╪╬])*\s*:?[-=─═]{2,}:?\s*[|+┤╡╣]?\s*")
JOINT = re.compile("[|+├╞╠┼╪╬┤╡╣]")
# Above, between and below rows.
RULE = re.compile(r"\s*[|+├╞╠┌└╒╘╔╚](?:[-=─═:+|┼╪╬┬┴╤╧╦╩]+)[|+┤╡╣┐┘╕╛╗╝]\s*")


class Drawing:
    """Where a table is drawn: the line of its header, those of its rules, its number of rows, the line after it, its columns, and
    whether bars stand at both sides."""

    def __init__(self, lines, header):
        bars = _bars(lines[header])
        text = lines[header].strip()
        self.bordered = text[0] in BAR and text[-1] in BAR
        self.width = bars - 1 if self.bordered else bars + 1
        self.header = header
        self.rules = [header + 1]
        self.rows = 0
        self.end = header + 2
        while self.end < len(lines):
            line = lines[self.end]
            if RULE.fullmatch(line):
                self.rules.append(self.end)
            elif line.strip() and _bars(line) == bars:
                self.rows += 1
            else:
                break
            self.end += 1


def _bars(line):
    return sum(map(line.count, BAR))


def find(lines):
    """The first table that is drawn in some lines of text, or None."""
    for header, (line, below) in enumerate(zip(lines[:HEAD_LINES], lines[1:])):
        if len(line) <= MAX_LINE and len(below) <= MAX_LINE and 0 < _bars(line) == len(JOINT.findall(below)) and BELOW.fullmatch(below):
            drawing = Drawing(lines, header)
            if drawing.rows and drawing.width > 1:
                return drawing
    return None


def remark(text):
    """A sentence on the table that is drawn in prose, or None."""
    drawing = find(text.split("\n"))
    return drawing and f"a table of {drawing.rows} row(s) and {drawing.width} columns is drawn from line {drawing.header + 1} on; it is kept as text"


def profile(source, text, found):
    """The profile of text that is a drawn table, or None for other text."""
    lines = text.split("\n")
    if len(lines) > MAX_LINES or source.compression or "\0" in text:
        return None
    drawing = find(lines)
    if drawing is None or len(drawing.rules) > MAX_RULES:
        return None
    around, others, rest = lines[: drawing.header], 0, lines[drawing.end:]
    while below := find(rest):
        around, others, rest = around + rest[: below.header], others + below.rows + 1, rest[below.end:]
    around = [line for line in around + rest if line.strip() and not RULE.fullmatch(line)]
    inside = drawing.rows + 1 + others
    if inside < TABLE_SHARE * (inside + len(around)):
        return None
    rules = [number for number in drawing.rules if number > drawing.header]
    options = {"sep": SEPARATOR, "engine": "python", "skiprows": [*range(drawing.header), *rules], "nrows": drawing.rows, "index_col": False}
    if drawing.bordered:
        options["usecols"] = Code(f"range(1, {drawing.width + 1})")
    if found.codec != "utf-8":
        options["encoding"] = found.codec
    load = Load(call("pd.read_csv", PATH, options))
    try:
        frame = load.run(source.path)
    except (ValueError, TypeError, IndexError):
        # Rows that pandas splits in another way.
        return None
    if frame.shape != (drawing.rows, drawing.width):
        return None
    described = columns.describe(frame)
    warnings = [*([found.note] if found.note else []), "the table is drawn with bars and rules, which are left out"]
    if around:
        warnings.append(f"{len(around)} line(s) above or below the table are left out (such as {columns.clip(one_line(around[-1].strip()), 60)!r})")
    if others:
        warnings.append(f"another table is drawn below; it was left out ({others} line(s))")
    return {"file": source.name, "format": "texttable", "encoding": found.name, "bom": found.bom, "delimiter": "|", "quote": None, "decimal": ".",
            "header_rows": 1, "preamble_lines": drawing.header, "footer_lines": len(lines) - drawing.end, **described,
            "warnings": warnings + described["warnings"], "load": load.code(source.name)}

