"""Faults that users of other tools have met with files, each on a file of this kind."""

import numpy as np
import pandas as pd
import pytest
from conftest import column, load, profile, said


def test_missing_cells_are_counted_alike_in_every_type(tmp_path):
    path = tmp_path / "gaps.parquet"
    frame = pd.DataFrame({
        "float": [1.5, np.nan, 2.5, np.nan], "object": ["a", None, "b", None], "moment": pd.to_datetime(["2024-01-01", None, "2024-01-03", None]),
        "integer": pd.array([1, pd.NA, 3, pd.NA], dtype="Int64"), "flag": pd.array([True, pd.NA, False, pd.NA], dtype="boolean"),
        "text": pd.array(["a", pd.NA, "", pd.NA], dtype="string"), "span": pd.to_timedelta(["1h", None, "2h", None]),
    })
    frame.to_parquet(path)
    found = profile(path)
    assert {detail["name"]: detail["missing"] for detail in found["columns_detail"]} == dict.fromkeys(frame, 2)
    assert found["missing_cells"] == int(load(found, tmp_path).isna().sum().sum()) == 14


def test_empty_text_is_missing_in_delimited_text_alone(write):
    found = write("gaps.csv", 'a,b\nx,""\ny,\nz,v\n')
    assert column(found, "b")["missing"] == 2


def test_the_sheet_with_most_rows_is_named_beside_the_others(tmp_path):
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"a": range(3)}).to_excel(book, sheet_name="Cover", index=False)
        pd.DataFrame({"a": range(400), "b": range(400)}).to_excel(book, sheet_name="All orders", index=False)
        for number in range(8):
            pd.DataFrame({"a": range(number)}).to_excel(book, sheet_name=f"Month {number}", index=False)
    found = profile(path)
    sheets = {sheet["name"]: sheet["rows"] for sheet in found["sheets"]}
    assert len(sheets) == 10 and sheets["All orders"] >= 400
    assert found["sheet"] in sheets
    assert said(found, found["sheet"])
    assert load(found, tmp_path).shape == (found["rows"], found["columns"])


@pytest.mark.parametrize("byte, char", [(0xAE, "®"), (0x96, "–"), (0x80, "€")])
def test_a_byte_of_windows_1252_is_decoded_and_its_encoding_is_in_the_loading_code(byte, char, write, tmp_path):
    rows = b"".join(b"Acme%s %d;caf\xe9;%d,50\n" % (bytes([byte]), number, number) for number in range(20))
    found = write("brands.csv", b"name;kind;price\n" + rows)
    assert found["encoding"].lower().replace("-", "") in ("cp1252", "windows1252")
    assert "1252" in found["load"]
    assert load(found, tmp_path)["name"][0] == f"Acme{char} 0"


def test_thousands_of_rows_of_long_lists_are_summarised(tmp_path):
    path = tmp_path / "lists.parquet"
    values = list(np.arange(4000 * 100, dtype="float64").reshape(4000, 100))
    pd.DataFrame({f"v{number}": values for number in range(3)}).to_parquet(path)
    found = profile(path)
    assert (found["rows"], found["columns"]) == (4000, 3)
    assert max(len(cell) for row in found["sample"] for cell in row) <= 120


def test_wide_ids_keep_every_digit_when_streaming(tmp_path):
    path = tmp_path / "ids.csv"
    path.write_text("id,n\n" + "".join(f"{1643819529060935244 + number},{number}\n" for number in range(5000)))
    found = profile(path, whole_bytes=1000)
    assert (column(found, "id")["min"], column(found, "id")["max"]) == (1643819529060935244, 1643819529060940243)
    assert column(found, "id")["dtype"] == "int64"
    assert found["sample"][0][0] == "1643819529060935244"


def test_a_version_below_many_numbers_keeps_every_row(write):
    found = write("versions.csv", "version\n" + "10.5\n" * 21_000 + "11.0.1\n" * 40)
    assert (found["rows"], column(found, "version")["dtype"]) == (21_040, "object")


def test_titles_of_several_cells_above_a_blank_line_are_no_header(write, tmp_path):
    rows = "".join(f'"0{day}.01.2024";"-{day},50";"Rent";\n' for day in range(1, 5))
    found = write("statement.csv", '"Account";"30 days";\n"Balance";"1.234,56 EUR";\n\n"Day";"Amount";"Purpose";\n' + rows)
    frame = load(found, tmp_path)
    assert frame.columns[:3].tolist() == ["Day", "Amount", "Purpose"]
    assert frame["Amount"].tolist() == [-1.5, -2.5, -3.5, -4.5]
    assert found["preamble_lines"] >= 2


def test_years_name_columns_below_titles_in_two_parts(write, tmp_path):
    found = write("indicators.csv", '"Data Source","Indicators",\n\n"Last Updated","2024-01-01",\n\n"Country","Code","1960","1961",\n"Aruba","ABW","1.5","2.5",\n'
                                    '"Angola","AGO","","3.5",\n"Albania","ALB","7","8",\n')
    assert load(found, tmp_path).columns[:4].tolist() == ["Country", "Code", "1960", "1961"]
    assert (found["rows"], column(found, "1960")["missing"]) == (3, 1)


def test_names_and_rows_in_lists_of_their_own_are_a_table(write, tmp_path):
    found = write("split.json", '{"columns": ["a", "b"], "index": [0, 1, 2], "data": [[1, "x"], [2, "y"], [3, null]]}')
    assert load(found, tmp_path).shape == (found["rows"], found["columns"]) == (3, 2)
    assert column(found, "b")["missing"] == 1
