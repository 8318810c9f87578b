"""Which processes a server has started, and whether all of them have ended."""

import contextlib
import os
import pathlib
import select
import time


def descendants(pid: int) -> list[int]:
    """Every process below `pid`, at this moment."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        for children in pathlib.Path(f"/proc/{parent}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                born = [int(word) for word in children.read_text().split()]
                found += born
                waiting += born
    return found


class Watched:
    """Handles on processes, which stay good when their numbers are used again."""

    def __init__(self, pids: list[int]) -> None:
        self.handles: dict[int, int] = {}
        for pid in pids:
            # One that has ended meanwhile needs no watching.
            with contextlib.suppress(ProcessLookupError):
                self.handles[os.pidfd_open(pid)] = pid

    def still_running_after(self, seconds: float) -> list[int]:
        """Waits until all have ended, at most so long; the numbers of those that have not."""
        deadline = time.monotonic() + seconds
        poll = select.poll()
        for handle in self.handles:
            poll.register(handle, select.POLLIN)
        while self.handles and (left := deadline - time.monotonic()) > 0:
            for handle, _ in poll.poll(left * 1000):
                poll.unregister(handle)
                os.close(handle)
                del self.handles[handle]
        running = list(self.handles.values())
        for handle in self.handles:
            os.close(handle)
        return running
