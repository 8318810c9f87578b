"""Emacs with eglot: an LSP client without virtual documents, without `showDocument`, without a plugin of ours."""

import os
import pathlib
import shutil
import subprocess

import pytest


def test_a_code_action_in_emacs_brings_a_report(binary, environment, workspace) -> None:
    emacs = os.environ.get("EMACS") or shutil.which("emacs")
    if not emacs:
        pytest.fail("EMACS names no program; run: bash tests/setup/emacs.sh", pytrace=False)
    script = pathlib.Path(__file__).with_name("eglot.el")
    done = subprocess.run(
        [emacs, "--batch", "-q", "-l", str(script), str(binary), str(workspace / "sales.csv")],
        env=environment,
        cwd=workspace,
        capture_output=True,
        text=True,
        timeout=300,
    )
    said = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert done.returncode == 0, done.stdout + done.stderr
    assert said["server"] == "codeinterp"
    for preset in ("Profile", "Plot what matters", "Find problems"):
        assert preset in said["actions"].split("|")
    report = pathlib.Path(said["report"])
    assert report.is_relative_to(environment["XDG_STATE_HOME"])
    text = report.read_text(encoding="utf-8")
    assert "Step 1" in text and "](artifacts/" in text
    assert "date" in said["hover"]
    assert said["ended"] == "yes"
