"""Replays the recorded runs: the turns are those of the model at that time, everything else is real.

`tests/eval/record.py` makes them. A change of prompt, feedback or sandbox that would have broken one of these runs
breaks it here.
"""

import json
import pathlib
import shutil
import subprocess

import pytest
from endpoint import scripted, serving

TESTS = pathlib.Path(__file__).resolve().parent.parent
RECORDED = sorted((TESTS / "eval" / "recorded").glob("*.json"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_run_comes_to_the_same_answer(binary, environment, tmp_path, path):
    recorded = json.loads(path.read_text(encoding="utf-8"))
    for name in recorded["files"]:
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TESTS / "fixtures" / name, target)
    config = pathlib.Path(environment["XDG_CONFIG_HOME"]) / "codeinterp"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(f'protocol = "{recorded["protocol"]}"\n', encoding="utf-8")
    requests = []
    turns = scripted(recorded["turns"])

    def answer(body):
        requests.append(body)
        return turns(body)

    with serving(answer) as url:
        done = subprocess.run(
            [str(binary), "analyze", *recorded["files"], "--format", "json", "--model", "recorded", "--sandbox", "process", "-q", recorded["question"]],
            cwd=tmp_path,
            env=environment | {"CODEINTERP_ENDPOINT": url},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    run = json.loads(done.stdout)
    assert run["status"] == recorded["status"], done.stderr
    assert [step["exit_code"] for step in run["steps"]] == recorded["exit_codes"]
    assert len(run["artifacts"]) == recorded["charts"]
    assert run["final_answer"] == recorded["answer"]
    # Nothing that the code printed was missing in what the answer says: the numbers were not asked about.
    assert len(requests) == len(recorded["turns"])
    report = pathlib.Path(run["artifacts"][0]["path"]).parent.parent / "report.md" if run["artifacts"] else None
    if report:
        assert "†" not in report.read_text(encoding="utf-8")


def test_there_are_recorded_runs():
    assert len(RECORDED) >= 5
