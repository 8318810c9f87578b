"""Delimited text: dialect, layout, mended lines, and the faults that people reported about tools of this kind."""

import pytest
from conftest import FIXTURES, column, fixture, load, said


def dialect(name):
    found = fixture(name)
    return [found[key] for key in ("delimiter", "quote", "decimal", "header_rows", "preamble_lines", "footer_lines")]


@pytest.mark.parametrize(("name", "expected"), [
    ("plain.csv", [",", '"', ".", 1, 0, 0]),
    ("semicolon_decimal_comma.csv", [";", '"', ",", 1, 0, 0]),
    ("tab.tsv", ["\t", '"', ".", 1, 0, 0]),
    ("pipe.txt", ["|", '"', ".", 1, 0, 0]),
    ("single_quotes.csv", [",", "'", ".", 1, 0, 0]),
    ("preamble.csv", [",", '"', ".", 1, 3, 0]),
    ("title_of_two_cells.csv", [",", '"', ".", 1, 1, 0]),
    ("two_header_rows.csv", [",", '"', ".", 2, 0, 0]),
    ("no_header.csv", [",", '"', ".", 0, 0, 0]),
    ("years_as_header.csv", [",", '"', ".", 1, 0, 0]),
    ("footer.csv", [",", '"', ".", 1, 0, 1]),
])
def test_dialect_and_layout(name, expected):
    assert dialect(name) == expected


@pytest.mark.parametrize(("name", "encoding", "bom"), [
    ("gb18030.csv", "gb18030", False), ("utf16.csv", "utf-16", True), ("utf16_without_mark.csv", "utf-16-le", False),
    ("utf8_with_mark.csv", "utf-8", True), ("latin1.csv", "windows-1252", False), ("shift_jis.csv", "shift_jis", False),
])
def test_encodings(name, encoding, bom):
    found = fixture(name)
    assert (found["encoding"], found["bom"]) == (encoding, bom)


CITIES = {
    "gb18030": "编号,姓名,城市\n1,王小明,北京\n2,李雷,上海\n3,韩梅梅,广州\n",
    "big5": "編號,姓名,城市\n1,王小明,臺北\n2,林志玲,高雄\n3,陳水源,臺中\n",
    "cp932": "番号,名前,都市\n1,さとう,東京\n2,すずき,大阪\n3,たなか,名古屋\n",
    "euc_jp": "番号,名前,都市\n1,さとう,東京\n2,すずき,大阪\n3,たなか,名古屋\n",
    "cp949": "번호,이름,도시\n1,김철수,서울\n2,이영희,부산\n3,박민수,대구\n",
    "cp1251": "номер,имя,город\n1,Анна,Москва\n2,Иван,Казань\n3,Ольга,Пермь\n",
    "koi8-r": "номер,имя,город\n1,Анна,Москва\n2,Иван,Казань\n3,Ольга,Пермь\n",
    "iso8859-7": "αριθμός,όνομα,πόλη\n1,Ελένη,Αθήνα\n2,Γιώργος,Πάτρα\n3,Μαρία,Λάρισα\n",
    "cp1252": "numéro,prénom,ville\n1,Zoé,Orléans\n2,François,Besançon\n3,Noël,Nîmes\n",
    "cp852": "nr,imię,miasto\n1,Łukasz,Łódź\n2,Żaneta,Gdańsk\n3,Święto,Kraków\n",
    "iso8859-2": "nr,imię,miasto\n1,Łukasz,Łódź\n2,Żaneta,Gdańsk\n3,Święto,Kraków\n",
    "cp1254": "no,isim,şehir\n1,Ayşe,İstanbul\n2,Çağla,Muğla\n3,Gökhan,Şırnak\n",
    "mac_roman": "numéro,prénom,ville\n1,Zoé,Orléans\n2,François,Besançon\n3,Noël,Nîmes\n",
    "cp850": "numéro,prénom,ville\n1,Zoé,Orléans\n2,François,Besançon\n3,Noël,Nîmes\n",
    "cp1250": "číslo,jméno,město\n1,Jiří,Plzeň\n2,Řehoř,Děčín\n3,Tomáš,Břeclav\n",
}


@pytest.mark.parametrize("codec", sorted(CITIES))
def test_text_in_a_legacy_encoding_is_read_right(codec, write, tmp_path):
    found = write("cities.csv", CITIES[codec].encode(codec))
    lines = [line.split(",") for line in CITIES[codec].splitlines()]
    assert [detail["name"] for detail in found["columns_detail"]] == lines[0]
    assert load(found, tmp_path).astype(str).values.tolist() == lines[1:]


