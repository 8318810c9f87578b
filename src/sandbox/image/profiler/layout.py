"""Where the table lies in the records of a file: preamble, header rows, data rows, footer, a second table.

Input is the list of records of `dialect.records`; every index below is an index into it.
"""

import math
import re
from collections import Counter

from . import cells

HEADER_SEARCH_ROWS = 60
YEAR = re.compile("(?:1[89]|20)[0-9]{2}")
# Titles that stand together above a table.
TITLE_ROWS = 12


class Layout:
    """The place of the table.

    `header`: indices of the header's records, empty for a file without one; `first`, `end`: the data's range;
    `dropped`: indices inside the range that hold nothing; `width`: columns; `names`: joined names or None;
    `preamble`, `footer`: records before and after; `notes`: what a person should know.
    """

    def __init__(self):
        self.header = []
        self.first = 0
        self.end = 0
        self.dropped = []
        self.width = 0
        self.names = None
        self.preamble = 0
        self.footer = 0
        self.second_table = None
        self.notes = []


def find(rows, delimiter):
    """The `Layout` of the records."""
    layout = Layout()
    content = [index for index, row in enumerate(rows) if not cells.is_blank(row)]
    if not content:
        return layout
    if delimiter is None:
        return _one_column(rows, content, layout)
    limit = _header_in_part(rows, content)
    if limit is not None:
        left = sum(1 for index in content if index > limit)
        layout.notes.append(f"another table, with some of the same names, begins at record {limit + 1}; it was left out ({left} record(s))")
        content = [index for index in content if index < limit]
    layout.width = modal_width(rows, content)
    start = _table_start(rows, content, layout.width)
    header = _header(rows, content, start, layout.width)
    layout.header = header
    layout.first = (header[-1] + 1) if header else start
    layout.preamble = header[0] if header else start
    layout.end = len(rows) if limit is None else limit
    layout.footer = len(rows) - layout.end
    layout.second_table = limit
    _ending(rows, layout)
    _blank_records(rows, layout)
    layout.names = join_header([rows[index] for index in header], layout.width) if header else None
    body = [len(rows[index]) for index in range(layout.first, layout.end) if rows[index]]
    if layout.names and body:
        _reconcile(rows, layout, body)
    return layout


def _header_in_part(rows, content):
    """The record where the names of the first record stand again with fewer or more beside them: another table's header."""
    first = [cell.strip() for cell in rows[content[0]] if cell.strip()]
    names = set(first)
    if len(names) < 4 or len(first) != len(names) or not _is_text(rows[content[0]]):
        return None
    for index in content[3:]:
        row = rows[index]
        if row[0].strip() not in names or len(row) == len(rows[content[0]]):
            continue
        own = [cell.strip() for cell in row if cell.strip()]
        common = sum(1 for cell in own if cell in names)
        if common >= 4 and (common == len(own) or common == len(names)) and len(own) >= 0.5 * len(names):
            return index
    return None


def modal_width(rows, content):
    """The number of cells that most records have, wide records counting more than short notes above them."""
    widths = Counter(len(rows[index]) for index in content)
    wide = {width: count for width, count in widths.items() if width > 1} or widths
    return max(wide.items(), key=lambda item: (item[1] * math.log2(item[0] + 1), item[0]))[0]


def _one_column(rows, content, layout):
    layout.width = 1
    first = content[0]
    layout.end = len(rows)
    kinds = [cells.kind(rows[index][0]) for index in content[:200]]
    title = kinds[0]
    body = Counter(kinds[1:])
    headless = title in cells.VALUE_KINDS and (not body or body[title] >= 0.5 * sum(body.values()))
    if headless:
        layout.first = first
    else:
        layout.header = [first]
        layout.first = first + 1
        layout.names = [rows[first][0]]
    layout.preamble = first
    while layout.end > layout.first and cells.is_blank(rows[layout.end - 1]):
        layout.end -= 1
    return layout


def _table_start(rows, content, width):
    """The first record of header or data: titles above the table are passed over."""
    typical = _typical_filled(rows, [index for index in content if len(rows[index]) >= 0.8 * width])
    for index in content[:HEADER_SEARCH_ROWS]:
        row = rows[index]
        if width <= 2:
            if len(row) == width and cells.filled(row) >= width or index == content[-1]:
                return index
            continue
        if cells.filled(row) >= max(2, 0.5 * min(typical, width)) and len(row) > 1:
            return _below_titles(rows, content, index, typical) or _partial_header(rows, index, width)
    for index in content:
        if len(rows[index]) > 1:
            return index
    return content[0]


