"""Exports run as they are: notebooks in Jupyter, scripts in Python, and both find their data."""

import json
import os
import pathlib
import re
import subprocess
import sys

import nbformat
import pytest
from endpoint import scripted, serving
from nbclient import NotebookClient

FENCE = "```python\n{}\n```"

# An analysis as models do it: the first step fails after it has loaded the data, a look leads nowhere, a result is the
# last expression of a cell, a chart is shown by the kernel itself, and one line is a magic.
STEPS = [
    "import pandas as pd\nimport matplotlib.pyplot as plt\ndf = pd.read_csv('sales.csv')\nprint(df['no such column'].mean())",
    "unrelated = df['units'].max()\nprint('looked at', unrelated)",
    "%matplotlib inline\nby_region = df.groupby('region')['units'].mean()\nprint(by_region.to_string())\nby_region.round(2)",
    "by_region.plot.bar(title='Mean units')",
]
ANSWER = "The mean of units in the north is {mean:.2f}."


@pytest.fixture
def run(binary, environment, workspace):
    """The command line in the workspace; gives exit code and output."""

    def command(*arguments: str, **more: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [str(binary), *arguments],
            cwd=workspace,
            env=environment | more,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return command


def analysed(run, *arguments: str, **more: str) -> dict:
    done = run("analyze", "sales.csv", "--format", "json", "--sandbox", "process", *arguments, **more)
    record = json.loads(done.stdout)
    assert record["status"] == "completed", done.stderr
    return record


def exported(run, record: dict, to: str, path: pathlib.Path) -> str:
    done = run("runs", "export", record["run"], "--to", to, "--out", str(path))
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "the replay found no difference"
    return path.read_text(encoding="utf-8")


def as_a_script(path: pathlib.Path) -> str:
    """What the script prints, run where it stands."""
    environment = os.environ | {"MPLBACKEND": "agg", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, path.name], cwd=path.parent, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def as_a_notebook(path: pathlib.Path) -> list[dict]:
    """The outputs of the notebook, run from its first cell to its last."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(path.parent)}}).execute()
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def shown(outputs: list[dict]) -> str:
    texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]
    return "\n".join(texts)


def charts(outputs: list[dict]) -> int:
    return sum("image/png" in output.get("data", {}) for output in outputs)


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+\.\d+", text))


@pytest.mark.parametrize("question", ["Give me an overview", "mean units by region"])
def test_the_built_in_analysis_runs_in_jupyter_and_python(run, workspace, tmp_path, question):
    record = analysed(run, "-q", question)
    printed = numbers("".join(step["stdout"] for step in record["steps"]))

    exported(run, record, "script", tmp_path / "beside.py")
    assert numbers(record["final_answer"]) & printed <= numbers(as_a_script(tmp_path / "beside.py"))

    exported(run, record, "notebook", tmp_path / "beside.ipynb")
    kept = nbformat.read(tmp_path / "beside.ipynb", as_version=4)
    assert charts([output for cell in kept.cells if cell.cell_type == "code" for output in cell.outputs]) == len(record["artifacts"])
    outputs = as_a_notebook(tmp_path / "beside.ipynb")
    assert printed <= numbers(shown(outputs))
    assert charts(outputs) == len(record["artifacts"])


@pytest.fixture
def mended(run, workspace) -> dict:
    """The record of a run whose first step failed half-way."""
    rows = [line.split(",") for line in (workspace / "sales.csv").read_text(encoding="utf-8").splitlines()[1:]]
    units = [int(row[2]) for row in rows if row[1] == "north"]
    answer = ANSWER.format(mean=sum(units) / len(units))
    turns = [{"content": FENCE.format(code)} for code in STEPS] + [{"content": answer}]
    with serving(scripted(turns)) as url:
        record = analysed(run, "-q", "What is the mean of units in the north?", "--model", "scripted", CODEINTERP_ENDPOINT=url)
    assert [step["exit_code"] for step in record["steps"]] == [1, 0, 0, 0]
    return record


def test_a_script_is_what_led_to_the_answer(run, mended, tmp_path):
    script = exported(run, mended, "script", tmp_path / "beside.py")
    assert "Replayed in a fresh sandbox: every step printed and drew the same." in script
    assert "df = pd.read_csv" in script, "what the failed step did before it failed is needed"
    assert "no such column" not in script and "unrelated" not in script
    assert numbers(mended["final_answer"]) <= numbers(as_a_script(tmp_path / "beside.py"))


def test_a_notebook_tells_of_the_failure_and_runs_all_the_same(run, mended, tmp_path):
    exported(run, mended, "notebook", tmp_path / "beside.ipynb")
    notebook = nbformat.read(tmp_path / "beside.ipynb", as_version=4)
    assert any(cell.cell_type == "markdown" and "KeyError" in cell.source for cell in notebook.cells)
    outputs = as_a_notebook(tmp_path / "beside.ipynb")
    assert charts(outputs) == 1
    assert numbers(mended["final_answer"]) <= numbers(shown(outputs))


def test_a_replay_that_comes_out_otherwise_is_told(run, mended, workspace, tmp_path):
    table = workspace / "sales.csv"
    table.write_text(table.read_text(encoding="utf-8").replace(",north,", ",north,1"), encoding="utf-8")
    done = run("runs", "export", mended["run"], "--to", "script", "--out", str(tmp_path / "x.py"))
    assert done.returncode == 0
    assert "sales.csv has other contents now" in done.stderr and "Step 3: it printed" in done.stderr
    assert "with differences" in (tmp_path / "x.py").read_text(encoding="utf-8")


def test_a_run_without_a_successful_step_is_not_called_replayed(run, workspace, tmp_path):
    turns = [{"content": FENCE.format("raise SystemError('boom')")}, {"content": "It can't be told."}]
    with serving(scripted(turns)) as url:
        record = analysed(run, "-q", "What is it?", "--model", "scripted", CODEINTERP_ENDPOINT=url)
    assert [step["exit_code"] for step in record["steps"]] == [1]
    done = run("runs", "export", record["run"], "--to", "script", "--out", str(tmp_path / "x.py"))
    assert done.returncode == 0 and "none of its steps succeeded" in done.stderr
    script = (tmp_path / "x.py").read_text(encoding="utf-8")
    assert "none of its steps succeeded" in script and "Replayed" not in script


def test_a_report_has_its_charts_beside_it(run, mended, tmp_path):
    report = exported(run, mended, "markdown", tmp_path / "a report.md")
    targets = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", report)
    assert len(targets) == 1
    assert (tmp_path / targets[0].replace("%20", " ")).read_bytes().startswith(b"\x89PNG")
