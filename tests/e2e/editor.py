"""An editor as the server sees one: pytest-lsp's client with our commands and notifications."""

from __future__ import annotations

import asyncio
import os
import pathlib
import re
import signal
import urllib.parse
from collections.abc import Callable
from typing import Any

from lsprotocol import types
from pytest_lsp import make_test_lsp_client

FINAL = {"completed", "incomplete", "failed", "cancelled"}

# A machine that builds something beside the tests is slow; nothing here measures time.
PATIENCE = 180


# What the server makes use of.
ALL = types.ClientCapabilities(
    workspace=types.WorkspaceClientCapabilities(
        text_document_content=types.TextDocumentContentClientCapabilities(),
        inlay_hint=types.InlayHintWorkspaceClientCapabilities(refresh_support=True),
        code_lens=types.CodeLensWorkspaceClientCapabilities(refresh_support=True),
    ),
    window=types.WindowClientCapabilities(
        work_done_progress=True,
        show_document=types.ShowDocumentClientCapabilities(support=True),
    ),
    general=types.GeneralClientCapabilities(
        position_encodings=[types.PositionEncodingKind.Utf16]
    ),
)


def plain(value: Any) -> Any:
    """What the client made of JSON that it knows no type for, as plain values again."""
    if hasattr(value, "_asdict"):
        return {key: plain(inner) for key, inner in value._asdict().items()}
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value


class Noticed(list):
    """A list that says when something is added."""

    def __init__(self, changed: asyncio.Event) -> None:
        super().__init__()
        self.changed = changed

    def append(self, item: Any) -> None:
        super().append(item)
        self.changed.set()


