#!/usr/bin/env python3
"""How fast the profile is, beside other readers on the same file in one run.

    python tests/bench/profile.py [--rows N] [--folder DIR] [--times N] [--ydata PYTHON]

Prints one Markdown table. The data (`profile_data.py`) is written into DIR once: 10 million rows by default, a csv of 1.3 GB and its
Parquet copy. Every measurement is a process of its own, with the memory of the machine or, where the row says so,
1 GiB; the best of `--times` counts. `statistics` are counts, missing, least, largest, mean and distinct values, which is what
the others compute; quantiles with frequent values, and duplicates, are rows of their own. `--ydata` names a Python that has
ydata-profiling, which is compared on the first 50 MB; needs the Python of the profiler's tests
(`bash tests/setup/profiler-python.sh`).
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import profile_data

HERE = Path(__file__).resolve().parent
NUMBERS = ["order_id", "quantity", "price", "weight", "discount", "rating"]
GIB = 1 << 30
SPARE = 16 << 30


def ours(path, memory):
    """Seconds of each phase of our profile."""
    sys.path.insert(0, str(HERE.parents[1] / "src" / "sandbox" / "image"))
    import profiler
    from profiler import columns, delimited, measure  # noqa: F401 - loaded before the clock starts, as in the sandbox

    marks = [("begin", time.perf_counter())]

    def progress(event):
        if event["phase"] != marks[-1][0]:
            marks.append((event["phase"], time.perf_counter()))

    found = profiler.profile_file(path, {"memory_bytes": memory}, progress)
    marks.append(("end", time.perf_counter()))
    if "error" in found:
        raise SystemExit(found["error"]["message"])
    spent = {}
    for (name, start), (_, end) in zip(marks, marks[1:]):
        spent[name] = spent.get(name, 0.0) + end - start
    statistics = sum(spent.get(name, 0.0) for name in ("begin", "columns", "distinct"))
    exact = sum(detail["distinct_exact"] for detail in found["columns_detail"])
    return {"statistics": statistics, "frequent": spent.get("frequent", 0.0), "duplicates": spent.get("duplicates", 0.0),
            "whole": marks[-1][1] - marks[0][1], "exact": exact}


def duckdb_exact(path, memory):
    """The same statistics by SQL."""
    import duckdb

    table = f"read_csv('{path}')" if path.endswith(".csv") else f"read_parquet('{path}')"
    names = [name for name, *_ in duckdb.execute(f"DESCRIBE FROM {table}").fetchall()]
    wanted = [f"count({name}), min({name}), max({name}), count(DISTINCT {name})" for name in names] + [f"avg({name})" for name in NUMBERS]
    return timed(lambda: duckdb.execute(f"SELECT count(*), {', '.join(wanted)} FROM {table}").fetchone())


def duckdb_summarize(path, memory):
    """SUMMARIZE within the memory."""
    import duckdb

    connection = duckdb.connect(config={"memory_limit": f"{memory >> 20}MB"})
    return timed(lambda: connection.execute(f"SUMMARIZE FROM read_csv('{path}')").fetchall())


def polars_exact(path, memory):
    """The same statistics by polars, as a stream."""
    import polars as pl

    every, numbers = pl.all(), pl.col(*NUMBERS)
    wanted = [pl.len().alias("rows"), every.null_count().name.suffix("_missing"), every.min().name.suffix("_min"), every.max().name.suffix("_max"),
              every.n_unique().name.suffix("_distinct"), numbers.mean().name.suffix("_mean")]
    return timed(lambda: pl.scan_parquet(path).select(wanted).collect(engine="streaming"))


def pandas_describe(path, memory):
    """read_csv and describe."""
    import pandas as pd

    return timed(lambda: pd.read_csv(path).describe(include="all"))


def timed(work):
    """Seconds of the work."""
    begun = time.perf_counter()
    work()
    return {"whole": time.perf_counter() - begun}


YDATA = """import sys, time, json, pandas, ydata_profiling
begun = time.perf_counter()
ydata_profiling.ProfileReport(pandas.read_csv(sys.argv[1]), progress_bar=False).to_json()
print(json.dumps({"whole": time.perf_counter() - begun}))"""


def measured(command, times):
    """The best result of several processes, each with the peak of its memory in bytes."""
    best = None
    for _ in range(times):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            out = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{' '.join(map(str, command[1:4]))} ended with {process.returncode}")
        result = {**json.loads(out.strip().split("\n")[-1]), "memory": usage.ru_maxrss * 1024}
        best = result if best is None or result["whole"] < best["whole"] else best
    return best


def main():
    """Measure and print the table, or be one of the measurements."""
    if len(sys.argv) == 5 and sys.argv[1] == "--measure":
        print(json.dumps(globals()[sys.argv[2]](sys.argv[3], int(sys.argv[4]))))
        return
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=profile_data.ROWS)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--ydata")
    chosen = parser.parse_args()
    folder = chosen.folder or cache / "codeinterp-testbed" / f"bench-{chosen.rows}"
    # By a process of its own, since the peak of the memory of this one is counted for its children.
    subprocess.run([sys.executable, HERE / "profile_data.py", folder, str(chosen.rows)], check=True, stdout=subprocess.DEVNULL)
    whole, columnar, part = (str(folder / name) for name in profile_data.NAMES)

    def run(name, path, memory):
        return measured([sys.executable, __file__, "--measure", name, path, str(memory)], chosen.times)

    rows = []
    spare, small, parquet = run("ours", whole, SPARE), run("ours", whole, GIB), run("ours", columnar, SPARE)
    rows.append(("csv, statistics", spare, "statistics", "duckdb, exact SQL", run("duckdb_exact", whole, SPARE), 1.0))
    rows.append(("csv, all of the profile", spare, "whole", "pandas read and describe", run("pandas_describe", whole, SPARE), 1 / 3))
    rows.append(("csv in 1 GiB, statistics", small, "statistics", "duckdb SUMMARIZE", run("duckdb_summarize", whole, GIB), 1.0))
    rows.append(("Parquet, statistics", parquet, "statistics", "polars", run("polars_exact", columnar, SPARE), 1.0))
    if chosen.ydata:
        rows.append(("csv of 50 MB, all of the profile", run("ours", part, GIB), "whole", "ydata-profiling", measured([chosen.ydata, "-c", YDATA, part], 1), 0.1))
    print("| what | ours | memory | exact counts | beside | its time | memory | ratio | target | |\n|---|---|---|---|---|---|---|---|---|---|")
    for what, own, key, peer, theirs, target in rows:
        ratio = own[key] / theirs["whole"]
        print(f"| {what} | {own[key]:.2f} s | {own['memory'] / 1e6:.0f} MB | {own['exact']} of 13 | {peer} | {theirs['whole']:.2f} s | "
              f"{theirs['memory'] / 1e6:.0f} MB | {ratio:.2f} | ≤ {target:.2f} | {'met' if ratio <= target else 'missed'} |")
    for label, own in (("csv", spare), ("csv in 1 GiB", small), ("Parquet", parquet)):
        print(f"{label}: quantiles and frequent values {own['frequent']:.2f} s, duplicates {own['duplicates']:.2f} s")


if __name__ == "__main__":
    main()
