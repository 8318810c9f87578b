#!/usr/bin/env python3
"""Scores the exact profile against files with known answers and prints one table.

    python tests/eval/profile.py FOLDER [--list] [--binary PATH [--sandbox B]]

FOLDER holds `dabench/` (tables and profile_truth.tsv), `pollock/` (survey_sample and polluted_files, each with csv/ and
clean/, and manifest.tsv) and `files/` (manifest.tsv with a column `expect`); a part that is absent is not scored.
`--list` names every file that misses. With `--binary`, `codeinterp profile` makes the profiles (provisioned sandbox needed);
without it, the profiler is imported from this tree, so the Python that runs this needs its libraries.

Pollock's simple score (0-10) is the sum of success and of precision, recall and F1 of header cells, records and cells, as
in Vitagliano et al., "Pollock: A Data Loading Benchmark", PVLDB 2023. Loaded cells are compared as text (once with types as
loaded, once with every column read as text); names that pandas makes up for blank or repeated headers count as what they stand for.
"""

import argparse
import contextlib
import csv
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "src" / "sandbox" / "image"))
SECONDS = 60
MEMORY = 6 << 30
csv.field_size_limit(2**31 - 1)


def contained(work):
    """The result of `work()` in a forked child with bounds on time and memory, or {'crash': reason}."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            payload = json.dumps(work())
        except BaseException as error:  # noqa: BLE001 - everything is reported to the parent
            payload = json.dumps({"crash": f"{type(error).__name__}: {error}"[:300]})
        with os.fdopen(writer, "w") as stream:
            stream.write(payload)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        payload = stream.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) or not payload:
        return {"crash": f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "no answer"}
    return json.loads(payload)


class Profiler:
    """Profiles and loaded tables, by this tree's profiler or by a built binary."""

    def __init__(self, binary, sandbox):
        self.binary = binary
        self.sandbox = sandbox

    def profile(self, path):
        """The profile of a file."""
        if self.binary:
            command = [self.binary, "profile", str(path), "--format", "json", *(["--sandbox", self.sandbox] if self.sandbox else [])]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS * 2, check=False)
                return json.loads(done.stdout)
            except (subprocess.TimeoutExpired, json.JSONDecodeError) as error:
                return {"crash": f"{type(error).__name__}"}

        def work():
            import profiler

            return profiler.profile_file(str(path), {"name": str(path)})

        return contained(work)

    @staticmethod
    def table(profile, path, as_text):
        """Names and rows, as text, that the profile's loading code gives in the folder of the file."""

        def work():
            import pandas as pd

            os.chdir(path.parent)
            namespace = {"pd": pd}
            if as_text:
                plain = pd.read_csv
                pd.read_csv = lambda *a, **k: plain(*a, **{**k, "dtype": str, "keep_default_na": False, "decimal": ".", "thousands": None})
            lines = profile["load"].rstrip().split("\n")
            exec("\n".join(line for line in lines if line.startswith("import ")), namespace)
            frame = eval("\n".join(line for line in lines if not line.startswith("import ")), namespace)
            names = [] if all(isinstance(name, int) for name in frame.columns) else [str(name) for name in frame.columns]
            rows = [["" if value is None or value != value else str(value) for value in row] for row in frame.itertuples(index=False)]
            return {"names": names, "rows": rows, "shape": list(frame.shape)}

        return contained(work)


def normalise(cell):
    """A cell for comparison: numbers by value, other text in lower case."""
    text = cell.strip()
    for convert in (int, float):
        with contextlib.suppress(ValueError):
            return str(float(convert(text)))
    return cell.lower()


def harmonic(source, loaded):
    """Sum of precision, recall and F1 of two lists as multisets."""
    if not source:
        return 3.0
    common = sum((Counter(source) & Counter(loaded)).values())
    if not common:
        return 0.0
    precision, recall = common / len(source), common / len(loaded)
    return precision + recall + 2 * precision * recall / (precision + recall)


def made_up(name, names):
    """The header cell behind a name of pandas: 'Unnamed: 3' is blank, 'x.1' is a second x."""
    if re.fullmatch(r"Unnamed: \d+", name):
        return ""
    base = re.fullmatch(r"(.*)\.\d+", name)
    return base.group(1) if base and base.group(1) in names else name


