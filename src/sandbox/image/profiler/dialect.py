"""The dialect of delimited text: delimiter, quote, escape, space after the delimiter, comment mark.

Every candidate reading of a sample is scored by how even its rows are and how many of its cells look like values
(the idea of van den Burg, Nazábal and Sutton, "Wrangling messy CSV files by detecting row and type patterns", 2019).
Letters and digits are never delimiters; blanks and colons only when every line agrees on them.
"""

import csv
import io
import re
from collections import Counter, namedtuple

from . import cells

Dialect = namedtuple("Dialect", "delimiter quote escape skip_space comment")
Dialect.__doc__ = """delimiter: one character, WHITESPACE, or None for one column; quote: character or None;
escape: backslash or None; skip_space: blanks after a delimiter are dropped; comment: mark or None."""

WHITESPACE = r"\s+"
PRIMARY = [",", ";", "\t", "|"]
SECONDARY = ["^", "~", "\x1f", "\x01", "，", "；", "¦", "§", "¬", "!", "#"]
# Stands in the text for a delimiter of several characters.
STAND_IN = "\x1f"
SAMPLE_CHARS = 200_000
SAMPLE_ROWS = 1500
csv.field_size_limit(2**31 - 1)


def records(text, dialect, limit=None):
    """The records of the text as lists of cells, blank lines as empty lists; at most `limit`."""
    if dialect.delimiter is None and dialect.quote is None:
        lines = text.split("\n")
        if lines and lines[-1] == "":
            lines.pop()
        rows = ([line] if line.strip() else [] for line in lines)
    elif dialect.delimiter == WHITESPACE:
        rows = (_blank_split(line, dialect.quote) for line in text.split("\n"))
    else:
        rows = csv.reader(io.StringIO(text, newline="\n"), **csv_options(dialect))
    out = []
    try:
        for row in rows:
            if dialect.comment:
                row = without_comment(row, dialect.comment)
                if row is None:
                    continue
            out.append(row)
            if limit is not None and len(out) >= limit:
                break
    except csv.Error:
        pass
    while out and not out[-1] and dialect.delimiter == WHITESPACE:
        out.pop()
    return out


def csv_options(dialect):
    """The dialect as keyword arguments of `csv.reader`."""
    options = {
        # A delimiter that cannot occur makes one column of every line.
        "delimiter": dialect.delimiter or "\x1e",
        "skipinitialspace": dialect.skip_space,
        "escapechar": dialect.escape,
    }
    if dialect.quote:
        options["quotechar"] = dialect.quote
        options["doublequote"] = True
    else:
        options["quoting"] = csv.QUOTE_NONE
    return options


def _blank_split(line, quote):
    if quote and quote in line:
        found = re.findall(rf"{quote}(?:[^{quote}]|{quote}{quote})*{quote}|\S+", line)
        return [cell[1:-1].replace(quote * 2, quote) if len(cell) > 1 and cell[0] == quote == cell[-1] else cell for cell in found]
    return line.split()


def without_comment(row, mark):
    """The record up to its comment; None for a line that is only a comment."""
    for index, cell in enumerate(row):
        at = cell.find(mark)
        if at >= 0:
            if index == 0 and not cell[:at].strip():
                return None
            return row[:index] + [cell[:at]]
    return row


