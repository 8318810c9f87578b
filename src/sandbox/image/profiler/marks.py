"""The decimal and thousands marks of a table's numbers, as its columns agree on them."""

import re

from . import cells

# Marks between thousands beside comma and dot: apostrophes, blank, no-break and narrow no-break blank, thin blank.
GROUPING = ["'", "’", " ", "\u00a0", "\u202f", "\u2009"]
COLUMNS = 300
ROWS = 20_000
# A column of amounts has none but numbers in its first rows.
BEGINNING = 50


def grouped(mark):
    """The pattern of a number with a mark between thousands."""
    if mark == ".":
        return cells.THOUSANDS_DOT
    if mark == ",":
        return cells.THOUSANDS_COMMA
    return re.compile(rf"[+-]?\d{{1,3}}(?:{re.escape(mark)}\d{{3}})+(?:[.,]\d+)?")


def find(body, width, delimiter):
    """(decimal, thousands or None): a comma where columns say so and no column speaks against it."""
    body = body if len(body) <= ROWS else body[:: len(body) // ROWS]
    comma = dot_thousands = comma_thousands = 0
    against_comma = False
    for column in range(min(width, COLUMNS)):
        texts = [row[column].strip() for row in body if column < len(row)]
        texts = [value for value in texts if value not in cells.NA_MARKERS]
        if not texts or not any("," in value or "." in value for value in texts[:2000] + texts[-200:]):
            continue
        with_comma = [value for value in texts if "," in value]
        plain = sum(1 for value in texts if cells.NUMBER.fullmatch(value))
        if with_comma:
            as_decimal = all(cells.DECIMAL_COMMA.fullmatch(value) or cells.THOUSANDS_DOT.fullmatch(value) for value in with_comma)
            as_thousands = all(cells.THOUSANDS_COMMA.fullmatch(value) for value in with_comma)
            rest = plain + len(with_comma) == len(texts)
            dotted = any("." in value for value in texts if "," not in value and not cells.THOUSANDS_DOT.fullmatch(value))
            if as_decimal and rest and not dotted and not as_thousands:
                comma += 1
                dot_thousands += any("." in value for value in with_comma)
            elif as_thousands and rest:
                comma_thousands += 1
        elif plain == len(texts) and any("." in value for value in texts):
            against_comma = against_comma or not all(cells.THOUSANDS_DOT.fullmatch(value) or "." not in value for value in texts)
    if comma and not against_comma and delimiter != ",":
        return ",", "." if dot_thousands else None
    if comma_thousands and not comma:
        return ".", ","
    return _by_other_marks(body, width, delimiter)


def _by_other_marks(body, width, delimiter):
    """The marks where thousands stand between blanks or apostrophes."""
    for column in range(min(width, COLUMNS)):
        first = [row[column].strip() for row in body[:BEGINNING] if column < len(row)]
        if not all(value[0] in "+-.0123456789" for value in first if value not in cells.NA_MARKERS):
            continue
        texts = [row[column].strip() for row in body if column < len(row)]
        texts = [value for value in texts if value not in cells.NA_MARKERS]
        found = next((mark for mark in GROUPING if mark != delimiter and any(mark in value for value in texts)), None)
        if found is None:
            continue
        pattern = grouped(found)
        others = [value for value in texts if not pattern.fullmatch(value)]
        if len(others) == len(texts) or not all(cells.NUMBER.fullmatch(value) or cells.DECIMAL_COMMA.fullmatch(value) for value in others):
            continue
        commas = any("," in value for value in texts)
        if commas and (any("." in value for value in texts) or delimiter == ","):
            continue
        # A decimal comma is for the whole table: no column of plain decimal points may speak against it.
        if commas and _has_points(body, width):
            continue
        return "," if commas else ".", found
    return ".", None


def _has_points(body, width):
    return any("." in row[column] and cells.NUMBER.fullmatch(row[column].strip())
               for row in body[:2000] for column in range(min(width, COLUMNS, len(row))))
