"""What the benchmarks compare with: jupyter_client driving ipykernel on this machine.

    python peer.py

prints one JSON object: seconds for each measurement (every sample, the bench
takes the medians) and the idle memory of a kernel that has the data stack.
"""

import json
import pathlib
import time

from jupyter_client.manager import start_new_kernel

ROUND_TRIPS = 300
FLOODS = 5
FLOOD = "import sys\nfor _ in range(1600): sys.stdout.write('x' * 65535 + '\\n')"
STACK = "import numpy, pandas, matplotlib.pyplot"


def run(client, code: str) -> int:
    """Executes one cell and reads everything it says; the characters of its output."""
    request = client.execute(code)
    seen = 0
    while True:
        message = client.get_iopub_msg(timeout=120)
        if message["parent_header"].get("msg_id") != request:
            continue
        if message["msg_type"] == "stream":
            seen += len(message["content"]["text"])
        if message["msg_type"] == "error":
            raise RuntimeError("\n".join(message["content"]["traceback"]))
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            client.get_shell_msg(timeout=120)
            return seen


def timed(action) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def proportional_bytes(pid: int) -> int:
    """Memory of a process with shared pages counted by their share (Pss)."""
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no Pss in smaps_rollup")


def main() -> None:
    began = time.perf_counter()
    manager, client = start_new_kernel()
    run(client, "1 + 1")
    first_cell = time.perf_counter() - began
    try:
        imports = timed(lambda: run(client, STACK))
        round_trips = [timed(lambda: run(client, "1 + 1")) for _ in range(ROUND_TRIPS)]
        idle = proportional_bytes(manager.provisioner.pid)
        floods = []
        for _ in range(FLOODS):
            floods.append(timed(lambda: run(client, FLOOD)))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    print(
        json.dumps(
            {
                "first_cell": [first_cell],
                "imports": [imports],
                "round_trip": round_trips,
                "flood": floods,
                "idle_bytes": idle,
            }
        )
    )


if __name__ == "__main__":
    main()
