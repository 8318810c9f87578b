"""The server to editors as they introduce themselves: the capabilities that each sends, recorded by pytest-lsp."""

import json
import pathlib

import pytest
from editor import Editor
from lsprotocol import types
from pytest_lsp import client_capabilities

PROFILES = ("neovim@v0.11.0", "visual-studio-code@v1.65.2", "emacs@v29.1")


@pytest.mark.parametrize("profile", PROFILES)
async def test_an_editor_gets_what_it_can_show(profile: str, binary, environment, workspace) -> None:
    capabilities = client_capabilities(profile)
    # An editor without a plugin of ours says nothing in `initializationOptions` but settings.
    editor = await Editor.open(
        binary, environment, workspace, capabilities=capabilities, runEvents=False, virtualDocuments=False
    )
    try:
        assert editor.capabilities.server_info.name == "codeinterp"
        encoding = editor.capabilities.capabilities.position_encoding
        offered = (capabilities.general and capabilities.general.position_encodings) or ["utf-16"]
        assert encoding in offered

        uri = editor.show("sales.csv", "csv")
        column = await editor.hover(uri, 3, 15)
        assert "units" in column or "region" in column
        presets = [action.title for action in await editor.code_actions(uri)]
        assert {"Profile", "Plot what matters", "Find problems"} <= set(presets)
        assert (await editor.hints(uri))[0].position.line == 0

        started = await editor.command("analyzeFile", uri=uri)
        # Without virtual documents the report is a file.
        assert started["document"].startswith("file://")
        path = await editor.report_shown()
        text = pathlib.Path(path).read_text(encoding="utf-8")
        assert "Step 1" in text and "units" in text

        (run,) = await editor.command("listRuns", uri=uri)
        assert (run["run"], run["status"]) == (started["run"], "completed")
        assert json.dumps(run["artifacts"]).count("image/png") >= 1
        await editor.progress_ended()
    finally:
        await editor.close()


async def test_one_editor_after_another_sees_the_results_of_the_first(
    binary, environment, workspace
) -> None:
    first = await Editor.open(binary, environment, workspace)
    uri = first.show("sales.csv", "csv")
    started = await first.command("analyzeFile", uri=uri)
    assert await first.ended(started["run"]) == "completed"
    shown = [_text(hint) for hint in await first.hints(uri)]
    await first.close()

    second = await Editor.open(binary, environment, workspace)
    try:
        uri = second.show("sales.csv", "csv")
        # Its results are asked for once they were found.
        await second.refreshed(2)
        assert [_text(hint) for hint in await second.hints(uri)] == shown
    finally:
        await second.close()


def _text(hint: types.InlayHint) -> str:
    return hint.label if isinstance(hint.label, str) else "".join(p.value for p in hint.label)