@pytest.mark.parametrize(("codec", "text"), [
    ("gb18030", "姓名,年龄\n张三,20\n李四,30\n"), ("gb18030", "地区,金额\n北方,1\n北方,2\n"), ("cp949", "이름,나이\n김민수,20\n이영희,30\n"),
    ("cp932", "氏名,点\n山田,20\n"), ("big5", "姓名,年齡\n張三,20\n"), ("cp1251", "имя,год\nОля,5\n"), ("cp1252", "nom,âge\nZoé,5\n"),
])
def test_a_few_characters_are_enough_for_the_encoding(codec, text, write):
    found = write("short.csv", text.encode(codec))
    assert [detail["name"] for detail in found["columns_detail"]] == text.split("\n")[0].split(",")


def test_invalid_bytes_are_named_with_their_line():
    assert said(fixture("broken_utf8.csv"), "invalid UTF-8", "line 3")


def test_zero_bytes_are_named_with_their_line():
    assert said(fixture("zero_bytes.csv"), "zero byte", "line 3")


def test_a_letter_is_never_a_delimiter():
    found = fixture("wide_letters.csv")
    assert found["delimiter"] == ","
    assert found["columns_detail"][0]["examples"][0] == "hhch_0"


def test_a_surplus_delimiter_at_the_end_of_rows_moves_no_header():
    found = fixture("extra_delimiter_at_end.csv")
    assert [(detail["name"], detail["min"]) for detail in found["columns_detail"]] == [("A", 1), ("B", 2), ("C", 3), ("D", 4)]
    assert said(found, "one delimiter more than the header")


def test_one_missing_of_150_is_not_rounded_away():
    found = fixture("one_empty_of_150.csv")
    assert (column(found, "word")["missing"], column(found, "word")["missing_percent"]) == (1, 0.67)


def test_a_tiny_share_of_missing_cells_is_never_zero(write):
    found = write("long.csv", "a,b\n" + "1,2\n" * 30000 + "1,\n")
    assert column(found, "b")["missing_percent"] == 0.01


def test_missing_markers_are_those_of_pandas():
    found = fixture("missing_markers.csv")
    assert column(found, "text")["missing"] == 7
    assert column(found, "text")["distinct"] == 3


def test_wide_integers_keep_their_digits():
    found = fixture("wide_integers.csv")
    assert (column(found, "id")["min"], column(found, "id")["max"]) == (1643819529060935244, 1643819529060935246)
    assert "2^53" in column(found, "id")["notes"][0]
    assert found["sample"][0][0] == "1643819529060935244"


def test_wide_integers_with_gaps_are_said_to_be_rounded(write):
    found = write("ids.csv", "id,n\n1643819529060935244,1\n,2\n1643819529060935246,3\n")
    assert "rounded" in column(found, "id")["notes"][0]


def test_one_number_among_dates_keeps_the_column_text_and_is_named():
    found = fixture("date_with_one_number.csv")
    assert column(found, "Date")["dtype"] == "object"
    assert "row 10" in column(found, "Date")["notes"][0]


def test_a_type_that_changes_late_loses_no_row(write):
    found = write("health.csv", "reading\n" + "10.5\n" * 21000 + "11.0.1\n" * 9)
    assert found["rows"] == 21009
    assert column(found, "reading")["dtype"] == "object"
    assert "9 cell(s) are not" in column(found, "reading")["notes"][0]


def test_a_boolean_column_with_one_gap_deep_in_the_file(write):
    found = write("flags.csv", "flag,n\n" + "true,1\nfalse,2\n" * 10500 + "NA,3\n")
    assert (found["rows"], column(found, "flag")["missing"]) == (21001, 1)


def test_blank_lines_after_a_header_are_no_rows():
    assert fixture("header_and_blank_lines.csv")["rows"] == 0


def test_text_that_looks_like_a_keyword_stays_text():
    assert column(fixture("country_codes.csv"), "country_code")["top"] == [{"value": "IN", "count": 2}]


def test_leading_zeros_are_noted():
    assert "leading zeros in 2" in column(fixture("leading_zeros.csv"), "zip")["notes"][0]


