"""What a rerun says of an earlier run, and what becomes of selected text afterwards. The language server, real parts."""

import pathlib
import re

import pytest_asyncio
from editor import Editor
from endpoint import scripted, serving


def grow(editor: Editor) -> None:
    """Today's data: every tenth row sold more, and there are new rows."""
    table = editor.workspace / "sales.csv"
    lines = table.read_text(encoding="utf-8").splitlines()
    lines = [line if number % 10 else re.sub(r",(\d+),", r",9\1,", line, count=1) for number, line in enumerate(lines)]
    table.write_text("\n".join([*lines, "2024-06-01,north,50,9.99", "2024-06-02,west,60,9.99"]) + "\n", encoding="utf-8")


async def test_a_rerun_tells_what_changed_beside_what_was(editor: Editor) -> None:
    uri = editor.show("sales.csv", "csv")
    first = await editor.command("analyzeFile", uri=uri, question="mean units by region")
    assert await editor.ended(first["run"]) == "completed"
    grow(editor)
    second = await editor.command("rerun", run=first["run"])
    assert await editor.ended(second["run"]) == "completed"

    report = await editor.document(second["document"])
    assert report.startswith("# Run again: mean units by region\n")
    assert "sales.csv: other contents, 120 → 122 rows" in report
    rows = re.findall(r"^\| (\S+) \| ([\d.]+) \| ([\d.]+) \|", report, re.MULTILINE)
    assert rows and all(before != now for _, before, now in rows), report
    (pair,) = re.findall(r"^\| !\[[^\]]*\]\(([^)]+)\) \| !\[[^\]]*\]\(([^)]+)\) \|", report, re.MULTILINE)
    assert pair == (f"../{first['run']}/artifacts/chart-1.png", "artifacts/chart-1.png")
    assert "## The earlier answer" in report and "does not print this number any more" in report


async def test_a_rerun_on_the_same_data_says_that_nothing_changed(editor: Editor) -> None:
    uri = editor.show("sales.csv", "csv")
    first = await editor.command("analyzeFile", uri=uri, question="mean units by region")
    await editor.ended(first["run"])
    second = await editor.command("rerun", run=first["run"])
    await editor.ended(second["run"])
    report = await editor.document(second["document"])
    assert "sales.csv: the same contents" in report
    assert "Every number and every chart is the same." in report


async def test_an_analysis_of_selected_lines_can_be_repeated_and_exported(editor: Editor, tmp_path: pathlib.Path) -> None:
    uri = editor.show("sales.csv", "csv")
    lines = {"start": {"line": 1, "character": 0}, "end": {"line": 21, "character": 0}}
    first = await editor.command("askSelection", uri=uri, range=lines, question="mean units")
    assert await editor.ended(first["run"]) == "completed"
    second = await editor.command("rerun", run=first["run"])
    assert await editor.ended(second["run"]) == "completed"
    written = await editor.command("export", run=second["run"], to="script", path="again.py")
    script = pathlib.Path(written["path"]).read_text(encoding="utf-8")
    assert "2024-01-01,north" in script, "selected lines stand in no file, so the script carries them"


async def test_a_report_of_selected_code_is_titled_by_its_lines(editor: Editor) -> None:
    started = await editor.command("runSelection", **editor.show_code("my code.py", "a = 1\nprint(a)\n"))
    await editor.ended(started["run"])
    assert (await editor.document(started["document"])).startswith("# my code.py, lines 1 to 2\n")


LOAD = "import pandas as pd\ndf = pd.read_csv('sales.csv')\nprint(len(df), 'rows')"
TURNS = [
    {"calls": [LOAD + "\nprint(df['no such column'])"]},
    {"calls": ["print('most units:', df['units'].max())"]},
    {"content": "There are 120 rows."},
    {"calls": ["print('units together:', df['units'].sum())"]},
    {"content": "That is the sum."},
]


@pytest_asyncio.fixture
async def analyst(binary, environment, workspace):
    """An editor whose model takes those turns."""
    with serving(scripted(TURNS)) as url:
        client = await Editor.open(binary, environment, workspace, model="scripted", endpoint=url)
        try:
            yield client
        finally:
            await client.close()


async def test_analyses_with_mended_errors_and_follow_ups_are_run_again_on_todays_data(analyst: Editor) -> None:
    uri = analyst.show("sales.csv", "csv")
    first = await analyst.command("analyzeFile", uri=uri, question="How many?")
    assert await analyst.ended(first["run"]) == "completed"
    second = await analyst.command("followUp", run=first["run"], question="And the sum?")
    assert await analyst.ended(second["run"]) == "completed"
    grow(analyst)
    for run, told in ((first["run"], "most units"), (second["run"], "units together")):
        again = await analyst.command("rerun", run=run)
        assert await analyst.ended(again["run"]) == "completed"
        report = await analyst.document(again["document"])
        (change,) = re.findall(rf"^\| {told} \| (\S+) \| (\S+) \|", report, re.MULTILINE)
        assert float(change[1]) > float(change[0]), "what a follow-up used is loaded anew"


async def test_a_repetition_that_broke_off_is_repeated_whole(analyst: Editor) -> None:
    uri = analyst.show("sales.csv", "csv")
    first = await analyst.command("analyzeFile", uri=uri, question="How many?")
    await analyst.ended(first["run"])
    table = analyst.workspace / "sales.csv"
    whole = table.read_text(encoding="utf-8")
    table.write_text(whole.replace("units", "pieces"), encoding="utf-8")
    broken = await analyst.command("rerun", run=first["run"])
    assert await analyst.ended(broken["run"]) == "failed"
    assert "is the same" not in await analyst.document(broken["document"])
    table.write_text(whole, encoding="utf-8")
    mended = await analyst.command("rerun", run=broken["run"])
    assert await analyst.ended(mended["run"]) == "completed"
    report = await analyst.document(mended["document"])
    assert "Every number and every chart is the same." in report and "most units" in report
