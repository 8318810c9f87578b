"""The other formats: workbooks, JSON, columnar files, databases, arrays, text, images."""

import sqlite3
from decimal import Decimal

import duckdb
import pandas as pd
import pytest
from conftest import FIXTURES, column, fixture, load, profile, said


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


def test_columns_of_fixed_width_keep_blanks_inside_their_cells():
    found = fixture("fixed_width.txt")
    assert (found["format"], column(found, "City")["max"], column(found, "Amount")["max"]) == ("fwf", "Oslo", 120)


def test_prose_is_no_table_of_fixed_width(write):
    text = "The quick fox ran over the hill and\nsaw 12 geese; 3 of them flew off to\nthe north at 10:30, before the rain\ncame down and 40 more followed them\n"
    assert write("tale.txt", text)["format"] == "text"


@pytest.mark.parametrize(("name", "kind"), [("people.dta", "stata"), ("people.sav", "spss"), ("people.xpt", "sas"), ("people.orc", "orc"), ("people.avro", "avro")])
def test_tables_of_other_programs_are_read(name, kind):
    found = fixture(name)
    assert found["format"] == kind
    assert found["columns_detail"][2]["missing"] == 1


@pytest.mark.parametrize("name", ["people.dta", "people.sav", "people.xpt", "people.orc", "people.avro"])
def test_a_damaged_table_of_another_program_is_an_error(name, tmp_path):
    path = tmp_path / name
    path.write_bytes((FIXTURES / name).read_bytes()[:200])
    assert profile(path)["error"]["kind"] == "corrupt"


def test_what_a_file_really_is_goes_before_its_name():
    assert said(fixture("tabs.xls"), "named .xls", "delimited text")
    assert said(fixture("page.xls"), "HTML page", "table 1 of 1")
    assert said(fixture("records_in.csv"), "named .csv", "JSON")
    assert "403 Forbidden" in fixture("page_of_an_error.csv")["error"]["message"]
    assert "Excel 2003" in fixture("spreadsheet_2003.xls")["error"]["message"]
    assert "tar archive" in fixture("archive.tar.gz")["error"]["message"]
    assert "Word document" in fixture("letter.docx")["error"]["message"]


def test_the_tables_of_a_duckdb_database_are_counted(tmp_path):
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE person AS SELECT range AS id FROM range(3); CREATE VIEW first AS SELECT * FROM person LIMIT 1")
    found = profile(path)
    assert [(entry["name"], entry["kind"], entry["rows"]) for entry in found["tables"]] == [("first", "view", 1), ("person", "table", 3)]
    assert load(found, tmp_path).shape == (3, 1)
    path.write_bytes(path.read_bytes()[:9000])
    assert profile(path)["error"]["kind"] == "corrupt"


def test_a_text_index_of_a_database_is_no_table_of_its_own(tmp_path):
    with sqlite3.connect(tmp_path / "notes.sqlite") as connection:
        connection.executescript("CREATE TABLE note (id TEXT PRIMARY KEY, body TEXT) WITHOUT ROWID; INSERT INTO note VALUES ('a', 'x'), ('b', 'y');"
                                 "CREATE VIRTUAL TABLE found USING fts5(body);")
    connection.close()
    found = profile(tmp_path / "notes.sqlite")
    assert [(entry["name"], entry["rows"]) for entry in found["tables"]] == [("found", 0), ("note", 2)]
    assert found["table"] == "note"


@pytest.mark.parametrize(("text", "hint"), [('[{"a": 1},]', "comma"), ('// note\n[1]', "comments"), ('{"a": 1}{"a": 2}', "JSON Lines")])
def test_a_usual_fault_of_json_has_its_own_advice(text, hint, write):
    assert hint in write("value.json", text)["error"]["hint"]


@pytest.mark.parametrize("name", ["photo.png", "photo.jpg", "photo.webp", "photo.tiff"])
@pytest.mark.parametrize(("orientation", "size"), [(1, (40, 20)), (3, (40, 20)), (6, (20, 40)), (8, (20, 40))])
def test_every_kind_of_image_is_measured_upright(name, orientation, size, tmp_path):
    from PIL import Image

    image = Image.new("RGB", (40, 20), (10, 20, 30))
    exif = Image.Exif()
    exif[274] = orientation
    image.save(tmp_path / name, exif=exif)
    found = profile(tmp_path / name)
    assert (found["width"], found["height"], found["orientation"]) == (*size, orientation)


def test_frames_and_deep_channels_of_images(tmp_path):
    from PIL import Image

    frames = [Image.new("L", (8, 6), value) for value in (0, 120, 250)]
    frames[0].save(tmp_path / "film.gif", save_all=True, append_images=frames[1:])
    frames[0].save(tmp_path / "pages.tiff", save_all=True, append_images=frames[1:])
    Image.new("I;16", (8, 6), 40_000).save(tmp_path / "deep.png")
    Image.new("CMYK", (8, 6), (0, 0, 0, 255)).save(tmp_path / "print.jpg")
    assert [profile(tmp_path / name)["frames"] for name in ("film.gif", "pages.tiff")] == [3, 3]
    assert profile(tmp_path / "deep.png")["statistics"][0]["max"] == 40_000
    assert profile(tmp_path / "print.jpg")["mode"] == "CMYK"
