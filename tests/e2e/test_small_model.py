"""One whole run with a real, very small language model behind llama.cpp's server.

The model is often wrong: nothing is asserted about what it answers. Whatever it
does, the run must end, and its record must be true to what happened.
"""

import json
import os
import pathlib
import subprocess
import urllib.request

import pytest

STATUSES = {"completed", "incomplete", "failed"}

# A small model may ramble to the end of its window: the run is bounded as a person would bound it.
SETTINGS = "[agent]\nmaxTokens = 6000\nmaxSeconds = 150\n"


@pytest.fixture(scope="session")
def endpoint() -> str:
    url = os.environ.get("LLAMA_URL", "")
    try:
        urllib.request.urlopen(f"{url}/models", timeout=10).read()
    except (OSError, ValueError) as error:
        pytest.fail(
            f"no language model answers at {url!r} ({error}); start it: bash tests/setup/model.sh start",
            pytrace=False,
        )
    return url


@pytest.fixture
def run(binary, environment, workspace, endpoint):
    config = pathlib.Path(environment["XDG_CONFIG_HOME"]) / "codeinterp"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(SETTINGS, encoding="utf-8")

    def analyze(*arguments: str) -> tuple[int, dict]:
        done = subprocess.run(
            [
                str(binary), "analyze", "sales.csv", "--format", "json", "--sandbox", "process",
                "--model", "openai::smollm2", "--max-steps", "3", *arguments,
            ],
            cwd=workspace,
            env=environment | {"CODEINTERP_ENDPOINT": endpoint},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=400,
        )
        try:
            return done.returncode, json.loads(done.stdout)
        except ValueError:
            pytest.fail(f"stdout is not one JSON object:\n{done.stdout}\n{done.stderr}")

    return analyze


@pytest.mark.parametrize(
    "question",
    [
        "How many rows does sales.csv have? Answer with Python: print(len(pd.read_csv('sales.csv')))",
        "Plot units by region as a bar chart.",
    ],
)
def test_a_run_with_a_real_model_ends_and_tells_the_truth(run, question: str) -> None:
    code, record = run("-q", question)

    assert record["status"] in STATUSES
    assert record["question"] == question
    assert "smollm2" in record["model"]
    assert record["sandbox"]["backend"] == "process"
    assert record["total_steps"] == len(record["steps"]) <= 3
    # An answer where there is one, an error where there is none, and the exit code says which.
    if record["status"] == "failed":
        assert code == 1 and record["error"]["message"]
    else:
        assert code == 0 and record["final_answer"].strip() and record["error"] is None

    for number, step in enumerate(record["steps"], start=1):
        assert step["step"] == number
        assert step["code"].strip()
        assert (step["exit_code"] == 0) == (step["error"] is None)
    for artifact in record["artifacts"]:
        path = pathlib.Path(artifact["path"])
        assert path.is_absolute() and path.stat().st_size == artifact["bytes"]