def normalise(text):
    """The text with every line end as one newline, and without zero characters and byte order marks."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").replace("\ufeff", "")


def sample_of(text):
    """The beginning of the text for the detection, cut at a line end."""
    if len(text) <= SAMPLE_CHARS:
        return text
    cut = text.rfind("\n", 0, SAMPLE_CHARS)
    return text[: cut + 1] if cut > 0 else text[:SAMPLE_CHARS]


def detect(text, extension=""):
    """The likeliest `Dialect` of normalised text and the score between 0 and 1, as (dialect, score)."""
    sample = sample_of(text)
    comment = _comment_mark(sample)
    scored = []
    for delimiter in PRIMARY + [mark for mark in SECONDARY if sample.count(mark) > 1]:
        if delimiter not in sample or delimiter == comment:
            continue
        for quote in _quotes(sample, delimiter):
            # A quoted cell after a blank is a quoted cell only when the blank is dropped.
            dialect = Dialect(delimiter, quote, None, delimiter + " " + quote in sample, comment)
            value = score(records(sample, dialect, SAMPLE_ROWS))
            if delimiter in SECONDARY:
                value -= 0.15
            if (extension, delimiter) in (("tsv", "\t"), ("tab", "\t"), ("psv", "|")):
                value += 0.1
            scored.append((value, -len(scored), dialect))
    best = max(scored, default=None)
    if best is None or best[0] < 0.45:
        loose = _loose(sample, comment)
        if loose and (best is None or loose[0] > best[0]):
            best = loose
    single = Dialect(None, '"' if _wholly_quoted(sample) else None, None, False, comment)
    if best is None or best[0] < single_score(sample, best[2]):
        # A comma stays the delimiter of text that has none, so that a longer file of the kind reads the same.
        return single, 0.5
    value, _, dialect = best
    return _details(sample, dialect), value


def several_characters(text, extension=""):
    """A delimiter of several characters (||, two tabs, a written \\t), or None; it must beat every single character."""
    sample = sample_of(text)
    lines = max(1, sum(1 for line in sample.split("\n") if line.strip()))
    candidates = [mark * 2 for mark in "\t|;:,~^&#$*" if mark * 2 in sample] + ["\\t", "<|>", "|~|", "[|]", "~|~"]
    best = None
    for mark in candidates:
        if sample.count(mark) < max(2, 0.9 * lines):
            continue
        # Doubled characters only: a lone one among them is the delimiter, and the doubled one an empty cell.
        if len(mark) == 2 and mark[0] == mark[1] and sample.count(mark[0]) != 2 * sample.count(mark):
            continue
        rows = records(sample.replace(mark, STAND_IN), Dialect(STAND_IN, '"', None, False, None), SAMPLE_ROWS)
        widths = Counter(len(row) for row in rows if row)
        if not widths or widths.most_common(1)[0][1] < 0.9 * sum(widths.values()):
            continue
        value = score(rows)
        if best is None or value > best[0]:
            best = (value, mark)
    if best is None:
        return None
    doubled = len(best[1]) == 2 and best[1][0] == best[1][1]
    return best[1] if doubled or best[0] > detect(text, extension)[1] else None


def _quotes(sample, delimiter):
    """The quote marks worth trying with a delimiter, likeliest first."""
    marks = []
    edge = re.escape(delimiter)
    for quote in ('"', "'"):
        opened = len(re.findall(rf"(?:^|{edge}) ?{quote}", sample, re.MULTILINE))
        closed = len(re.findall(rf"{quote} ?(?:$|{edge})", sample, re.MULTILINE))
        if opened and closed and (quote == '"' or (closed >= 0.5 * opened and opened >= 2)):
            marks.append(quote)
    if '"' in marks and "'" in marks:
        # Apostrophes beside real double quotes are letters.
        double = len(re.findall(rf'(?:^|{edge}) ?"', sample, re.MULTILINE))
        single = len(re.findall(rf"(?:^|{edge}) ?'", sample, re.MULTILINE))
        marks = ['"'] if double >= single else ["'", '"']
    return marks or ['"']


def _wholly_quoted(sample):
    return re.search(r'^[ \t]*"', sample, re.MULTILINE) is not None and sample.count('"') >= 2


def _comment_mark(sample):
    """`#` where whole lines begin with it and most of the lines do not."""
    lines = [line for line in sample.split("\n") if line.strip()]
    marked = [line.lstrip().startswith("#") for line in lines]
    count = sum(marked)
    if not count or count > 0.7 * len(lines):
        return None
    # The last marked line of a leading run may be the header itself: `#id,name`.
    first_plain = marked.index(False)
    scattered = any(marked[first_plain:])
    if scattered:
        return "#"
    if first_plain and not any("#" in line for line in lines[first_plain:]):
        header, data = lines[first_plain - 1], lines[first_plain]
        for mark in PRIMARY:
            if header.count(mark) == data.count(mark) > 0:
                return None
        return "#"
    if first_plain and any("#" in line for line in lines[first_plain:]):
        without = [line.split("#")[0] for line in lines[first_plain:]]
        for mark in PRIMARY:
            before = {line.count(mark) for line in lines[first_plain:]}
            after = {line.count(mark) for line in without}
            if len(after) == 1 and 0 not in after and len(before) > 1:
                return "#"
    return None


def score(rows):
    """How well a reading of the sample fits: evenness of widths times the likeness of cells to values."""
    rows = [row for row in rows if row and not cells.is_blank(row)]
    if not rows:
        return 0.0
    widths = Counter(len(row) for row in rows)
    total = len(rows)
    even = 0.0
    for width, count in widths.items():
        even += count * (width - 1) / width
    even /= total
    modal, modal_count = max(widths.items(), key=lambda item: (item[1] if item[0] > 1 else item[1] * 0.5, item[0]))
    if modal < 2:
        return 0.2 * even
    near = sum(count for width, count in widths.items() if abs(width - modal) <= 1 and width > 1)
    share = (modal_count + 0.5 * (near - modal_count)) / total
    # A few title lines above a table say little against it.
    fragments = len(widths) / total if total > 8 else 0.0
    kinds = Counter()
    for row in rows[:300]:
        kinds.update(map(cells.kind, row[:200]))
    known = sum(count * WEIGHT[name] for name, count in kinds.items()) / max(sum(kinds.values()), 1)
    return (0.45 * even + 0.55) * share ** 1.5 * (0.35 + 0.65 * known) * (1 - 0.5 * fragments)


WEIGHT = {"number": 1.0, "date": 1.0, "time": 1.0, "money": 1.0, "boolean": 1.0, "web": 0.95,
          "identifier": 0.9, "missing": 0.85, "words": 0.8, "text": 0.45}


def single_score(sample, dialect):
    """What a reading as one column is worth beside the given one."""
    lines = [line for line in sample.split("\n") if line.strip()]
    if not lines:
        return 1.0
    rows = [row for row in records(sample, dialect, SAMPLE_ROWS) if row and not cells.is_blank(row)]
    if len(rows) < 2:
        return 0.0 if dialect.delimiter in PRIMARY else 1.0
    with_mark = sum(1 for row in rows if len(row) > 1) / len(rows)
    if with_mark < 0.5:
        return 0.9
    # Whole values that the delimiter would cut in two: 68,527.00 under a header of one word.
    whole = sum(1 for line in lines[1:200] if cells.kind(line) in cells.VALUE_KINDS) / max(len(lines[1:200]), 1)
    if whole > 0.8 and len(rows[0]) == 1:
        return 0.95
    return 0.1


def _loose(sample, comment):
    """Blanks or another mark as the delimiter, only when every line agrees: (score, order, dialect) or None."""
    lines = [line for line in sample.split("\n")[:SAMPLE_ROWS] if line.strip()]
    if len(lines) < 2:
        return None
    best = None
    for delimiter in (" ", WHITESPACE, ":"):
        if delimiter == ":" and not all(":" in line for line in lines):
            continue
        dialect = Dialect(delimiter, '"' if '"' in sample else None, None, False, comment)
        rows = [row for row in records(sample, dialect, SAMPLE_ROWS) if row]
        widths = Counter(len(row) for row in rows)
        if not widths:
            continue
        width, count = widths.most_common(1)[0]
        if width < 2 or len(rows) < 2 or count < 0.9 * len(rows) or len(rows[0]) != width:
            continue
        flat = [cell for row in rows[:300] for cell in row]
        if sum(1 for cell in flat if not cell) > 0.3 * len(flat):
            continue
        if not _has_value_column(rows, width):
            continue
        value = score(rows) - 0.05
        if best is None or value > best[0]:
            best = (value, 0, dialect)
    return best


def _has_value_column(rows, width):
    """Whether some column, under its first row, holds values only: prose has none."""
    body = [row for row in rows[1:200] if len(row) == width]
    if not body:
        return False
    return any(
        sum(1 for row in body if cells.kind(row[index]) in cells.VALUE_KINDS) >= 0.8 * len(body) for index in range(width)
    )


def _details(sample, dialect):
    """The dialect with its escape and the handling of blanks after the delimiter."""
    delimiter, quote = dialect.delimiter, dialect.quote
    if delimiter == WHITESPACE:
        return dialect
    edge = re.escape(delimiter)
    if quote:
        blank_quotes = len(re.findall(rf"{edge} +{quote}", sample))
        tight_quotes = len(re.findall(rf"(?:{edge}|^){quote}", sample, re.MULTILINE))
        dialect = dialect._replace(skip_space=delimiter != " " and blank_quotes > 0 and blank_quotes >= 0.3 * tight_quotes)
        escaped = len(re.findall(rf"\\{quote}(?!{quote}|\s*(?:{edge}|$))", sample, re.MULTILINE))
        escaped += len(re.findall(rf"\\{quote}{quote}(?={edge}|$)", sample, re.MULTILINE))
        doubled = len(re.findall(rf"[^\\{edge}\n]{quote}{quote}(?!{edge}|$)", sample, re.MULTILINE))
        if escaped and escaped > doubled:
            other = dialect._replace(escape="\\")
            before, after = _evenness(records(sample, dialect, SAMPLE_ROWS)), _evenness(records(sample, other, SAMPLE_ROWS))
            # One such place may be chance: then the escape must make the rows more even.
            if after > before or (after == before and escaped > 1):
                dialect = other
    if not dialect.skip_space and delimiter != " " and delimiter != "\t":
        after = len(re.findall(rf"{edge} ", sample))
        if after and after >= 0.95 * sample.count(delimiter):
            dialect = dialect._replace(skip_space=True)
    return dialect


def _evenness(rows):
    rows = [row for row in rows if row]
    if not rows:
        return 0.0
    return Counter(len(row) for row in rows).most_common(1)[0][1] / len(rows)