class Editor:
    """One server process and one workspace folder."""

    def __init__(self, workspace: pathlib.Path) -> None:
        self.workspace = workspace
        self.client = make_test_lsp_client()
        self.events: list[dict[str, Any]] = []
        self.refreshes = 0
        self.changed = asyncio.Event()
        self.client.shown_documents = Noticed(self.changed)
        self.client.messages = Noticed(self.changed)
        # Questions of the server, and the title of the answer that is chosen.
        self.questions: list[types.ShowMessageRequestParams] = []
        self.answer: str | None = None
        self._on(types.WINDOW_SHOW_MESSAGE_REQUEST, self._asked)
        self._on("codeinterp/runChanged", self._run_changed)
        self._on(types.WORKSPACE_INLAY_HINT_REFRESH, self._refresh)
        for method in (
            types.WORKSPACE_CODE_LENS_REFRESH,
            types.WORKSPACE_TEXT_DOCUMENT_CONTENT_REFRESH,
            types.CLIENT_REGISTER_CAPABILITY,
            types.CLIENT_UNREGISTER_CAPABILITY,
        ):
            self._on(method, lambda _: None)

    def _on(self, method: str, handler: Callable[[Any], Any]) -> None:
        """Answers a method of the server's. (The client marks the function it is given, so it gets one of its own.)"""

        def answer(params: Any) -> Any:
            return handler(params)

        self.client.feature(method)(answer)

    @classmethod
    async def open(
        cls,
        binary: pathlib.Path,
        environment: dict[str, str],
        workspace: pathlib.Path,
        capabilities: types.ClientCapabilities | None = None,
        **settings: Any,
    ) -> Editor:
        """Starts the server and opens the folder with it, as an editor of these capabilities."""
        editor = cls(workspace)
        await editor.client.start_io(str(binary), "lsp", env=environment)
        options = {
            "virtualDocuments": True,
            "runEvents": True,
            "model": "playbook",
            "sandbox": {"backend": "process"},
        } | settings
        editor.capabilities = await editor.client.initialize_session(
            types.InitializeParams(
                capabilities=capabilities or ALL,
                initialization_options=options,
                workspace_folders=[
                    types.WorkspaceFolder(uri=workspace.as_uri(), name=workspace.name)
                ],
            )
        )
        return editor

    @property
    def pid(self) -> int:
        return self.client._server.pid

    async def close(self) -> None:
        """Ends the session as an editor does; harmless after it has ended."""
        if self.client._server.returncode is None:
            await asyncio.wait_for(self.client.shutdown_session(), PATIENCE)
        await self.client.stop()

    async def kill(self) -> None:
        """Ends the server as a crash of the machine's would: without a word."""
        os.kill(self.pid, signal.SIGKILL)
        await self.client._server.wait()

    # ── What the person does ────────────────────────────────────────────────

    async def command(self, name: str, **arguments: Any) -> Any:
        """`workspace/executeCommand` with its one object; the answer."""
        answer = await asyncio.wait_for(
            self.client.workspace_execute_command_async(
                types.ExecuteCommandParams(command=f"codeinterp.{name}", arguments=[arguments])
            ),
            PATIENCE,
        )
        return plain(answer)

    def show(self, name: str, language: str) -> str:
        """Opens a file of the workspace in the editor; its URI."""
        path = self.workspace / name
        self.client.text_document_did_open(
            types.DidOpenTextDocumentParams(
                text_document=types.TextDocumentItem(
                    uri=path.as_uri(),
                    language_id=language,
                    version=1,
                    text=path.read_text(encoding="utf-8"),
                )
            )
        )
        return path.as_uri()

    def show_code(self, name: str, code: str) -> dict[str, Any]:
        """Opens Python code and selects all of it: the arguments of a command on a selection."""
        (self.workspace / name).write_text(code, encoding="utf-8")
        uri = self.show(name, "python")
        lines = code.count("\n")
        return {
            "uri": uri,
            "range": {
                "start": {"line": 0, "character": 0},
                "end": {"line": lines, "character": 0},
            },
        }

    async def document(self, uri: str) -> str:
        """The text of a virtual document."""
        result = await asyncio.wait_for(
            self.client.workspace_text_document_content_async(
                types.TextDocumentContentParams(uri=uri)
            ),
            PATIENCE,
        )
        return result.text

    async def hints(self, uri: str) -> list[types.InlayHint]:
        """The inlay hints of a whole file."""
        whole = types.Range(types.Position(0, 0), types.Position(100_000, 0))
        found = await asyncio.wait_for(
            self.client.text_document_inlay_hint_async(
                types.InlayHintParams(
                    text_document=types.TextDocumentIdentifier(uri=uri), range=whole
                )
            ),
            PATIENCE,
        )
        return list(found or [])

    async def hover(self, uri: str, line: int, character: int) -> str:
        """The text of a hover."""
        document = types.TextDocumentIdentifier(uri=uri)
        found = await asyncio.wait_for(
            self.client.text_document_hover_async(
                types.HoverParams(text_document=document, position=types.Position(line, character))
            ),
            PATIENCE,
        )
        return found.contents.value if found else ""

    async def code_actions(self, uri: str) -> list[types.CodeAction]:
        """The code actions at the start of a file."""
        start = types.Position(0, 0)
        found = await asyncio.wait_for(
            self.client.text_document_code_action_async(
                types.CodeActionParams(
                    text_document=types.TextDocumentIdentifier(uri=uri),
                    range=types.Range(start, start),
                    context=types.CodeActionContext(diagnostics=[]),
                )
            ),
            PATIENCE,
        )
        return list(found or [])

    # ── What the server tells ───────────────────────────────────────────────

    async def event(self, run: str, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first `runChanged` of the run that is wanted, awaited if it has not come yet."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for event in self.events:
                    if event["run"] == run and wanted(event):
                        return event
                self.changed.clear()
                await self.changed.wait()

    async def executing(self, run: str) -> None:
        """Waits until code of the run is in the sandbox."""
        await self.event(run, lambda event: event["step"] >= 1)

    async def ended(self, run: str) -> str:
        """The final status of the run."""
        return (await self.event(run, lambda event: event["status"] in FINAL))["status"]

    async def report_shown(self) -> str:
        """The path of the report that the server shows, or names where the editor can't show it."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for shown in self.client.shown_documents:
                    return urllib.parse.unquote(urllib.parse.urlparse(str(shown.uri)).path)
                for message in self.client.messages:
                    if found := re.search(r"/\S.*report\.md", message.message):
                        return found.group()
                self.changed.clear()
                await self.changed.wait()

    async def refreshed(self, times: int) -> None:
        """Waits until the server has asked so many times for hints to be read again."""
        async with asyncio.timeout(PATIENCE):
            while self.refreshes < times:
                self.changed.clear()
                await self.changed.wait()

    async def progress_ended(self) -> None:
        """Waits until every progress that has begun has ended."""

        def open_ones() -> list[Any]:
            reports = self.client.progress_reports.values()
            return [r for r in reports if not r or not isinstance(r[-1], types.WorkDoneProgressEnd)]

        async with asyncio.timeout(PATIENCE):
            while open_ones():
                await self.client.wait_for_notification(types.PROGRESS)

    def _asked(self, question: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
        self.questions.append(question)
        return next((each for each in question.actions or [] if each.title == self.answer), None)

    def _refresh(self, _: Any) -> None:
        self.refreshes += 1
        self.changed.set()

    def _run_changed(self, params: Any) -> None:
        self.events.append(plain(params))
        self.changed.set()
