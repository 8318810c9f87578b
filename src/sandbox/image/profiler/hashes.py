"""Distinct values counted by their 64-bit hashes, sorted in memory: quicker than a hash table of millions of entries.

Two values of ten million share a hash by chance once in some 400,000 tables, so the counts are called exact.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .faults import Fault

BYTES = 8
# The part of the memory that the hashes of one pass may take.
SHARE = 0.25
BATCH_ROWS = 1 << 18
# Parts are merged when this many hashes have come on top of twice what the last merge has left.
MERGE = 1 << 20
THREADS = max(1, min(os.cpu_count() or 1, 4))


def fit(rows, width, memory):
    """Whether the hashes of so many rows and columns fit in the memory (bytes)."""
    return rows * width * BYTES <= memory * SHARE


def bound(width, memory):
    """How many hashes each of so many columns may keep: with those that wait to be merged they fit in the memory (bytes)."""
    return max(1000, int(memory * SHARE) // (3 * BYTES * max(1, width)))


class Distinct:
    """The distinct among hashes that come in parts.

    Beyond `most` of them only the smallest are kept, and their number is estimated by how far those reach (the sketch of
    "k minimum values"): with 100,000 kept it is about 0.3 % off.
    """

    def __init__(self, most=None):
        self.most = most
        self.parts = []
        self.held = 0
        self.limit = min(MERGE, 2 * most) if most else MERGE
        self.reach = None

    def add(self, hashes):
        """Take in some more."""
        if self.reach is not None:
            hashes = hashes[hashes <= self.reach]
        part = _distinct(np.sort(hashes))
        self.parts.append(part)
        self.held += len(part)
        if self.held > self.limit:
            self._merge()

    def count(self):
        """(number of distinct hashes, whether it is exact)."""
        self._merge()
        if self.reach is None:
            return self.held, True
        return int((self.held - 1) / (float(self.reach) / 2.0**64)), False

    def _merge(self):
        merged = np.concatenate(self.parts) if self.parts else np.empty(0, np.uint64)
        # As little as possible is held twice.
        self.parts = []
        merged.sort()
        merged = _distinct(merged)
        if self.most and len(merged) > self.most:
            merged = merged[: self.most].copy()
            self.reach = merged[-1]
        self.parts, self.held = [merged], len(merged)
        self.limit = self.held + self.most if self.most else 2 * self.held + MERGE


def distinct(connection, table, values, rows, most=None, hashed=False):
    """The number of distinct hashes of each SQL expression over a table of `rows` rows, a missing value counted as one, and
    whether it is exact.

    `most`: how many hashes each may keep; `hashed`: the expressions give hashes already.
    """
    wanted = ", ".join(f"{value if hashed else f'hash({value})'} AS h{index}" for index, value in enumerate(values))
    found = [Distinct(most) for _ in values]
    at = 0
    # A result that streams holds its connection; a cursor is a connection of its own to the same database.
    with connection.cursor() as cursor, cursor.sql(f"SELECT {wanted} FROM {table}").to_arrow_reader(BATCH_ROWS) as reader, ThreadPoolExecutor(THREADS) as pool:
        for batch in reader:
            # numpy sorts without holding the interpreter, so columns are sorted side by side.
            list(pool.map(lambda counted, column: counted.add(column.to_numpy(zero_copy_only=False)), found, batch.columns))
            at += batch.num_rows
        if at != rows:
            raise Fault("corrupt", f"the file changed while it was read: it has {'more' if at > rows else 'fewer'} rows than at first",
                        "Profile it again when nothing writes to it.")
        return list(pool.map(Distinct.count, found))


def _distinct(hashes):
    """The distinct of some sorted hashes."""
    if len(hashes) < 2:
        return hashes
    first = np.empty(len(hashes), bool)
    first[0] = True
    np.not_equal(hashes[1:], hashes[:-1], out=first[1:])
    return hashes if first.all() else hashes[first]
