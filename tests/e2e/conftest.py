"""Parts of the end-to-end suites: the built binary, and a person's empty machine around it.

`CODEINTERP_BIN` names the binary (tests/run sets it). A missing part fails.
"""

import os
import pathlib

import pytest
import pytest_asyncio

from editor import Editor


@pytest.fixture(scope="session")
def binary() -> pathlib.Path:
    path = pathlib.Path(os.environ.get("CODEINTERP_BIN", ""))
    if not path.is_file():
        pytest.fail("CODEINTERP_BIN names no file; build first: cargo build", pytrace=False)
    return path


@pytest.fixture
def environment(tmp_path: pathlib.Path) -> dict[str, str]:
    """The environment of a person without settings; state and settings under the test's folder.

    The cache stays the machine's own, since the Python environment of the sandbox is in it.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CODEINTERP_")}
    if base := os.environ.get("CODEINTERP_SANDBOX_BASE"):
        kept["CODEINTERP_SANDBOX_BASE"] = base
    kept["XDG_STATE_HOME"] = str(tmp_path / "state")
    kept["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    return kept


REGIONS = ("north", "south", "east", "west")


@pytest.fixture
def workspace(tmp_path: pathlib.Path) -> pathlib.Path:
    """A workspace folder with one table, in a place whose name is not plain ASCII."""
    folder = tmp_path / "работа 100% 分析"
    folder.mkdir()
    lines = ["date,region,units,price"]
    for day in range(120):
        units = (day * 37) % 91 + 5
        price = "" if day % 40 == 7 else f"{9.5 + (day * 13 % 70) / 10:.2f}"
        lines.append(f"2024-{day // 28 + 1:02d}-{day % 28 + 1:02d},{REGIONS[day % 4]},{units},{price}")
    (folder / "sales.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest_asyncio.fixture
async def editor(binary, environment, workspace):
    """An editor with the workspace open, over the process sandbox and without a language model."""
    client = await Editor.open(binary, environment, workspace)
    try:
        yield client
    finally:
        await client.close()
