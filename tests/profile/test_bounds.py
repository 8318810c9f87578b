"""Hostile and oversized files: bounded, with a clear message; and large files seen to their last row."""

import gzip
import os
import threading
import zipfile

import numpy as np
import pandas as pd
import pytest
from conftest import FIXTURES, column, fixture, load, profile


def test_links_pipes_and_folders_are_refused(tmp_path):
    os.symlink(FIXTURES / "plain.csv", tmp_path / "link.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    for name in ("link.csv", "pipe.csv", "."):
        assert profile(tmp_path / name)["error"]["kind"] == "not_regular"
    assert profile(tmp_path / "absent.csv")["error"]["kind"] == "not_found"


def test_a_zip_bomb_is_refused_before_it_is_unfolded(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", b"0" * (200 << 20))
    assert profile(tmp_path / "bomb.zip")["error"]["kind"] == "too_large"


def test_a_workbook_bomb_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/worksheets/sheet1.xml", b"<c/>" * (30 << 20))
    assert profile(tmp_path / "bomb.xlsx")["error"]["kind"] == "too_large"


def test_a_gzip_bomb_is_refused(tmp_path):
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", 9) as stream:
        for _ in range(60):
            stream.write(b"1,2,3\n" * 170_000)
    assert profile(path)["error"]["kind"] == "too_large"


def test_a_workbook_behind_a_password_is_named_as_such(write):
    # The container that spreadsheet programs write: a compound file with a stream of this name.
    content = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1016) + "EncryptedPackage".encode("utf-16-le") + bytes(512)
    error = write("secret.xlsx", content)["error"]
    assert (error["kind"], "password" in error["message"]) == ("encrypted", True)


def test_an_archive_behind_a_password_is_named_as_such(tmp_path):
    path = tmp_path / "secret.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "a,b\n1,2\n")
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(bytes(data))
    assert profile(path)["error"]["kind"] == "encrypted"


def test_a_cell_far_out_in_a_sheet_is_refused(tmp_path):
    from openpyxl import Workbook

    book = Workbook()
    book.active["A1"] = 1
    book.active["XFD1048576"] = 2
    book.save(tmp_path / "far.xlsx")
    assert "1,048,576 rows" in profile(tmp_path / "far.xlsx")["error"]["message"]


def test_blank_lines_and_quotes_alone_take_no_time_to_speak_of(write):
    assert write("blank.csv", b"\n" * 5_000_000)["error"]["kind"] == "empty"
    assert write("quotes.csv", b'"' * 1_000_000)["file"] == "quotes.csv"


def test_bytes_under_the_name_of_a_table_are_refused(write):
    assert write("random.csv", np.random.default_rng(3).bytes(100_000))["error"]["kind"] == "corrupt"


def test_one_endless_line_is_refused(write):
    assert write("line.csv", b"a" * (60 << 20))["error"]["kind"] == "too_large"


def test_a_hundred_thousand_columns_are_refused_or_bounded(write):
    line = ",".join(map(str, range(100_000)))
    assert write("wide.csv", f"{line}\n{line}\n")["error"]["kind"] == "too_large"


def test_thousands_of_columns_are_counted_and_details_bounded(write):
    names = ",".join(f"c{number}" for number in range(3000))
    found = write("wide.csv", names + "\n" + ",".join(["1"] * 2999) + ",\n")
    assert (found["columns"], len(found["columns_detail"]), found["missing_cells"]) == (3000, 1000, 1)


@pytest.mark.parametrize("name", ["plain.csv", "shop.sqlite", "sheets.xlsx", "lists.parq", "cities.feather", "plain.csv.gz", "turned.jpg", "several.npz"])
def test_a_file_cut_anywhere_is_an_error_or_a_table(name, tmp_path):
    data = (FIXTURES / name).read_bytes()
    for part in range(1, 20):
        path = tmp_path / f"cut{part}-{name}"
        path.write_bytes(data[: len(data) * part // 20])
        found = profile(path)
        assert "load" in found or found["error"]["kind"] != "internal"


@pytest.mark.parametrize("name", ["plain.csv", "sheets.xlsx", "lists.parq", "records.jsonl", "shop.sqlite", "palette.gif", "matrix.npy"])
def test_flipped_bytes_never_escape(name, tmp_path):
    data = np.frombuffer((FIXTURES / name).read_bytes(), dtype=np.uint8)
    for seed in range(15):
        random = np.random.default_rng(seed)
        bad = data.copy()
        places = random.integers(0, len(bad), max(1, len(bad) // 200))
        bad[places] = random.integers(0, 256, len(places))
        path = tmp_path / f"flip{seed}-{name}"
        path.write_bytes(bad.tobytes())
        found = profile(path)
        assert "load" in found or found["error"]["message"]


def table(rows):
    random = np.random.default_rng(1)
    return pd.DataFrame({
        "id": np.arange(rows), "group": random.integers(0, 30, rows), "share": random.random(rows).round(4),
        "name": [f"n{value}" for value in random.integers(0, 900, rows)],
        "gap": pd.Series(random.integers(0, 9, rows)).where(random.random(rows) > 0.1), "flag": random.random(rows) > 0.5,
    })


def same(whole, streamed):
    """Both ways to read a file agree on everything exact."""
    for key in ("rows", "columns", "duplicate_rows", "missing_cells", "load"):
        assert streamed[key] == whole[key], key
    for first, second in zip(whole["columns_detail"], streamed["columns_detail"]):
        for key in ("name", "dtype", "missing", "min", "max"):
            assert second[key] == first[key], (first["name"], key)
        if second["distinct_exact"]:
            assert second["distinct"] == first["distinct"]
        if "mean" in first:
            assert second["mean"] == pytest.approx(first["mean"])


def test_a_streamed_csv_has_the_profile_of_a_whole_one(tmp_path):
    path = tmp_path / "table.csv"
    frame = table(20_000)
    pd.concat([frame, frame.head(7)]).to_csv(path, index=False)
    same(profile(path), profile(path, whole_bytes=1000))


@pytest.mark.parametrize("name", ["thousands.csv", "semicolon_decimal_comma.csv", "wide_integers.csv", "leading_zeros.csv", "utf8_with_mark.csv",
                                  "duplicate_rows.csv", "missing_markers.csv", "line_breaks_in_cells.csv", "preamble.csv", "plain.csv.gz"])
def test_a_streamed_fixture_has_the_profile_of_a_whole_one(name):
    same(fixture(name), fixture(name, whole_bytes=1))


def test_a_late_change_of_type_is_seen_when_streaming(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("n,m\n" + "1,2\n" * 60_000 + "1.5,x\n")
    found = profile(path, whole_bytes=1000)
    assert (column(found, "n")["dtype"], column(found, "n")["max"]) == ("float64", 1.5)
    assert column(found, "m")["dtype"] == "object"
    assert "60,000" in column(found, "m")["notes"][0]


def uneven(path, lines):
    """Three even columns with one surplus cell deep inside."""
    rows = [f"{number},name {number % 97},{number * 3}" for number in range(lines)]
    rows[lines // 2] += ",surplus"
    path.write_text("id,name,triple\n" + "\n".join(rows) + "\n")


def test_a_surplus_cell_deep_in_a_large_file_is_kept_and_named(tmp_path):
    path = tmp_path / "uneven.csv"
    uneven(path, 160_000)
    assert path.stat().st_size > 3 << 20
    found = profile(path)
    assert (found["rows"], found["columns"]) == (160_000, 4)
    assert any("line 80002" in warning for warning in found["warnings"])


def test_a_surplus_cell_in_a_file_beyond_memory_is_said_with_its_line(tmp_path):
    path = tmp_path / "uneven.csv"
    uneven(path, 40_000)
    found = profile(path, whole_bytes=1000)
    assert (found["rows"], found["columns"]) == (40_000, 3)
    assert any("not every line" in warning and "20002" in warning for warning in found["warnings"])
    assert load(found, tmp_path).shape == (40_000, 3)


def test_a_quote_never_closed_in_a_file_beyond_memory_is_said(tmp_path):
    path = tmp_path / "open.csv"
    path.write_text("id,name\n" + "".join(f"{number},n\n" for number in range(30_000)) + '30000,"n\n' + "".join(f"{n},m\n" for n in range(30_000)))
    found = profile(path, whole_bytes=1000)
    assert "error" in found or any("never closed" in warning for warning in found["warnings"])


@pytest.mark.parametrize("codec", ["gb18030", "utf-16", "utf-16-le", "cp932"])
def test_large_text_of_another_encoding_is_streamed(codec, tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(("編號,名字,金額\n" + "".join(f"{n},山田{n % 97},{n}.5\n" for n in range(20_000))).encode(codec))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    found = profile(path, whole_bytes=1000, scratch=str(scratch))
    assert (found["rows"], found["columns"], column(found, "名字")["distinct"]) == (20_000, 3, 97)
    assert column(found, "金額")["max"] == 19_999.5
    assert load(found, tmp_path).shape == (20_000, 3)
    assert list(scratch.iterdir()) == []


def test_an_encoding_that_shows_only_far_down_is_found(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(b"n,name,city\n" + b"1,Ann,Oslo\n" * 40_000 + "2,Zoé,Orléans\n3,Noël,Nîmes\n".encode("cp1252"))
    found = profile(path, whole_bytes=1000)
    assert (found["encoding"], found["rows"], column(found, "name")["max"]) == ("windows-1252", 40_002, "Zoé")
    assert load(found, tmp_path)["name"].iloc[-2] == "Zoé"


def test_a_copy_in_another_encoding_that_scratch_cannot_hold_is_refused(tmp_path):
    path = tmp_path / "noise.csv"
    random = np.random.default_rng(5)
    path.write_bytes(("n,名字\n" + "".join(f"{n},{''.join(map(chr, random.integers(0x4E00, 0x9FA5, 20)))}\n" for n in range(20_000))).encode("gb18030"))
    error = profile(path, whole_bytes=1000, memory_bytes=1 << 20)["error"]
    assert (error["kind"], "iconv" in error["hint"]) == ("too_large", True)


def test_distinct_counts_and_duplicates_are_exact_where_memory_allows(tmp_path):
    path = tmp_path / "table.csv"
    frame = table(30_000)
    pd.concat([frame, frame.head(11)]).to_csv(path, index=False)
    found = profile(path, whole_bytes=1000)
    assert all(detail["distinct_exact"] for detail in found["columns_detail"])
    assert [detail["distinct"] for detail in found["columns_detail"]] == [int(frame[name].nunique()) for name in frame]
    assert found["duplicate_rows"] == 11
    assert column(found, "share")["quantiles"]["0.5"] == pytest.approx(pd.concat([frame, frame.head(11)])["share"].median())


def test_numbers_written_in_two_ways_are_one_value_when_streaming(tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("a,b\n" + "1.0,x\n1.00,x\n2.5,y\n" * 5000)
    found = profile(path, whole_bytes=1000)
    assert column(found, "a")["distinct"] == 2
    assert found["duplicate_rows"] == 14_998


def test_a_column_that_seems_to_repeat_and_does_not_is_counted_exactly(tmp_path):
    path = tmp_path / "sorted.csv"
    path.write_text("day,n\n" + "2024-01-01,1\n" * 30_000 + "".join(f"2024-01-01 {n},{n}\n" for n in range(30_000)))
    found = profile(path, whole_bytes=1000)
    assert (column(found, "day")["distinct"], column(found, "n")["distinct"]) == (30_001, 30_000)


def test_a_file_that_grows_while_it_is_read_gives_a_whole_table_or_an_error(tmp_path):
    path = tmp_path / "growing.csv"
    path.write_text("id,name\n" + "".join(f"{n},n{n}\n" for n in range(60_000)))
    done = threading.Event()

    def grow():
        with open(path, "a") as stream:
            while not done.wait(0.001):
                stream.write("1,more\n" * 100)
                stream.flush()

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        found = profile(path, whole_bytes=1000)
    finally:
        done.set()
        writer.join()
    assert found["rows"] >= 60_000 if "rows" in found else found["error"]["kind"] in ("syntax", "corrupt")


def test_streaming_leaves_no_thread_and_no_file(tmp_path):
    path = tmp_path / "table.csv"
    table(5000).to_csv(path, index=False)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    found = profile(path, whole_bytes=1000, scratch=str(scratch), memory_bytes=1 << 30)
    assert found["rows"] == 5000
    assert threading.active_count() == 1
    assert list(scratch.iterdir()) == []


def test_a_large_parquet_file_is_streamed(tmp_path):
    path = tmp_path / "table.parquet"
    table(20_000).to_parquet(path, index=False)
    same(profile(path), profile(path, memory_bytes=1 << 20))


def test_large_json_lines_are_streamed(tmp_path):
    path = tmp_path / "table.jsonl"
    table(3000).to_json(path, orient="records", lines=True)
    found = profile(path, whole_bytes=1000)
    assert (found["rows"], found["columns"]) == (3000, 6)
    assert column(found, "gap")["missing"] == column(profile(path), "gap")["missing"]


def test_a_large_json_list_is_streamed(tmp_path):
    path = tmp_path / "table.json"
    table(3000).to_json(path, orient="records")
    found = profile(path, whole_bytes=1000)
    assert (found["format"], found["rows"], found["columns"]) == ("json", 3000, 6)
    assert load(found, tmp_path).shape == (3000, 6)


def test_a_large_broken_json_list_is_named(tmp_path):
    path = tmp_path / "table.json"
    table(3000).to_json(path, orient="records")
    path.write_text(path.read_text()[:-200])
    assert profile(path, whole_bytes=1000)["error"]["kind"] == "syntax"


def test_a_large_log_stays_text(tmp_path):
    path = tmp_path / "service.log"
    path.write_text("2024-01-01 10:00:01 INFO one, two\n" * 3000)
    found = profile(path, whole_bytes=1000)
    assert (found["format"], found["lines"], found["bytes"]) == ("text", 3000, 3000 * 34)


def test_progress_is_told(tmp_path):
    import profiler

    path = tmp_path / "table.csv"
    table(5000).to_csv(path, index=False)
    events = []
    profiler.profile_file(str(path), {"whole_bytes": 1000}, events.append)
    assert {event["phase"] for event in events} >= {"columns", "distinct"}


def test_a_truncated_gzip_says_how_far_it_was_read(tmp_path):
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(gzip.compress(os.urandom(200_000).hex().encode())[:-5000])
    error = profile(path)["error"]
    assert error["kind"] == "corrupt"
    assert "bytes of content" in error["message"]


def test_a_marker_for_missing_that_comes_late_is_missing_when_streaming(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("n,f,b,t,z\n" + "1,1.5,True,some,007\n" * 60_000 + "NULL,nan,None,n/a,<NA>\n")
    found = profile(path, whole_bytes=1000)
    frame = load(found, tmp_path)
    assert [detail["missing"] for detail in found["columns_detail"]] == frame.isna().sum().tolist() == [1] * 5
    assert [detail["dtype"] for detail in found["columns_detail"]] == [str(dtype) for dtype in frame.dtypes]
    assert (column(found, "f")["max"], column(found, "t")["min"]) == (1.5, "some")


def test_what_memory_does_not_hold_as_a_table_has_the_same_profile(tmp_path):
    path = tmp_path / "sales.csv"
    rows = "".join(f"{number % 90},{number % 7 / 4},item {number % 300},{'+5' if number % 40_000 == 1 else '07'}\n" for number in range(60_000))
    path.write_text("n,f,t,z\n" + rows)
    same(profile(path, whole_bytes=1000), profile(path, whole_bytes=1000, memory_bytes=1 << 20))


def test_distinct_counts_beyond_memory_are_near_and_marked(tmp_path):
    path = tmp_path / "many.csv"
    path.write_text("k,half,few\n" + "".join(f"{number},{number % 20_000},{number % 5}\n" for number in range(40_000)))
    found = profile(path, whole_bytes=1000, memory_bytes=1 << 20)
    half, few = column(found, "half"), column(found, "few")
    assert (few["distinct"], few["distinct_exact"], half["distinct_exact"]) == (5, True, False)
    assert half["distinct"] == pytest.approx(20_000, rel=0.1)
    assert column(found, "k")["distinct"] <= 40_000
    assert any("not exact" in warning for warning in found["warnings"])
