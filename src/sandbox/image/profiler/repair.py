"""Mending single damaged lines of a delimited file: a stray quote, a missing, extra or different delimiter.

A damaged line is one whose number of cells differs from the table's while nearly all others agree. Every mend is one
candidate list of cells; the candidate that fits the other rows best (shapes, kinds and lengths of cells in each column)
wins, and is kept only if it fits clearly better than the line as it stands. Nothing is guessed in files with many bad lines.
"""

import csv
import io
import math
import re
from collections import Counter

from . import cells
from . import dialect as dialects
from . import layout as layouts

MAX_LINES = 40
MAX_SHARE = 0.05
MAX_LINE = 4000
MAX_TEXT = 4_000_000
ALTERNATIVES = [",", ";", "\t", "|", " ", ":"]


class Fit:
    """How likely a cell is in each column, learned from the sound rows."""

    def __init__(self, rows, width):
        self.width = width
        self.total = max(len(rows), 1)
        self.shapes = [Counter() for _ in range(width)]
        self.kinds = [Counter() for _ in range(width)]
        sums = [[0.0, 0.0] for _ in range(width)]
        for row in rows:
            for column in range(width):
                cell = row[column]
                self.shapes[column][cells.shape(cell)] += 1
                self.kinds[column][cells.kind(cell)] += 1
                size = math.log1p(len(cell))
                sums[column][0] += size
                sums[column][1] += size * size
        self.lengths = []
        for first, second in sums:
            mean = first / self.total
            self.lengths.append((mean, math.sqrt(max(second / self.total - mean * mean, 0.0)) + 0.25))

    def cell(self, column, text):
        """The log-likelihood of a cell in a column."""
        seen = 0.5 * self.shapes[column][cells.shape(text)] + 0.5 * self.kinds[column][cells.kind(text)]
        mean, deviation = self.lengths[column]
        off = (math.log1p(len(text)) - mean) / deviation
        return math.log((seen + 0.05) / (self.total + 0.05)) - 0.5 * min(off * off, 16.0)

    def row(self, row):
        """The log-likelihood of a whole row."""
        return sum(self.cell(column, text) for column, text in enumerate(row[: self.width]))


def mend(text, dialect, layout):
    """Replacements (line number, old line, new line) for damaged lines of normalised text, and notes about them."""
    if dialect.delimiter in (None, dialects.WHITESPACE) or layout.width < 3 or len(text) > MAX_TEXT or dialect.comment:
        return [], []
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    parsed = [_alone(line, dialect) for line in lines]
    content = [index for index, (row, _) in enumerate(parsed) if index >= layout.preamble and not cells.is_blank(row)]
    if not content:
        return [], []
    width = layouts.modal_width([row for row, _ in parsed], content)
    if width < 3:
        return [], []
    sound = [row for row, whole in parsed[layout.preamble:] if whole and len(row) == width]
    suspects = _suspects(lines, parsed, dialect, layout, width)
    lenient = {number for number in suspects if any(True for _ in _inner_quotes(lines[number], dialect, width))}
    others = len(suspects) - len(lenient)
    if not suspects or len(sound) < 10 or others > max(3, MAX_SHARE * len(lines)) or len(suspects) > MAX_LINES:
        return [], []
    header = layout.header[0] if layout.header else None
    fit = Fit([row for row in sound[1 if header is not None else 0:]][:3000], width)
    replacements, notes = [], []
    for number in suspects:
        if len(lines[number]) > MAX_LINE:
            continue
        if header is not None and number == header:
            row, why = _header(lines[number], parsed[number][0], dialect, width), "a delimiter is missing in the header"
        else:
            row, why = _best(lines[number], parsed[number], dialect, width, fit)
        if row is not None:
            replacements.append((number, lines[number], encode(row, dialect)))
            notes.append(f"line {number + 1}: {why}; mended when loading")
    return replacements, notes