def _below_titles(rows, content, index, typical):
    """The header below blank records, where the records above that fill fewer cells than the table's do: titles of several cells,
    as banks put above their statements. None where the table begins at once."""
    place = content.index(index)
    for here, after in zip(content[place: place + TITLE_ROWS], content[place + 1:]):
        if cells.filled(rows[here]) >= typical:
            return None
        if after > here + 1 and cells.filled(rows[after]) >= typical:
            # Years are names too.
            return after if _is_text([cell for cell in rows[after] if not YEAR.fullmatch(cell.strip())]) else None
    return None


def _typical_filled(rows, content):
    """How many cells the ordinary record fills: the median, so that titles and notes count little."""
    counts = sorted(cells.filled(rows[index]) for index in content[:1000])
    return counts[len(counts) // 2]


def _partial_header(rows, index, width):
    """A record above the header that labels some of its columns belongs to the header."""
    above = index - 1
    if above >= 0 and len(rows[above]) == width and cells.filled(rows[above]) >= 2:
        row = rows[above]
        if cells.span(row) > 0.5 * width and _is_text(rows[index]):
            return above
    return index


def _is_text(row):
    """Whether no filled cell of the record is a number, date or amount."""
    return not any(cells.kind(cell) in cells.VALUE_KINDS for cell in row if cell.strip())


def _header(rows, content, start, width):
    """The indices of the header's records; empty when the data begins at once."""
    following = [index for index in content if index > start]
    if not following:
        row = rows[start]
        return [start] if _is_text(row) else []
    body = [rows[index] for index in following[:400] if len(rows[index]) >= min(width, 2)]
    if not body:
        body = [rows[index] for index in following[:400]]
    if _is_headless(rows[start], body, width):
        return []
    header = [start]
    position = content.index(start)
    for index in content[position + 1: position + 6]:
        if index - header[-1] > 2 or not _continues(rows, header, index, body, width):
            break
        header.append(index)
    # Text above the last text record before numbers: a title when it has no second row's blanks to fill.
    return _shift_title(rows, content, header, width)


def _is_headless(first, body, width):
    """Whether the first record is data: where its columns hold values, it holds values of the same kind."""
    columns = min(len(first), width)
    same = different = 0
    for column in range(columns):
        cell = first[column].strip()
        kinds = Counter(cells.kind(row[column]) for row in body if column < len(row) and row[column].strip())
        kinds.pop("missing", None)
        if not kinds:
            continue
        name, count = kinds.most_common(1)[0]
        if name not in cells.VALUE_KINDS or count < 0.8 * sum(kinds.values()):
            continue
        own = cells.kind(cell)
        if own == name:
            same += 1
        elif own != "missing":
            different += 1
    if not same:
        return False
    if different:
        return same > 3 * different
    return not _numeric_names(first, body)


def _numeric_names(first, body):
    """Whether numbers in the first record are names of columns: years or a running series over other numbers."""
    numbers = []
    for cell in first:
        cell = cell.strip()
        if cell.isdigit():
            numbers.append(int(cell))
    texts = [cell for cell in first if cell.strip() and cells.kind(cell) not in cells.VALUE_KINDS]
    if len(numbers) < 2 or len(set(numbers)) != len(numbers) or len(numbers) + len(texts) < len([c for c in first if c.strip()]):
        return False
    steps = {after - before for before, after in zip(numbers, numbers[1:])}
    if len(steps) != 1 or 0 in steps:
        years = all(1500 <= number <= 2200 for number in numbers)
        if not (years and len(numbers) > 2 and numbers == sorted(numbers)):
            return False
    if len(numbers) == 2 and not all(1500 <= number <= 2200 for number in numbers):
        return False
    later = [row for row in body[:5]]
    return not any(_digits(row) == numbers for row in later) and bool(texts or len(numbers) > 3)


def _digits(row):
    return [int(cell.strip()) for cell in row if cell.strip().isdigit()]


def _continues(rows, header, index, body, width):
    """Whether a record goes on with the header: the same names again, or labels below labels."""
    row = rows[index]
    above = rows[header[0]]
    if row == above and cells.filled(row) > 1 and _is_text(row):
        return True
    if not _is_text(row) or cells.filled(row) == 0:
        return False
    if not row[0].strip() and cells.filled(row) >= 1:
        # Below a label in the first column stands nothing, while the data fills that column or has values at all.
        rest = [other for other in body if other is not row]
        below = [cell for cell in range(len(row)) if row[cell].strip()]
        values = sum(
            1 for cell in below
            if any(cell < len(other) and cells.kind(other[cell]) in cells.VALUE_KINDS for other in rest[:50])
        )
        gaps = sum(1 for cell in range(min(width, len(above))) if not above[cell].strip())
        first_filled = sum(1 for other in rest[:50] if other and other[0].strip())
        blank_below_gap = gaps > 0 and values >= 1
        return blank_below_gap and first_filled >= 0.3 * max(len(rest[:50]), 1) or (
            values >= 0.5 * len(below) and first_filled >= 0.5 * max(len(rest[:50]), 1)
        )
    # Full labels under a row with gaps (control,,fire, / X,Y,X,Y).
    gaps = [cell for cell in range(min(width, len(above))) if not above[cell].strip()]
    if gaps and len(header) == 1 and cells.filled(row) > cells.filled(above):
        numeric = sum(
            1 for cell in range(len(row))
            if _column_values(body, cell, row)
        )
        return numeric >= 0.5 * cells.filled(row)
    return False


def _column_values(body, column, skip):
    kinds = Counter(cells.kind(row[column]) for row in body[:60] if row is not skip and column < len(row) and row[column].strip())
    kinds.pop("missing", None)
    return bool(kinds) and sum(kinds[name] for name in cells.VALUE_KINDS) >= 0.5 * sum(kinds.values())


def _shift_title(rows, content, header, width):
    """For a title as wide as the table (two cells above two columns): the header is the last text record."""
    start = header[0]
    if len(header) > 1 or width > 3:
        return header
    position = content.index(start)
    following = content[position + 1: position + 40]
    if len(following) < 5:
        return header
    second, rest = rows[following[0]], [rows[index] for index in following[1:]]
    if not _is_text(second) or len(second) != width or cells.filled(second) < width:
        return header
    numeric = [column for column in range(width) if _column_values(rest, column, second)]
    if len(numeric) >= max(1, width - 1) and not any(cells.kind(second[column]) in cells.VALUE_KINDS for column in numeric):
        return [following[0]]
    return header


def _ending(rows, layout):
    """Cut blank records, notes without any delimiter, and a second table off the end of the data."""
    end = layout.end
    trailing = 0
    while end > layout.first and cells.is_blank(rows[end - 1]):
        end -= 1
        trailing += 1 if rows[end] else 0
    if trailing >= 2 or end == layout.first or layout.preamble:
        if trailing and end > layout.first:
            layout.footer += trailing
            layout.notes.append(f"{trailing} blank record(s) of delimiters alone at the end were left out")
        layout.end = end
    notes = 0
    probe = layout.end
    while layout.width >= 3 and probe > layout.first + 1 and notes < 20:
        row = rows[probe - 1]
        if len(row) > 1 and cells.filled(row) > 0:
            break
        if row and len(row) == 1 and cells.kind(row[0]) not in ("text", "words", "web"):
            break
        if row and not cells.is_blank(row):
            notes += 1
        probe -= 1
    if notes and all(len(row) != 1 for row in rows[layout.first: probe] if row):
        layout.footer += notes
        layout.end = probe
        layout.notes.append(f"{notes} footer line(s) below the table were left out")
    _delimited_notes(rows, layout)
    _other_table(rows, layout)
    _second_table(rows, layout)


def _delimited_notes(rows, layout):
    """Leave out notes that fill the first cell of a row, below a table whose first column holds values and whose rows are full."""
    end = layout.end
    while end > layout.first and (cells.filled(rows[end - 1]) <= 1) and (not rows[end - 1] or not rows[end - 1][0].strip()
                                                                      or cells.kind(rows[end - 1][0]) in ("words", "text")):
        end -= 1
    notes = [row for row in rows[end: layout.end] if row and row[0].strip()]
    body = [row for row in rows[layout.first: end] if not cells.is_blank(row)]
    if not notes or layout.width < 4 or len(body) < 5 or len(notes) > 20:
        return
    kinds = Counter(cells.kind(row[0]) for row in body)
    full = sum(1 for row in body if cells.filled(row) >= 0.5 * layout.width)
    if kinds["words"] + kinds["text"] + kinds["missing"] or full < 0.95 * len(body):
        return
    layout.footer += sum(1 for row in rows[end: layout.end] if row)
    layout.end = end
    layout.notes.append(f"{len(notes)} footer line(s) below the table were left out")


def _other_table(rows, layout):
    """After a blank record, rows of another even width are another table, which is left out and named."""
    for index in range(layout.first + 1, layout.end - 1):
        if not cells.is_blank(rows[index]):
            continue
        rest = [row for row in rows[index + 1: layout.end] if not cells.is_blank(row)]
        widths = {len(row) for row in rest}
        if len(rest) >= 2 and len(widths) == 1 and widths.isdisjoint({1, layout.width, layout.width + 1}) and len(rest) < index - layout.first:
            layout.footer += layout.end - index
            layout.end = index
            layout.second_table = index + 1
            layout.notes.append(f"another table of {widths.pop()} columns begins at record {index + 2}; it was left out ({len(rest)} record(s))")
            return


def _second_table(rows, layout):
    """The header again begins another table: the same rows again are left out, other rows are stacked below the first."""
    if not layout.header:
        return
    title = [cell.strip() for cell in rows[layout.header[-1]]]
    if cells.filled(title) < 2:
        return
    again = [index for index in range(layout.first + 1, layout.end) if [cell.strip() for cell in rows[index]] == title]
    if not again:
        return
    lead = {index: _lead(rows, index, layout) for index in again}
    first = {tuple(row) for row in rows[layout.first: lead[again[0]]]}
    rest = [tuple(rows[index]) for index in range(again[0] + 1, layout.end)
            if not any(lead[place] <= index <= place for place in again) and not cells.is_blank(rows[index])]
    if rest and sum(row in first for row in rest) >= 0.8 * len(rest):
        layout.second_table = again[0]
        layout.footer += layout.end - lead[again[0]]
        layout.notes.append(f"a second table with the same header and the same rows begins at record {again[0] + 1}; "
                            f"it was left out ({len(rest)} record(s))")
        layout.end = lead[again[0]]
        return
    for place in again:
        layout.dropped += list(range(lead[place], place + 1))
    layout.second_table = again[0]
    layout.notes.append(f"{len(again) + 1} tables with the same header are stacked in one; the next begins at record {again[0] + 1}")


def _lead(rows, index, layout):
    """Where the titles and blank records before a repeated header begin."""
    while index > layout.first and (cells.is_blank(rows[index - 1]) or (
            cells.filled(rows[index - 1]) == 1 and rows[index - 1][0].strip() and cells.is_blank(rows[index - 2]))):
        index -= 1
    return index


def _blank_records(rows, layout):
    """Inside reports (with a preamble or several header rows) records of delimiters alone are spacing."""
    spacing = layout.preamble > 0 or len(layout.header) > 1
    stacked = set(layout.dropped)
    blank = [index for index in range(layout.first, layout.end)
             if rows[index] and index not in stacked and cells.is_blank(rows[index])]
    if not blank:
        return
    if spacing and layout.width > 1:
        layout.dropped = sorted(layout.dropped + blank)
        layout.notes.append(f"{len(blank)} blank record(s) inside the table were left out")
    else:
        shown = ", ".join(str(index + 1) for index in blank[:5])
        layout.notes.append(f"{len(blank)} blank record(s) (of delimiters alone) counted as rows: record {shown}{'…' if len(blank) > 5 else ''}")


def join_header(header, width):
    """One name for each column from one or more header records.

    Upper labels that span several columns are carried to the right, as merged cells are, where a lower
    record has a label of its own.
    """
    if len(header) > 1 and all(row == header[0] for row in header):
        return [" ".join(cell.strip() for cell in column) for column in zip(*header)]
    if len(header) == 1:
        return list(header[0])
    rows = [[cell.strip() for cell in row] + [""] * (width - len(row)) for row in header]
    total = max(len(row) for row in rows)
    rows = [row + [""] * (total - len(row)) for row in rows]
    names = []
    carried = [""] * len(rows)
    for column in range(total):
        parts = []
        for level, row in enumerate(rows):
            own = row[column]
            if own:
                carried[level] = own
                for lower in range(level + 1, len(rows)):
                    carried[lower] = ""
            elif level + 1 < len(rows) and any(rows[lower][column] for lower in range(level + 1, len(rows))):
                own = carried[level]
            if own:
                parts.append(own)
        names.append(" ".join(parts))
    return names


def _reconcile(rows, layout, body):
    """Make header and data agree on the number of columns."""
    names = layout.names
    widest = max(body)
    usual = Counter(body).most_common(1)[0][0]
    while len(names) > usual and len(names) > 1 and not names[-1].strip() and len(names) > widest:
        names.pop()
    if usual == len(names) + 1 and all(
        not (len(rows[index]) > len(names) and rows[index][len(names)].strip()) for index in range(layout.first, layout.end)
    ):
        layout.notes.append("every data row ends with one delimiter more than the header; the empty extra field is left out")
        layout.width = len(names)
        return
    layout.width = max(len(names), usual)