def simple_score(table, clean, header_lines):
    """Pollock's simple score of a loaded table against the rows of its clean twin."""
    if "crash" in table:
        return 0.0
    header, body = ([], clean) if header_lines == 0 else (clean[0] if clean else [], clean[1:])
    names = [made_up(name, table["names"]) for name in table["names"]]
    score = 1.0 + harmonic([normalise(cell) for cell in header], [normalise(name) for name in names])
    key = lambda row: "".join(normalise(cell) or "null" for cell in row)
    score += harmonic([key(row) for row in body], [key(row) for row in table["rows"]])
    return score + harmonic([normalise(c) for row in body for c in row], [normalise(c) for row in table["rows"] for c in row])


def table_rows(path):
    """Rows of a tab-separated truth file."""
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


def dabench(profiler, folder):
    """(file, met, detail) for every table of DABench."""
    for truth in table_rows(folder / "profile_truth.tsv"):
        profile = profiler.profile(folder / "tables" / truth["file"])
        want = [int(truth[key]) for key in ("pandas_rows", "pandas_cols", "pandas_missing_cells", "pandas_duplicate_rows")]
        have = [profile.get("rows"), profile.get("columns"), sum(c["missing"] for c in profile.get("columns_detail", [])), profile.get("duplicate_rows")]
        yield truth["file"], have == want, f"want {want} have {have} {profile.get('error', '')}{profile.get('crash', '')}"


def pollock(profiler, folder, subset):
    """(file, score typed, score as text, facts met, detail) for every file of a subset."""
    for truth in table_rows(folder / "manifest.tsv"):
        if truth["dataset"] != subset:
            continue
        path = folder / subset / "csv" / truth["file"]
        with open(folder / subset / "clean" / truth["file"], newline="", encoding="utf-8", errors="replace") as stream:
            clean = list(csv.reader(stream))
        profile = profiler.profile(path)
        header_lines = int(truth["header_lines"])
        if "load" not in profile:
            empty = not clean and profile.get("error", {}).get("kind") == "empty"
            yield truth["file"], 10.0 if empty else 0.0, 10.0 if empty else 0.0, empty, str(profile)[:200]
            continue
        scores = [simple_score(profiler.table(profile, path, as_text), clean, header_lines) for as_text in (False, True)]
        # Without a header, some clean twins have one all the same and some do not.
        rows = {int(truth["clean_data_rows"])} if header_lines else {int(truth["clean_data_rows"]), int(truth["clean_rows"])}
        same = (profile["rows"] in rows, profile["columns"] == int(truth["clean_cols"]),
                profile["delimiter"] == eval(truth["delimiter"]), profile["preamble_lines"] == int(truth["preamble_lines"]))
        yield truth["file"], *scores, all(same), f"{profile['rows']}x{profile['columns']} want {sorted(rows)}x{truth['clean_cols']} {same} {profile['load'][:150]!r} {profile['warnings'][:3]}"


WORKBOOKS = {"xlsx", "xlsm", "xls", "xlsb", "ods"}


def judge(truth, profile):
    """Whether a profile is as expected: (met, silently wrong, detail)."""
    expect, error = truth["expect"], profile.get("error")
    if "crash" in profile:
        return False, False, profile["crash"]
    clear = bool(error and error.get("message") and error.get("kind") != "internal")
    have = (profile.get("rows"), profile.get("columns"))
    if expect == "error":
        return clear, not error, f"no error: {have}"
    if expect == "error-or-report":
        said = clear or bool(profile.get("warnings")) or profile.get("encoding") is not None
        return bool(said), not said, f"nothing said about {have}"
    if expect in ("no-crash", "table-or-value"):
        return clear or "format" in profile if expect == "no-crash" else "format" in profile, False, str(error)
    if expect == "image":
        size = (profile.get("width"), profile.get("height"))
        return size == (int(truth["cols"]), int(truth["rows"])), not error, f"{size}"
    if expect == "empty":
        return bool(error and error["kind"] == "empty") or have[0] == 0, False, f"{have} {error}"
    if expect == "text":
        return profile.get("format") == "text" or not error, False, str(error)
    if expect == "multi-sheet":
        return len(profile.get("sheets", [])) > 1, not error, str(error)
    if truth["truth_kind"] in ("readers-disagree", "no-reader-opens", "none"):
        return clear or "format" in profile, False, str(error)
    if error:
        return False, False, f"want {truth['rows']}x{truth['cols']}: {error['message'][:160]}"
    counts_header = truth["header"].startswith("rows here count")
    rows, columns = profile.get("rows"), profile.get("columns")
    want = [int(truth[key]) if truth[key] else None for key in ("rows", "cols")]
    if counts_header and profile.get("sheets"):
        sheet = next((s for s in profile["sheets"] if s["name"] == profile.get("sheet")), profile["sheets"][0])
        options = {(sheet["used_rows"], sheet["used_columns"]), (rows + profile.get("header_rows", 1), columns)}
        met = any(all(w is None or w == h for w, h in zip(want, option)) for option in options)
        return met, not met and not profile["warnings"], f"want {want} have {options}"
    met = all(w is None or w == h for w, h in zip(want, (rows, columns)))
    return met, not met and not profile["warnings"], f"want {want} have {[rows, columns]} {profile.get('warnings', [])[:2]}"