def _alone(line, dialect):
    """A line read by itself: (cells, whether its quotes are closed)."""
    options = dialects.csv_options(dialect)
    reader = csv.reader(io.StringIO(line + "\n\0"), **options)
    try:
        row = next(reader)
    except (csv.Error, StopIteration):
        return [line], False
    return row, reader.line_num == 1


def _suspects(lines, parsed, dialect, layout, width):
    """Numbers of the lines that do not make a row of the table by themselves."""
    out = []
    quoted = re.compile(rf"(?:(?<={re.escape(dialect.delimiter)})|^)\s*{dialect.quote}(?:[^{dialect.quote}]|{dialect.quote}{dialect.quote})*{dialect.quote}(?={re.escape(dialect.delimiter)}|$)") if dialect.quote else None
    usual = sum(1 for line in lines[:200] if quoted and dialect.quote in quoted.sub("", line))
    begin = layout.preamble
    for number in range(begin, len(lines)):
        row, whole = parsed[number]
        if not lines[number].strip() or cells.is_blank(row):
            continue
        if len(row) != width or not whole:
            out.append(number)
        elif quoted and usual <= 2 and dialect.quote in lines[number] and dialect.quote in quoted.sub("", lines[number]) and not dialect.escape:
            out.append(number)
        if len(out) > MAX_LINES:
            return []
    return out


def _best(line, parsed, dialect, width, fit):
    """The best mended row and what was wrong, or (None, '') when the line is best left as it is."""
    row, whole = parsed
    candidates = []
    if whole and len(row) <= width:
        candidates.append((row + [""] * (width - len(row)), None))
    elif whole and not any(cell.strip() for cell in row[width:]):
        candidates.append((row[:width], None))
    candidates += [(found, "quotes inside a quoted cell are not doubled") for found in _inner_quotes(line, dialect, width)]
    candidates += _other_quoting(line, dialect, width)
    candidates += [(found, "a stray quote") for found in _quotes(line, dialect, width)]
    candidates += [(found, "a delimiter is missing") for found in _insertions(line, dialect, width)]
    if whole and len(row) > width:
        candidates += [(found, "an extra delimiter") for found in _removals(row, width)]
    if whole and len(row) < width:
        candidates += _other_delimiters(line, dialect, width, fit)
    if not candidates:
        return None, ""
    scored = [(fit.row(found) - (0.0 if why is None else 2.0), index) for index, (found, why) in enumerate(candidates)]
    value, index = max(scored, key=lambda item: (item[0], -item[1]))
    found, why = candidates[index]
    if why is None:
        return None, ""
    untouched = max((score for score, at in scored if candidates[at][1] is None), default=-math.inf)
    if value < untouched + 3.0 or value < -6.0 * width:
        return None, ""
    return found, why


def _quotes(line, dialect, width):
    """Readings in which one quote mark at the start of a cell belongs to the text."""
    mark, edge = dialect.quote, dialect.delimiter
    if not mark:
        return
    for at, char in enumerate(line):
        if char != mark or (at and line[at - 1] != edge):
            continue
        stop = line.find(edge, at + 1)
        stop = len(line) if stop < 0 else stop
        tries = [line[:at] + mark * 3 + line[at + 1: stop] + mark + line[stop:]]
        if line[at + 1: at + 2] == mark:
            tries.insert(0, line[:at] + mark + line[at:])
        for attempt in tries:
            row, whole = _alone(attempt, dialect)
            if whole and len(row) == width:
                yield row


def _inner_quotes(line, dialect, width):
    """The reading in which a quote ends a quoted cell only before a delimiter or at the end of the line."""
    mark, edge = dialect.quote, dialect.delimiter
    if not mark or mark not in line:
        return
    row, at = [], 0
    while at <= len(line):
        if line[at: at + 1] == mark:
            stop = line.find(mark + edge, at + 1)
            # A doubled quote before the delimiter may be text: the cell goes on after it.
            if stop < 0:
                if not line.endswith(mark) or len(line) - 1 <= at:
                    return
                stop = len(line) - 1
            row.append(line[at + 1: stop].replace(mark * 2, mark))
            at = stop + 2
        else:
            stop = line.find(edge, at)
            stop = len(line) if stop < 0 else stop
            row.append(line[at:stop])
            at = stop + 1
    if len(row) == width:
        yield row


