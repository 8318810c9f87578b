"""What an editor sees of its sandbox: questions before downloads, warming, the end of what is not used.

Real parts: the built binary, the process sandbox with its locked Python, an index of packages, pytest-lsp.
"""

import asyncio
import uuid

from editor import PATIENCE, Editor


async def test_packages_of_the_settings_are_downloaded_when_the_person_agrees(
    binary, environment, workspace
) -> None:
    # A marker that is always true makes the list one that no earlier run has built.
    package = f"inflection; python_version != '2.{uuid.uuid4().int % 10**9}'"
    sandbox = {"backend": "process", "packages": [package]}
    editor = await Editor.open(binary, environment, workspace, sandbox=sandbox)
    try:
        code = "import inflection\nprint(inflection.pluralize('datum'))\n"
        ended = []
        for editor.answer in ("Not now", "Install", None):
            started = await editor.command("runSelection", **editor.show_code("a.py", code))
            ended.append(await editor.ended(started["run"]))
            if editor.answer == "Not now":
                assert "did not agree" in await editor.document(started["document"])
            else:
                assert "data" in await editor.document(started["document"])
            await editor.command("stopSandbox")
        assert ended == ["failed", "completed", "completed"]
        # What was downloaded once is asked about no more.
        first, second = editor.questions
        assert first.message == second.message
        assert "inflection" in first.message and " kB for sandbox.packages" in first.message
        assert [action.title for action in first.actions] == ["Install", "Not now"]
    finally:
        await editor.close()


async def test_a_sandbox_that_is_not_used_is_stopped_and_what_was_lost_is_said(
    binary, environment, workspace
) -> None:
    settings = {"sandbox": {"backend": "process", "warm": True, "idleMinutes": 1}}
    editor = await Editor.open(binary, environment, workspace, **settings)
    lost = "it was not used for a while: the variables of earlier runs are gone"
    try:
        editor.show("sales.csv", "csv")
        await _reaches(editor, "ready")
        # A warmed one holds nothing that could be lost.
        await _reaches(editor, "stopped")
        first = await editor.command("runSelection", **editor.show_code("a.py", "answer = 42\n"))
        assert await editor.ended(first["run"]) == "completed"
        assert lost not in await editor.document(first["document"])
        await _reaches(editor, "stopped")
        next_one = await editor.command("runSelection", **editor.show_code("b.py", "print(answer)\n"))
        assert await editor.ended(next_one["run"]) == "failed"
        report = await editor.document(next_one["document"])
        assert lost in report and "NameError" in report
    finally:
        await editor.close()


async def _reaches(editor: Editor, state: str) -> None:
    """Waits until the one sandbox is in this state."""
    async with asyncio.timeout(PATIENCE):
        while (await editor.command("status"))["workspaces"][0]["state"] != state:
            await asyncio.sleep(0.2)
