"""The data of the profile's benchmarks: made up, always the same, written once.

    python profile_data.py FOLDER [ROWS]

writes `orders.csv` (13 columns; about 1.3 GB at 10 million rows, the default), its Parquet copy `orders.parquet`, and
`part.csv`, the first 50 MB of it.
"""

import sys
from pathlib import Path

ROWS = 10_000_000
NAMES = ["orders.csv", "orders.parquet", "part.csv"]
CHUNK = 500_000
PART_BYTES = 50_000_000
CITIES = ["Oslo", "Bergen", "Trondheim", "Stavanger", "Drammen", "Kristiansand", "Tromsø", "Sandnes", "Bodø", "Ålesund"]
STATES = ["open", "paid", "shipped", "returned"]
WORDS = ["gift", "late", "fragile", "repeat", "call first", "leave at door", "no invoice", "business"]


def chunk(start, rows):
    """Some rows of the table, the same for the same start."""
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng(start)
    number = np.arange(start, start + rows)
    amount = np.round(random.gamma(2.0, 40.0, rows), 2)
    note = random.integers(0, len(WORDS), rows)
    return pa.table({
        "order_id": 1_000_000_000_000 + number,
        "placed": pa.array(1_577_836_800 + number * 13, pa.timestamp("s")),
        "customer": pa.array([f"C-{value:07d}" for value in random.integers(0, 900_000, rows)]),
        "city": pa.DictionaryArray.from_arrays(pa.array(random.integers(0, len(CITIES), rows)), CITIES).cast(pa.string()),
        "article": pa.array([f"catalogue {value:05d}" for value in random.integers(0, 20_000, rows)]),
        "quantity": random.integers(1, 40, rows),
        "price": amount,
        "weight": random.normal(12.0, 3.0, rows).round(6),
        "discount": pa.array(random.integers(0, 50, rows), mask=random.random(rows) < 0.3),
        "paid": random.random(rows) < 0.8,
        "state": pa.DictionaryArray.from_arrays(pa.array(random.integers(0, len(STATES), rows)), STATES).cast(pa.string()),
        "rating": pa.array(random.integers(10, 50, rows) / 10, mask=random.random(rows) < 0.1),
        "note": pa.array([f"{WORDS[word]}, {serial}" for word, serial in zip(note, random.integers(0, 1 << 40, rows))]),
    })


def write(folder, rows=ROWS):
    """Write what is not there yet, each file whole or not at all."""
    import duckdb
    import pyarrow.parquet as pq

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    whole, columnar, part = (folder / name for name in NAMES)
    if not (whole.exists() and columnar.exists()):
        drafts = [path.with_suffix(".draft" + path.suffix) for path in (whole, columnar)]
        with pq.ParquetWriter(str(drafts[1]), chunk(0, 1).schema) as parquet:
            for start in range(0, rows, CHUNK):
                parquet.write_table(chunk(start, min(CHUNK, rows - start)))
        duckdb.execute(f"COPY (FROM read_parquet('{drafts[1]}')) TO '{drafts[0]}' (FORMAT csv, HEADER)")
        for draft, path in zip(drafts, (whole, columnar)):
            draft.rename(path)
    if not part.exists():
        with open(whole, "rb") as stream:
            data = stream.read(PART_BYTES)
        part.write_bytes(data[: data.rfind(b"\n") + 1])
    return whole, columnar, part


if __name__ == "__main__":
    for path in write(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else ROWS):
        print(f"{path}: {path.stat().st_size:,} bytes")
