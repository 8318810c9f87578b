"""Tells which wheels pip would install, and how large they are.

Usage: `python wheels.py REPORT`, where REPORT was written by `pip install --dry-run --report REPORT`

Prints one line: a JSON array of objects with `name`, `version`, `hash` (`sha256:…`) and `bytes`, the size of the
wheel or null where its server does not tell. pip's report (version 1) has no sizes, so each server is asked for its head.
"""

import json
import os
import ssl
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor


def _trust():
    for name in ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        path = os.environ.get(name)
        if path and os.path.isfile(path):
            return ssl.create_default_context(cafile=path)
    try:
        from pip._vendor import certifi
    except ImportError:
        return ssl.create_default_context()
    return ssl.create_default_context(cafile=certifi.where())


def _size(url, trust):
    try:
        request = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(request, timeout=15, context=trust) as answer:
            return int(answer.headers["Content-Length"])
    except (OSError, TypeError, ValueError):
        return None


def main():
    """Reads the report and prints the line."""
    with open(sys.argv[1], encoding="utf-8") as file:
        items = json.load(file)["install"]
    trust = _trust()
    with ThreadPoolExecutor(8) as pool:
        sizes = pool.map(lambda item: _size(item["download_info"]["url"], trust), items)
    wheels = []
    for item, size in zip(items, sizes):
        archive = item["download_info"].get("archive_info") or {}
        found = (archive.get("hash") or "").replace("=", ":", 1)
        wheels.append({**{key: item["metadata"][key] for key in ("name", "version")}, "hash": found, "bytes": size})
    print(json.dumps(wheels))


if __name__ == "__main__":
    main()
