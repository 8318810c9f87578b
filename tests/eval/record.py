"""Records a run with a real model, so that it can be replayed without one.

    python3 tests/eval/record.py NAME QUESTION FILE... --endpoint URL --model M [--protocol P] [--sandbox B] [--binary PATH]

The product asks an endpoint that passes everything on to URL and keeps each turn. `recorded/NAME.json` then holds the
question, the files (relative to `tests/fixtures`), the turns, and what came of them: status, exit codes of the steps,
numbers of charts, and the answer. `tests/e2e/test_recorded.py` replays all of them.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures"
sys.path.insert(0, str(HERE.parent / "e2e"))

from endpoint import serving


def asked(endpoint, body):
    """The real server's turn: its streamed text, and the codes of its calls."""
    headers = {"content-type": "application/json"}
    if key := os.environ.get("CODEINTERP_API_KEY"):
        headers["authorization"] = f"Bearer {key}"
    request = urllib.request.Request(f"{endpoint}/chat/completions", json.dumps(body).encode(), headers)
    content, calls = "", {}
    with urllib.request.urlopen(request, timeout=900) as answer:
        for line in answer:
            if not line.startswith(b"data: ") or line.strip() == b"data: [DONE]":
                continue
            for choice in json.loads(line[6:]).get("choices", []):
                content += choice["delta"].get("content") or ""
                for call in choice["delta"].get("tool_calls") or []:
                    calls[call["index"]] = calls.get(call["index"], "") + call["function"].get("arguments", "")
    return {"content": content, "calls": [json.loads(arguments)["code"] for _, arguments in sorted(calls.items())]}


def run(options, url, folder):
    """The run's record; the product sees the files as they are named here."""
    for name in options.files:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FIXTURES / name, target)
    config = folder / "config" / "codeinterp"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(f'protocol = "{options.protocol}"\n', encoding="utf-8")
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "CODEINTERP_ENDPOINT": url,
    }
    command = [options.binary, "analyze", *options.files, "--format", "json", "--model", options.model, "--sandbox", options.sandbox]
    done = subprocess.run([*command, "-q", options.question], cwd=folder, env=environment, stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("question")
    parser.add_argument("files", nargs="+", help="relative to tests/fixtures")
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--protocol", default="auto")
    parser.add_argument("--sandbox", default="process")
    parser.add_argument("--binary", default="codeinterp")
    options = parser.parse_args()
    turns = []

    def answer(body):
        turns.append(asked(options.endpoint, body))
        return turns[-1]

    with serving(answer) as url, tempfile.TemporaryDirectory() as folder:
        record = run(options, url, pathlib.Path(folder))
    recorded = {
        "question": options.question,
        "files": options.files,
        "protocol": options.protocol,
        "turns": turns,
        "status": record["status"],
        "exit_codes": [step["exit_code"] for step in record["steps"]],
        "charts": len(record["artifacts"]),
        "answer": record["final_answer"],
    }
    path = HERE / "recorded" / f"{options.name}.json"
    path.write_text(json.dumps(recorded, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"{path}: {record['status']}, {len(record['steps'])} steps, {len(turns)} turns")


if __name__ == "__main__":
    main()
