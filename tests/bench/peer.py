"""What the benchmarks compare with: jupyter_client driving ipykernel on this machine.

    python peer.py

prints one JSON object: the samples of each measurement in seconds, and the idle
memory in bytes of a kernel that has the data stack.
"""

import json
import pathlib
import time

from jupyter_client.manager import start_new_kernel

ROUND_TRIPS = 300
FLOODS = 5
FIGURES = 20
STACK = "import numpy, pandas, matplotlib.pyplot"
# The same code runs in our kernel: see sandbox.rs.
FLOOD = "import sys\nfor _ in range(1600): sys.stdout.write('x' * 65535 + '\\n')"
FIGURE = (
    "import os, IPython.display\n"
    "IPython.display.display({'image/png': __import__('base64').b64encode("
    "b'\\x89PNG\\r\\n\\x1a\\n' + os.urandom(5_000_000)).decode()}, raw=True)"
)


def run(client, code: str) -> None:
    """Executes one cell and reads everything that it says."""
    request = client.execute(code)
    while True:
        message = client.get_iopub_msg(timeout=120)
        if message["parent_header"].get("msg_id") != request:
            continue
        if message["msg_type"] == "error":
            raise RuntimeError("\n".join(message["content"]["traceback"]))
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            client.get_shell_msg(timeout=120)
            return


def timed(client, code: str, times: int) -> list[float]:
    """Seconds of each execution."""
    samples = []
    for _ in range(times):
        began = time.perf_counter()
        run(client, code)
        samples.append(time.perf_counter() - began)
    return samples


def proportional_bytes(pid: int) -> int:
    """Memory of a process with shared pages counted by their share (`Pss` of proc(5))."""
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no Pss in smaps_rollup")


def main() -> None:
    manager, client = start_new_kernel()
    try:
        imports = timed(client, STACK, 1)
        round_trips = timed(client, "1 + 1", ROUND_TRIPS)
        idle = proportional_bytes(manager.provisioner.pid)
        figures = timed(client, FIGURE, FIGURES)
        floods = timed(client, FLOOD, FLOODS)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    print(
        json.dumps(
            {
                "imports": imports,
                "round_trip": round_trips,
                "figure": figures,
                "flood": floods,
                "idle_bytes": idle,
            }
        )
    )


if __name__ == "__main__":
    main()
