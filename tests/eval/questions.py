"""Asks the product closed questions about tables and scores the answers.

    python3 tests/eval/questions.py CASES [--model M] [--sandbox B] [--jobs N] [--limit N] [--out FILE] [--binary PATH]

CASES is a folder with `questions.jsonl` (`id`, `question`, `constraints`, `format`, `file_name`), `labels.jsonl`
(`id`, `common_answers`: pairs of name and value) and `tables/`. Each question goes through the real loop by
`codeinterp analyze`; the model is asked to end with its answers as `@name[value]`. A question is right when every
value is equal as text or differs by less than 1e-6; one without an answer is wrong.

The results are lines of JSON in FILE, one an id, with status, steps, tokens, seconds and error. A second run asks
only what is missing there. Without --model the built-in analysis answers: its score is the floor.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

ANSWER = re.compile(r"@(\w+)\[([^\]]*)\]")


def lines(path):
    """The objects of a file of JSON lines; none where there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def equal(given, expected):
    """Equal as text, or as numbers within 1e-6."""
    given, expected = str(given).strip(), str(expected).strip()
    if given == expected:
        return True
    try:
        return abs(float(given) - float(expected)) < 1e-6
    except ValueError:
        return False


def right(text, answers):
    """Whether the text holds every answer. A later value for a name replaces an earlier one."""
    given = dict(ANSWER.findall(text or ""))
    return bool(answers) and all(name in given and equal(given[name], value) for name, value in answers)


def prompt(question):
    """The question as it is put: with its constraints and the wanted form."""
    parts = [question["question"], question.get("constraints", ""), "Answer format: " + question.get("format", "")]
    return "\n".join(part.strip() for part in parts if part.strip())


def ask(question, options):
    """One question through the product; its line of the results."""
    table = pathlib.Path(options.cases, "tables", question["file_name"]).resolve()
    command = [options.binary, "analyze", str(table), "--format", "json", "-q", prompt(question)]
    if options.model:
        command += ["--model", options.model]
    if options.sandbox:
        command += ["--sandbox", options.sandbox]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as state:
        environment = {**os.environ, "XDG_STATE_HOME": state}
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout, env=environment, cwd=state, check=False)
            run = json.loads(done.stdout)
        except (subprocess.TimeoutExpired, ValueError) as error:
            run = {"status": "failed", "error": {"message": f"{type(error).__name__}: {error}"[:300]}}
    return {
        "id": question["id"],
        "status": run.get("status"),
        "answer": run.get("final_answer"),
        "steps": run.get("total_steps", 0),
        "failed_steps": sum(1 for step in run.get("steps", []) if step["exit_code"] != 0),
        "tokens": sum((run.get("usage") or {}).values()),
        "seconds": round(time.monotonic() - began, 2),
        "error": (run.get("error") or {}).get("message"),
    }


def report(results, labels, total):
    """Prints the score over all ids, and what the answers cost."""
    correct = [line for line in results if right(line["answer"], labels.get(line["id"], []))]
    print(f"right            {len(correct)} of {total} ({100 * len(correct) / max(total, 1):.1f} %)")
    for status in sorted({line["status"] for line in results}):
        print(f"{status:<16} {sum(1 for line in results if line['status'] == status)}")
    for name in ("steps", "failed_steps", "tokens", "seconds"):
        values = sorted(line[name] for line in results)
        if values:
            print(f"{name:<16} median {values[len(values) // 2]}, most {values[-1]}")
    for line in results:
        if line["error"]:
            print(f"  {line['id']}: {line['error'][:160]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--model", default="")
    parser.add_argument("--sandbox", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=int, default=0, help="ask only the first so many")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one question")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("questions-results.jsonl"))
    parser.add_argument("--binary", default="codeinterp")
    options = parser.parse_args()
    questions = lines(options.cases / "questions.jsonl")
    if not questions:
        sys.exit(f"{options.cases}/questions.jsonl holds no questions")
    if options.limit:
        questions = questions[: options.limit]
    labels = {line["id"]: line["common_answers"] for line in lines(options.cases / "labels.jsonl")}
    wanted = {question["id"] for question in questions}
    results = {line["id"]: line for line in lines(options.out) if line["id"] in wanted}
    missing = [question for question in questions if question["id"] not in results]
    with options.out.open("a", encoding="utf-8") as out, ThreadPoolExecutor(max(options.jobs, 1)) as pool:
        for future in as_completed([pool.submit(ask, question, options) for question in missing]):
            line = future.result()
            results[line["id"]] = line
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
            out.flush()
            print(f"{line['id']}: {line['status']}, {'right' if right(line['answer'], labels.get(line['id'], [])) else 'wrong'}", file=sys.stderr)
    report([results[question["id"]] for question in questions if question["id"] in results], labels, len(questions))


if __name__ == "__main__":
    main()
