"""The other formats: workbooks, JSON, columnar files, databases, arrays, text, images."""

from decimal import Decimal

import pandas as pd
from conftest import column, fixture, profile, said


def test_every_sheet_is_named_with_its_range():
    found = fixture("sheets.xlsx")
    assert [(s["name"], s["rows"], s["columns"], s["used_range"], s["hidden"]) for s in found["sheets"]] == [
        ("Summary", 2, 2, "A1:B3", False), ("Data", 40, 2, "A1:B41", False), ("Secret", 1, 1, "A1:A2", True), ("Empty", 0, 0, None, False)]
    assert found["sheet"] == "Summary"
    assert said(found, "'Summary'", "Data (40 × 2)", "hidden")
    assert said(found, "most rows", "'Data'")


def test_merged_header_cells_label_every_column_below():
    found = fixture("merged_header.xlsx")
    assert [detail["name"] for detail in found["columns_detail"]] == ["Site", "Current Phase 1", "Current Phase 2", "Total all"]
    assert found["preamble_lines"] == 3


def test_formulas_without_a_stored_result_are_said():
    assert said(fixture("formulas.xlsx"), "2 formula cell(s)")


def test_wide_integers_of_json_keep_their_digits():
    found = column(fixture("wide_integers.json"), "n")
    assert (found["min"], found["max"]) == (10292320860000001, 10292320860000003)


def test_records_under_a_key_are_found():
    found = fixture("under_a_key.json")
    assert said(found, "'items'")
    assert said(found, "nested", "tags")


def test_a_json_fault_is_named_with_its_place():
    assert "line 2, column 13" in fixture("broken.json")["error"]["message"]
    assert "line 2" in fixture("broken.jsonl")["error"]["message"]


def test_json_knows_no_nan(write):
    assert "NaN" in write("value.json", '{"a": NaN}')["error"]["message"]


def test_deep_nesting_is_refused(write):
    assert write("deep.json", "[" * 200_000)["error"]["kind"] in ("too_large", "syntax")


def test_an_all_missing_column_of_parquet():
    found = column(fixture("all_null.parquet"), "when")
    assert (found["missing"], found["missing_percent"], found["dtype"]) == (15, 100.0, "datetime64[us]")


def test_long_lists_are_summarised():
    found = column(fixture("lists.parq"), "series")
    assert found["lengths"] == {"min": 50, "max": 50}
    assert len(found["examples"][0]) < 120
    assert found["distinct"] == 1


def test_decimals_of_parquet_say_how_to_calculate_with_them(tmp_path):
    path = tmp_path / "prices.parquet"
    pd.DataFrame({"price": [Decimal("1.50"), None, Decimal("12.25")]}).to_parquet(path)
    assert column(profile(path), "price")["notes"] == ["decimal.Decimal objects from 1.50 to 12.25: use .astype(float) for statistics"]


def test_parquet_is_known_by_its_bytes():
    assert fixture("named_without_suffix")["format"] == "parquet"


def test_tables_of_a_database_are_counted():
    found = fixture("shop.sqlite")
    assert [(t["name"], t["kind"], t["rows"]) for t in found["tables"]] == [("dear", "view", 1), ("empty", "table", 0), ("item", "table", 3)]
    assert column(found, "price")["missing"] == 1


def test_arrays_are_described_without_pickle():
    assert fixture("cube.npy")["shape"] == [2, 3, 4]
    assert [a["name"] for a in fixture("several.npz")["arrays"]] == ["level", "image"]
    assert "pickle" in fixture("objects.npy")["error"]["message"]


def test_text_stays_text():
    found = fixture("notes.txt")
    assert (found["format"], found["lines"], found["words"]) == ("text", 5, 15)
    assert fixture("service.log")["format"] == "text"
    assert fixture("readme.md")["format"] == "text"


def test_images_are_measured_upright():
    found = fixture("turned.jpg")
    assert (found["width"], found["height"], found["orientation"]) == (20, 40, 6)
    assert fixture("picture.webp")["statistics"][0]["channel"] == "R"


def test_unknown_bytes_are_described():
    assert "25 50 44 46" in fixture("document.pdf")["error"]["message"]
    assert "sandbox only" in fixture("pickle.pkl")["error"]["hint"]
