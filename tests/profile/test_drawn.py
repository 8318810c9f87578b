"""Tables drawn with bars and rules, as terminals and documents show them."""

import pytest
from conftest import column, load, profile, said

PSQL = " id |  name  | total \n----+--------+-------\n  1 | Anna   |  10.5\n  2 | Bert   |      \n    | Cleo   |   3.0\n(3 rows)\n\n"
DRAWN = {
    "psql.txt": PSQL,
    "psql.out": PSQL.replace("\n", "\r\n"),
    "mysql.txt": "+----+------+-------+\n| id | name | total |\n+----+------+-------+\n|  1 | Anna |  10.5 |\n|  2 | Bert |  NULL |\n| NULL | Cleo | 3.0 |\n+----+------+-------+\n"
                 "3 rows in set (0.00 sec)\n",
    "markdown.csv": "| id | name | total |\n|---:|:-----|------:|\n| 1 | Anna | 10.5 |\n| 2 | Bert | |\n| | Cleo | 3.0 |\n",
    "without_borders.txt": "id | name | total\n---|------|------\n1 | Anna | 10.5\n2 | Bert | \n | Cleo | 3.0\n",
    "outline.txt": "* Staff\n| id | name | total |\n|----+------+-------|\n| 1 | Anna | 10.5 |\n| 2 | Bert | |\n| | Cleo | 3.0 |\n",
    "boxes.txt": "┌────┬──────┬───────┐\n│ id │ name │ total │\n├────┼──────┼───────┤\n│ 1  │ Anna │ 10.5  │\n├────┼──────┼───────┤\n│ 2  │ Bert │       │\n"
                 "│    │ Cleo │ 3.0   │\n└────┴──────┴───────┘\n",
}


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_a_drawn_table_is_read_as_one(name, write, tmp_path):
    found = write(name, DRAWN[name])
    assert (found["format"], found["rows"], found["columns"]) == ("texttable", 3, 3)
    frame = load(found, tmp_path)
    assert frame.columns.tolist() == ["id", "name", "total"]
    assert frame["name"].tolist() == ["Anna", "Bert", "Cleo"]
    assert (frame["id"].sum(), frame["total"].sum()) == (3, 13.5)
    assert [detail["missing"] for detail in found["columns_detail"]] == [1, 0, 1]


def test_a_table_in_prose_is_said_and_stays_text(write):
    words = "Some words on what follows.\n" * 12
    for name in ("notes.txt", "notes.md"):
        found = write(name, words + "\n" + DRAWN["markdown.csv"])
        assert found["format"] == "text"
        assert said(found, "3 row(s)", "3 columns", "line 14")


def test_a_second_drawn_table_is_left_out_and_said(write):
    found = write("two.txt", PSQL + " n | m \n---+---\n 1 | 2\n(1 row)\n")
    assert (found["rows"], found["columns"]) == (3, 3)
    assert said(found, "another table")


def test_rows_that_do_not_fit_the_drawing_are_never_dropped(write):
    found = write("escaped.txt", "| a | b |\n|---|---|\n" + "| x | y \\| z |\n" * 5)
    assert found["format"] != "texttable" or found["rows"] == 5


def test_a_drawn_table_beyond_memory_is_said_to_be_read_as_cells(tmp_path):
    path = tmp_path / "drawn.csv"
    path.write_text("| id | name |\n|----|------|\n" + "| 1 | Anna |\n" * 3000)
    assert profile(path)["rows"] == 3000
    assert said(profile(path, whole_bytes=1000), "drawn with bars")
    assert column(profile(path), "id")["dtype"] == "int64"


RULED = {
    "console.lst": "\n        ID NAME                  TOTAL\n---------- ---------------- ----------\n         1 Anna Maria             10.5\n         2 Bert\n"
                   "           Cleo                    3.0\n\n3 rows selected.\n\n",
    "server.rpt": "id          name             total\n----------- ---------------- ----------\n1           Anna Maria       10.50\n2           Bert             NULL\n"
                  "NULL        Cleo             3.00\n\n(3 rows affected)\n",
    "pages.txt": "Report of the day\n\nid          name             total\n----------- ---------------- ----------\n1           Anna Maria       10.50\n\n"
                 "id          name             total\n----------- ---------------- ----------\n2           Bert\n            Cleo             3.00\n",
}


@pytest.mark.parametrize("name", sorted(RULED))
def test_a_table_below_a_rule_has_columns_as_wide_as_its_runs(name, write, tmp_path):
    found = write(name, RULED[name])
    assert (found["format"], found["rows"], found["columns"]) == ("fwf", 3, 3)
    frame = load(found, tmp_path)
    assert frame.iloc[:, 1].tolist() == ["Anna Maria", "Bert", "Cleo"]
    assert (frame.iloc[:, 0].sum(), frame.iloc[:, 2].sum()) == (3, 13.5)


def test_lines_that_run_across_the_columns_of_a_rule_are_no_table(write):
    found = write("prose.txt", "Title here\n---------- ----\n" + "words that go on and on without columns\n" * 6)
    assert found["format"] == "text"