def _other_quoting(line, dialect, width):
    """Readings with the other quote mark, or with blanks after the delimiter."""
    other = "'" if dialect.quote == '"' else '"'
    for changed, why in ((dialect._replace(skip_space=True), "blanks after the delimiter"),
                         (dialect._replace(quote=other), "another quote mark than the other lines")):
        row, whole = _alone(line, changed)
        if whole and len(row) == width and (other in line or changed.skip_space):
            yield [cell.strip() if changed.skip_space else cell for cell in row], why


def _insertions(line, dialect, width):
    """Readings with one delimiter put in between two characters."""
    seen = set()
    for at in range(1, len(line)):
        row, whole = _alone(line[:at] + dialect.delimiter + line[at:], dialect)
        if whole and len(row) == width:
            key = tuple(row)
            if key not in seen and sum(1 for cell in row if dialect.quote and dialect.quote in cell) <= line.count((dialect.quote or "\0") * 2):
                seen.add(key)
                yield row


def _removals(row, width):
    """Readings without the surplus empty cells."""
    surplus = len(row) - width
    if surplus > 2:
        return
    empty = [at for at, cell in enumerate(row) if not cell.strip()]
    if surplus == 1:
        for at in empty:
            yield row[:at] + row[at + 1:]
    else:
        for one, first in enumerate(empty):
            for second in empty[one + 1:]:
                yield [cell for at, cell in enumerate(row) if at not in (first, second)]


def _other_delimiters(line, dialect, width, fit):
    """Readings with another delimiter, cells joined again where it also stands inside text."""
    for delimiter in ALTERNATIVES:
        if delimiter == dialect.delimiter or line.count(delimiter) < width - 1:
            continue
        row, whole = _alone(line, dialect._replace(delimiter=delimiter, skip_space=False))
        if not whole or len(row) < width or len(row) > 400:
            continue
        joined = row if len(row) == width else _join(row, delimiter, width, fit)
        if joined:
            yield joined, "another delimiter than the other lines"


def _join(tokens, delimiter, width, fit, longest=60):
    """The best way to join neighbouring tokens into `width` cells (dynamic programming over columns)."""
    count = len(tokens)
    best = {0: (0.0, None)}
    history = []
    for column in range(width):
        following = {}
        for start, (value, _) in best.items():
            last = min(count - (width - column - 1), start + longest)
            for stop in range(start + 1, last + 1):
                total = value + fit.cell(column, delimiter.join(tokens[start:stop]))
                if stop not in following or total > following[stop][0]:
                    following[stop] = (total, start)
        history.append(following)
        best = following
    if count not in best:
        return None
    row, stop = [], count
    for column in range(width - 1, -1, -1):
        start = history[column][stop][1]
        row.append(delimiter.join(tokens[start:stop]))
        stop = start
    return row[::-1]


def _header(line, row, dialect, width):
    """The header with a name split where two styles of writing meet (QtyPRODUCTID), if there is one such place."""
    if len(row) != width - 1:
        return None
    found = []
    for at, name in enumerate(row):
        for place in range(1, len(name)):
            left, right = name[:place], name[place:]
            if left[-1].islower() and right.isupper() and len(left) > 1 and len(right) > 3:
                found.append(row[:at] + [left, right] + row[at + 1:])
    return found[0] if len(found) == 1 else None


def encode(row, dialect):
    """A row as a line of the dialect."""
    out = io.StringIO()
    options = dialects.csv_options(dialect)
    options.pop("skipinitialspace")
    if dialect.escape:
        options.update(doublequote=False)
    csv.writer(out, lineterminator="", **options).writerow(row)
    return out.getvalue()
