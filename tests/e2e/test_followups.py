"""Questions about a person's own code: the model is told what ran, and finds its variables. The language server, real parts."""

import json

import pytest
import pytest_asyncio
from editor import Editor
from endpoint import scripted, serving

TURNS = [{"calls": ["print('doubled:', x * 2)"]}, {"content": "Twice x is 82."}, {"content": "x is lost."}]


@pytest.fixture
def asked():
    """What the model is asked."""
    return []


@pytest_asyncio.fixture
async def person(binary, environment, workspace, asked):
    """An editor whose model takes those turns."""
    turns = scripted(TURNS)

    def answer(request: dict) -> dict:
        asked.append(json.dumps(request["messages"], ensure_ascii=False))
        return turns(request)

    with serving(answer) as url:
        client = await Editor.open(binary, environment, workspace, model="scripted", endpoint=url)
        try:
            yield client
        finally:
            await client.close()


async def test_a_question_about_code_that_was_run_goes_on_with_its_variables(person: Editor, asked: list[str]) -> None:
    code = await person.command("runSelection", **person.show_code("cell.py", "x = 41\nprint('x + 1 =', x + 1)\n"))
    assert await person.ended(code["run"]) == "completed"
    assert asked == [], "no model is asked about code that is only run"

    doubled = await person.command("followUp", run=code["run"], question="What is twice x?")
    assert await person.ended(doubled["run"]) == "completed"
    for told in ("print('x + 1 =', x + 1)", "x + 1 = 42", "What is twice x?"):
        assert told in asked[0]
    report = await person.document(doubled["document"])
    assert report.startswith("# What is twice x?\n") and "Twice x is [82](#step-1)." in report

    await person.command("restartKernel")
    after = await person.command("followUp", run=doubled["run"], question="And now?")
    assert await person.ended(after["run"]) == "completed"
    assert "no variable of it exists any more" in asked[-1] and "x + 1 = 42" in asked[-1]
    assert "The variables of the earlier run are gone" in await person.document(after["document"])


async def test_a_question_about_code_that_failed_is_told_its_error(person: Editor, asked: list[str]) -> None:
    code = await person.command("runSelection", **person.show_code("bad.py", "total = 1\ntotal / 0\n"))
    assert await person.ended(code["run"]) == "failed"
    why = await person.command("followUp", run=code["run"], question="Why did it fail?")
    await person.ended(why["run"])
    assert "ZeroDivisionError: division by zero" in asked[0] and "total / 0" in asked[0]


async def test_without_a_model_a_question_about_code_is_answered_honestly(editor: Editor) -> None:
    code = await editor.command("runSelection", **editor.show_code("cell.py", "x = 41\n"))
    await editor.ended(code["run"])
    why = await editor.command("followUp", run=code["run"], question="What is x?")
    assert await editor.ended(why["run"]) == "completed"
    assert "There is no data file to analyse." in await editor.document(why["document"])