def files(profiler, folder):
    """(truth, met, silently wrong, detail, seconds) for every odd file."""
    for truth in table_rows(folder / "manifest.tsv"):
        path = folder / truth["local_path"]
        if not path.exists():
            yield truth, False, False, "file absent", 0.0
            continue
        begun = time.monotonic()
        profile = profiler.profile(path)
        met, silent, detail = judge(truth, profile)
        yield truth, met, silent and not met, detail, time.monotonic() - begun


def main():
    """Score what FOLDER holds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", action="store_true", help="name every file that misses")
    parser.add_argument("--only", choices=["dabench", "pollock", "files"])
    parser.add_argument("--binary")
    parser.add_argument("--sandbox")
    chosen = parser.parse_args()
    profiler = Profiler(chosen.binary, chosen.sandbox)
    if not chosen.binary:
        import profiler as package  # noqa: F401 - loaded once, before the forks
        from profiler import columns, delimited  # noqa: F401
    lines, misses = [], []
    begun = time.monotonic()
    if (chosen.folder / "dabench").is_dir() and chosen.only in (None, "dabench"):
        results = list(dabench(profiler, chosen.folder / "dabench"))
        misses += [f"dabench {name}: {detail}" for name, met, detail in results if not met]
        lines.append(("DABench profiles exact", f"{sum(met for _, met, _ in results)}/{len(results)}", "100 %"))
    if (chosen.folder / "pollock").is_dir() and chosen.only in (None, "pollock"):
        for subset, target in (("polluted_files", "9.8"), ("survey_sample", "9.2")):
            results = list(pollock(profiler, chosen.folder / "pollock", subset))
            misses += [f"pollock {name}: {typed:.2f} {text:.2f} {detail}" for name, typed, text, facts, detail in results if min(typed, text) < 9.9 or not facts]
            for index, label in ((1, "as loaded"), (2, "cells as text")):
                mean = sum(result[index] for result in results) / max(len(results), 1)
                lines.append((f"Pollock {subset} ({label})", f"{mean:.3f}", target))
            lines.append((f"Pollock {subset} facts", f"{sum(result[3] for result in results)}/{len(results)}", ""))
    if (chosen.folder / "files").is_dir() and chosen.only in (None, "files"):
        results = list(files(profiler, chosen.folder / "files"))
        by_expect = {}
        for truth, met, silent, detail, seconds in results:
            entry = by_expect.setdefault(truth["expect"], [0, 0])
            entry[0] += met
            entry[1] += 1
            if not met:
                misses.append(f"files {truth['expect']} {truth['local_path']} [{truth['truth_kind']}]{' SILENT' if silent else ''}: {detail}")
            if seconds > 5:
                misses.append(f"slow {truth['local_path']}: {seconds:.1f} s")
        for expect, (met, total) in sorted(by_expect.items()):
            lines.append((f"files: {expect}", f"{met}/{total}", ""))
        total = len(results)
        lines.append(("files as expected", f"{sum(r[1] for r in results)}/{total} = {100 * sum(r[1] for r in results) / max(total, 1):.1f} %", "97 %"))
        lines.append(("files silently wrong", str(sum(r[2] for r in results)), "0"))
    if chosen.list:
        print("\n".join(misses) + "\n")
    for label, value, target in lines:
        print(f"{label:42} {value:>18} {('target ' + target) if target else ''}")
    print(f"{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
