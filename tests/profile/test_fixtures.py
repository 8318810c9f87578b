"""Every fixture: its shape or its error, and that the loading code gives exactly what the profile says."""

import json

import pandas as pd
import pytest
from conftest import FIXTURES, fixture, load

TABLES = {
    "all_null.parquet": (15, 2), "backslash_escape.csv": (3, 2), "blank_lines_first.csv": (2, 2), "blank_rows.csv": (3, 3),
    "broken_utf8.csv": (3, 2), "by_key.json": (2, 2), "cities.feather": (3, 3), "columns.json": (3, 2), "columns_of_blanks.txt": (3, 3),
    "comments.csv": (2, 2), "country_codes.csv": (2, 1), "date_with_one_number.csv": (10, 3), "dots_as_thousands.csv": (3, 3), "duplicate_rows.csv": (4, 2),
    "equal_first_column.csv": (2, 2), "extra_delimiter_at_end.csv": (3, 4), "footer.csv": (3, 3), "formulas.xlsx": (2, 2),
    "gb18030.csv": (4, 3), "header_again.csv": (3, 2), "header_and_blank_lines.csv": (0, 1), "header_only.csv": (0, 2),
    "latin1.csv": (3, 3), "leading_zeros.csv": (3, 2), "line_breaks_in_cells.csv": (3, 2), "line_of_other_delimiter.csv": (12, 5),
    "lists.jsonl": (2, 2), "lists.parq": (20, 2), "matrix.npy": (4, 3), "merged_header.xlsx": (3, 4), "missing_delimiter.csv": (12, 5),
    "missing_markers.csv": (10, 2), "mixed_dates.csv": (4, 1), "mixed_line_ends.csv": (3, 2), "mostly_numbers.csv": (6, 1),
    "named_without_suffix": (3, 3), "no_header.csv": (3, 3), "old_mac_line_ends.csv": (2, 2), "notes_below.csv": (7, 4), "one_column.csv": (3, 1),
    "one_empty_of_150.csv": (150, 2), "one_record.json": (1, 2), "one_value.csv": (1, 1), "open_quote.csv": (3, 2), "other_table_below.csv": (4, 3), "other_table_with_same_names.csv": (12, 5), "pipe.txt": (4, 3),
    "plain.csv": (4, 3), "plain.csv.bz2": (4, 3), "plain.csv.gz": (4, 3), "plain.csv.xz": (4, 3), "plain.csv.zst": (4, 3), "plain.zip": (4, 3),
    "preamble.csv": (3, 3), "ragged.csv": (4, 4), "records.jsonl": (3, 3), "records.jsonl.zst": (2, 1), "report.xlsx": (6, 4), "same_names.csv": (2, 4),
    "semicolon_decimal_comma.csv": (4, 3), "several.npz": (2, 1), "sheets.xlsx": (2, 2), "shift_jis.csv": (3, 2), "shop.sqlite": (3, 3),
    "single_quotes.csv": (3, 2), "stacked_tables.csv": (3, 2), "stray_quote.csv": (12, 5), "stream.arrow": (3, 1),
    "surplus_delimiter.csv": (12, 5), "tab.tsv": (4, 3), "table_twice.csv": (12, 5), "thousands.csv": (4, 2),
    "title_of_two_cells.csv": (6, 2), "two_bars.csv": (2, 3), "two_header_rows.csv": (3, 4), "two_tables.zip": (4, 3), "under_a_key.json": (3, 2),
    "utf16.csv": (4, 3), "utf16_without_mark.csv": (4, 3), "utf8_with_mark.csv": (4, 3), "values.json": (3, 1),
    "wide_integers.csv": (3, 2), "wide_integers.json": (2, 1), "wide_letters.csv": (6, 139), "years_as_header.csv": (3, 4),
    "fixed_width.txt": (4, 4), "two_colons.dat": (3, 3), "control_character.csv": (3, 3), "tabs.xls": (3, 3), "page.xls": (2, 2), "records_in.csv": (4, 2),
    "blanks_as_thousands.csv": (3, 2), "apostrophes_as_thousands.csv": (3, 2), "lakh.csv": (3, 2), "amounts.csv": (3, 4), "marks_for_missing.csv": (6, 2),
    "units.csv": (4, 3), "totals.csv": (7, 3), "utf32_without_mark.csv": (4, 3), "marks_inside.csv": (2, 2), "people.dta": (3, 3), "people.sav": (3, 3),
    "people.xpt": (3, 3), "people.orc": (3, 3), "people.avro": (3, 3),
    "zero_bytes.csv": (3, 2), "zeros_as_text.csv": (3, 1),
}
ERRORS = {
    "broken.json": "syntax", "broken.jsonl": "syntax", "broken.parquet": "corrupt", "broken.png": "corrupt", "document.pdf": "unsupported",
    "empty.csv": "empty", "not_a_workbook.xlsx": "corrupt", "not_really.csv.gz": "corrupt", "objects.npy": "unsupported",
    "archive.tar.gz": "unsupported", "letter.docx": "unsupported", "page_of_an_error.csv": "corrupt", "spreadsheet_2003.xls": "unsupported",
    "pickle.pkl": "unsupported", "truncated.csv.gz": "corrupt",
}
OTHERS = {"cube.npy", "notes.txt", "palette.gif", "picture.webp", "readme.md", "service.log", "turned.jpg"}


def test_every_fixture_is_tested():
    assert {path.name for path in FIXTURES.iterdir()} == set(TABLES) | set(ERRORS) | OTHERS


@pytest.mark.parametrize("name", sorted(TABLES))
def test_shape_and_what_the_loading_code_gives_agree(name):
    found = fixture(name)
    assert (found["rows"], found["columns"]) == TABLES[name]
    frame = load(found, FIXTURES)
    assert isinstance(frame, pd.DataFrame)
    assert frame.shape == TABLES[name]
    assert [detail["name"] for detail in found["columns_detail"]] == [str(label) for label in frame.columns]
    assert [detail["dtype"] for detail in found["columns_detail"]] == [str(dtype) for dtype in frame.dtypes]
    assert [detail["missing"] for detail in found["columns_detail"]] == frame.isna().sum().tolist()


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_what_cannot_be_read_says_so(name):
    error = fixture(name)["error"]
    assert error["kind"] == ERRORS[name]
    assert name in error["message"]
    assert error["hint"]


@pytest.mark.parametrize("name", sorted(set(TABLES) | set(ERRORS) | OTHERS))
def test_a_profile_is_strict_json(name):
    def reject(constant):
        raise AssertionError(constant)

    assert json.loads(json.dumps(fixture(name), allow_nan=False), parse_constant=reject)["file"] == name


def test_duplicate_rows_are_those_of_pandas():
    for name in ("duplicate_rows.csv", "lists.parq", "country_codes.csv", "date_with_one_number.csv", "plain.csv"):
        found = fixture(name)
        frame = load(found, FIXTURES)
        expected = 0 if name == "lists.parq" else int(frame.duplicated().sum())
        assert found["duplicate_rows"] == expected, name
