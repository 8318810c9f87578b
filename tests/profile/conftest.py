"""What the tests of the profiler share: its import, the fixtures' folder, and the loading code run as a user would run it."""

import os
import sys
from pathlib import Path

import pandas as pd
import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS.parent / "src" / "sandbox" / "image"))
FIXTURES = TESTS / "fixtures" / "profile"

import profiler  # noqa: E402


def profile(path, **options):
    """The profile of a file, named as in its own folder."""
    path = Path(path)
    return profiler.profile_file(str(path), {"name": path.name, **options})


def fixture(name, **options):
    """The profile of a fixture."""
    return profile(FIXTURES / name, **options)


def load(found, folder):
    """What the loading code of a profile gives in the folder of the file: imports first, then one expression."""
    *imports, expression = found["load"].split("\n")
    before = os.getcwd()
    os.chdir(folder)
    try:
        space = {"pd": pd}
        exec("\n".join(imports), space)
        return eval(expression, space)
    finally:
        os.chdir(before)


def column(found, name):
    """The details of a column."""
    return next(detail for detail in found["columns_detail"] if detail["name"] == name)


def said(found, *words):
    """Whether one warning holds all the words."""
    return any(all(word in warning for word in words) for warning in found["warnings"])


@pytest.fixture
def write(tmp_path):
    """Writes a file and gives its profile."""

    def _write(name, content, **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return profile(path, **options)

    return _write
