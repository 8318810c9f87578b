"""The language server over stdio, driven by an LSP client that is not ours.

Real parts: the built binary, the process sandbox with its locked Python, pytest-lsp.
"""

import csv
import pathlib

import pytest
from editor import Editor
from lsprotocol import types
from processes import Watched, descendants


async def test_a_file_becomes_a_report_with_charts_hints_and_true_numbers(editor: Editor) -> None:
    uri = editor.show("sales.csv", "csv")
    started = await editor.command("analyzeFile", uri=uri)
    assert started["document"].startswith("codeinterp:/runs/")

    assert await editor.ended(started["run"]) == "completed"

    report = await editor.document(started["document"])
    with open(editor.workspace / "sales.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert str(len(rows)) in report
    assert "units" in report and "region" in report
    # With no model configured, the reader is told at once.
    assert "model" in "\n".join(report.splitlines()[:12]).lower()

    (run,) = await editor.command("listRuns", uri=uri)
    assert run["run"] == started["run"]
    assert run["status"] == "completed"
    charts = [artifact for artifact in run["artifacts"] if artifact["mime"] == "image/png"]
    assert charts
    for chart in charts:
        path = pathlib.Path(chart["path"])
        assert path.is_absolute() and path.read_bytes().startswith(b"\x89PNG")
        assert chart["name"] in report

    hints = await editor.hints(uri)
    assert hints
    for hint in hints:
        label = hint.label if isinstance(hint.label, str) else "".join(p.value for p in hint.label)
        assert len(label) <= 40
    commands = [
        part.command.command
        for hint in hints
        if not isinstance(hint.label, str)
        for part in hint.label
        if part.command
    ]
    assert any(command.startswith("codeinterp.open") for command in commands)


async def test_both_spellings_of_a_virtual_document_give_one_text(editor: Editor) -> None:
    uri = editor.show("sales.csv", "csv")
    started = await editor.command("analyzeFile", uri=uri)
    await editor.ended(started["run"])
    path = started["document"].removeprefix("codeinterp:")
    short = await editor.document(f"codeinterp:{path}")
    assert short == await editor.document(f"codeinterp://{path}")
    step = await editor.document(f"codeinterp:/runs/{started['run']}/steps/1.py")
    assert "read_csv" in step or "import" in step


async def test_a_forged_virtual_document_is_not_found(editor: Editor) -> None:
    for uri in (
        "codeinterp:/runs/none/report.md",
        "codeinterp:/runs/../../../../etc/passwd",
        "codeinterp:/runs/%2e%2e/%2e%2e/etc/passwd",
    ):
        with pytest.raises(Exception, match=r"(?i)not found|unknown|no (such )?run|no document"):
            await editor.document(uri)


async def test_selected_code_keeps_its_variables(editor: Editor) -> None:
    first = await editor.command("runSelection", **editor.show_code("a.py", "answer = 6 * 7\n"))
    assert await editor.ended(first["run"]) == "completed"
    second = await editor.command("runSelection", **editor.show_code("b.py", "print(answer)\n"))
    assert await editor.ended(second["run"]) == "completed"
    assert "42" in await editor.document(second["document"])
    names = {variable["name"] for variable in await editor.command("variables")}
    assert "answer" in names


async def test_code_that_raises_is_a_failed_run_with_its_error(editor: Editor) -> None:
    started = await editor.command("runSelection", **editor.show_code("a.py", "1 / 0\n"))
    assert await editor.ended(started["run"]) == "failed"
    assert "ZeroDivisionError" in await editor.document(started["document"])


async def test_a_cancelled_run_is_dead_and_the_next_one_runs(editor: Editor) -> None:
    endless = editor.show_code("a.py", "while True:\n    pass\n")
    started = await editor.command("runSelection", **endless)
    await editor.executing(started["run"])
    assert await editor.command("cancel", run=started["run"]) == {"cancelled": [started["run"]]}
    assert await editor.ended(started["run"]) == "cancelled"
    after = await editor.command("runSelection", **editor.show_code("b.py", "print(6 * 7)\n"))
    assert await editor.ended(after["run"]) == "completed"


async def test_cancelling_an_unknown_run_cancels_nothing(editor: Editor) -> None:
    assert await editor.command("cancel", run="no-such-run") == {"cancelled": []}


async def test_progress_that_begins_also_ends(editor: Editor) -> None:
    started = await editor.command("analyzeFile", uri=editor.show("sales.csv", "csv"))
    await editor.ended(started["run"])
    await editor.progress_ended()
    reports = editor.client.progress_reports
    assert reports
    for first, *_ in reports.values():
        assert isinstance(first, types.WorkDoneProgressBegin)


async def test_shutdown_leaves_no_process(editor: Editor) -> None:
    await _busy(editor)
    watched = Watched([editor.pid, *descendants(editor.pid)])
    assert len(watched.handles) > 1, "a sandbox should have been running"
    await editor.close()
    assert watched.still_running_after(10) == []


async def test_a_killed_server_leaves_no_process(editor: Editor) -> None:
    await _busy(editor)
    watched = Watched([editor.pid, *descendants(editor.pid)])
    assert len(watched.handles) > 1, "a sandbox should have been running"
    await editor.kill()
    assert watched.still_running_after(10) == []


async def _busy(editor: Editor) -> None:
    """Leaves the server with a kernel in the middle of an endless loop."""
    endless = editor.show_code("endless.py", "while True:\n    pass\n")
    started = await editor.command("runSelection", **endless)
    await editor.executing(started["run"])
    # It answers while the loop runs.
    assert (await editor.command("status"))["workspaces"]