def test_dates_held_as_text_have_a_span():
    assert column(fixture("gb18030.csv"), "日期")["span"].startswith("2024-01-05 … 2024-04-08")


def test_dates_in_two_formats_are_noted():
    assert "more than one format" in column(fixture("mixed_dates.csv"), "day")["notes"][0]


def test_a_thousands_mark_is_found():
    found = fixture("thousands.csv")
    assert (found["thousands"], column(found, "sales")["max"]) == (",", 1002450)


def test_a_thousands_mark_eats_no_dots_of_dates():
    found = fixture("dots_as_thousands.csv")
    assert (found["decimal"], found["thousands"]) == (",", ".")
    assert column(found, "Datum")["min"] == "01.02.2024"
    assert column(found, "Wert")["max"] == 1_000_000


def test_a_delimiter_of_two_characters_is_found():
    assert fixture("two_bars.csv")["delimiter"] == "||"


def test_what_stands_below_a_table_is_left_out_and_said():
    assert said(fixture("notes_below.csv"), "1 footer line")
    assert said(fixture("other_table_below.csv"), "another table of 5 columns", "3 record(s)")


def test_ragged_rows_are_named_with_their_lines():
    found = fixture("ragged.csv")
    assert said(found, "fewer", "line 3")
    assert said(found, "more", "line 4")


def test_same_and_blank_names_are_said():
    found = fixture("same_names.csv")
    assert said(found, "more than once", "value")
    assert said(found, "without a name", "4")


@pytest.mark.parametrize("name", ["missing_delimiter.csv", "surplus_delimiter.csv", "line_of_other_delimiter.csv"])
def test_a_damaged_line_is_mended_and_said(name):
    found = fixture(name)
    assert said(found, "mended")
    whole = load(fixture("table_twice.csv"), FIXTURES)
    assert load(found, FIXTURES).astype(str).values.tolist() == whole.astype(str).values.tolist()


def test_a_stray_quote_damages_its_own_cell_only():
    frame = load(fixture("stray_quote.csv"), FIXTURES)
    assert frame["code"].tolist()[6] == '"C-3001'
    assert len(frame) == 12


def test_tables_with_one_header_are_stacked_and_said():
    assert said(fixture("stacked_tables.csv"), "2 tables")


def test_a_quote_that_is_never_closed_is_named():
    assert said(fixture("open_quote.csv"), "line 2", "never closed")


def test_a_guess_without_header_is_said():
    assert said(fixture("no_header.csv"), "no header row")


def test_a_small_file_takes_its_name_in_the_loading_code(write):
    found = write("it's \"odd\" 数据.csv", "a,b\n1,2\n")
    assert found["rows"] == 1
    assert found["load"].startswith("pd.read_csv(")


@pytest.mark.parametrize(("name", "mark", "most"), [("blanks_as_thousands.csv", "\u202f", 12345), ("apostrophes_as_thousands.csv", "'", 12000), ("lakh.csv", ",", 1234567.5)])
def test_every_thousands_mark_is_found(name, mark, most):
    found = fixture(name)
    assert (found["thousands"], column(found, "amount")["max"]) == (mark, most)


def test_numbers_written_with_blanks_that_are_no_amounts_stay_text(write):
    found = write("calls.csv", "name;phone;sum\nAnn;22 33 44 55;1 234,50\nBob;99 88 77 66;2 345,00\n")
    assert column(found, "phone")["min"] == "22 33 44 55"
    assert column(found, "sum")["max"] == 2345


@pytest.mark.parametrize("name", ["share", "price", "result"])
def test_amounts_with_signs_are_said_to_be_text(name):
    assert "amounts kept as text" in column(fixture("amounts.csv"), name)["notes"][0]


def test_marks_for_missing_that_are_loaded_as_values_are_said():
    found = fixture("marks_for_missing.csv")
    assert "-999 stands in 2 cell(s)" in column(found, "t")["notes"][0]
    assert "row 3: '-'" in column(found, "q")["notes"][0]


def test_units_below_the_header_and_totals_are_said():
    assert said(fixture("units.csv"), "units", "m3/s")
    assert said(fixture("totals.csv"), "3 row(s)", "totals")
    assert not said(fixture("plain.csv"), "totals")


def test_byte_order_marks_inside_are_dropped_and_said():
    found = fixture("marks_inside.csv")
    assert said(found, "byte order mark(s) inside")
    assert column(found, "a")["dtype"] == "int64"
