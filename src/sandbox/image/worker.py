"""A worker: one forked child for one profile, apart from the kernel and its variables."""

import os
import resource
import signal
import sys
import time
import traceback

import processes
from channel import Channel

# The editor shows progress; more often than this it is noise.
_PROGRESS_SECONDS = 0.1


def main(sock, order, folder):
    """Profiles one file, sends progress and the result; does not return."""
    os.setsid()
    processes.prefer_as_victim()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1):
        os.dup2(null, fd)
    os.chdir(order["workdir"])
    if folder not in sys.path:
        sys.path.insert(0, folder)
    memory = order.get("memory")
    if memory:
        # What is mapped from files is not counted, so libraries can still be loaded.
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    channel = Channel(sock)
    channel.send({"type": "reply", "id": order["id"], "content": _profile(channel, order)})
    os._exit(0)


def _profile(channel, order):
    last = [0.0]

    def progress(update):
        now = time.monotonic()
        if now - last[0] >= _PROGRESS_SECONDS:
            last[0] = now
            channel.send({"type": "progress", "id": order["id"], "content": update})

    try:
        import profiler

        options = {"memory_bytes": order.get("memory"), **order["options"]}
        return {"status": "ok", "profile": profiler.profile_file(order["path"], options, progress)}
    except MemoryError:
        return {"status": "error", "ename": "OutOfMemory", "evalue": "the profile needs more memory than the sandbox has"}
    except BaseException as error:
        lines = traceback.format_exception(type(error), error, error.__traceback__)
        return {
            "status": "error",
            "ename": type(error).__name__,
            "evalue": str(error)[:2000],
            "traceback": "".join(lines)[-8000:],
        }
