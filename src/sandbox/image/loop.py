"""The supervisor's event loop: what is readable, what can be written to the host, what is due."""

import collections
import fcntl
import itertools
import os
import selectors
import time

import frames

# Above this much unsent output, nothing more is taken from user code until the host has caught up.
HIGH = 8 << 20
LOW = 2 << 20
# Large displays and files cross in fewer steps.
PIPE_BYTES = 1 << 20
_SETPIPE_SZ = getattr(fcntl, "F_SETPIPE_SZ", 1031)
# Frames of one system call.
MAX_PIECES = 64


class Loop:
    """Callbacks by descriptor. Those of user code's descriptors rest while the host is slow."""

    def __init__(self):
        self._selector = selectors.PollSelector()
        self._restable = {}
        self.resting = False
        # Called at the end of every turn: what a turn sends goes out together.
        self.after = None

    def watch(self, fd, callback, restable=False):
        """Calls back when `fd` is readable or at its end."""
        if restable:
            self._restable[fd] = callback
            if self.resting:
                return
        self._selector.register(fd, selectors.EVENT_READ, callback)

    def forget(self, fd):
        """Stops watching; unknown descriptors are fine."""
        self._restable.pop(fd, None)
        try:
            self._selector.unregister(fd)
        except KeyError:
            pass

    def watch_writable(self, fd, callback):
        """Calls back when `fd` takes data; None ends it."""
        self.forget(fd)
        if callback is not None:
            self._selector.register(fd, selectors.EVENT_WRITE, callback)

    def rest(self, resting):
        """Stops or resumes reading what user code sends."""
        if resting == self.resting:
            return
        self.resting = resting
        for fd, callback in self._restable.items():
            if resting:
                self._selector.unregister(fd)
            else:
                self._selector.register(fd, selectors.EVENT_READ, callback)

    def turn(self, due):
        """Waits for something to happen, or for the time `due`, and calls back."""
        timeout = None if due is None else max(due - time.monotonic(), 0)
        for key, _events in self._selector.select(timeout):
            # An earlier callback of this turn may have closed it.
            if self._selector.get_map().get(key.fd) is key:
                key.data()
        self.after()


class Output:
    """The way to the host: frames in order, files in between whenever there is room."""

    def __init__(self, loop, fd):
        self._loop = loop
        self._fd = fd
        self._queue = collections.deque()
        self._size = 0
        self._sources = collections.deque()
        self._waiting = False
        loop.after = self._after_turn
        try:
            fcntl.fcntl(fd, _SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            pass  # Not a pipe, or the user's quota is used up.
        os.set_blocking(fd, False)

    def send(self, message, blobs=None):
        """Sends one message; one that no frame can hold is replaced by a note of that."""
        try:
            data = frames.encode_with_blobs(message, blobs) if blobs else frames.encode_json(message)
            problem = f"it has {len(data)} bytes" if len(data) > frames.MAX_JSON_TO_HOST else None
        except (ValueError, TypeError, RecursionError) as error:
            problem = str(error)
        if problem is not None:
            note = {"status": "error", "ename": "TooLarge", "evalue": f"a message was dropped: {problem}"}
            data = frames.encode_json({**message, "content": note})
        self._queue.append(data)
        self._size += len(data)
        if self._size > LOW:
            self._after_turn()

    def stream(self, source):
        """Sends what `source()` yields piece by piece, each a frame, until it gives None."""
        self._sources.append(source)

    def _after_turn(self):
        if not self._waiting and (self._queue or self._sources):
            self._write()

    def _write(self):
        while True:
            if self._size < LOW and self._sources:
                piece = self._sources[0]()
                if piece is None:
                    self._sources.popleft()
                    continue
                self._queue.append(piece)
                self._size += len(piece)
                self._sources.rotate(-1)
            if not self._queue:
                self._wait(False)
                break
            try:
                written = os.writev(self._fd, list(itertools.islice(self._queue, MAX_PIECES)))
            except BlockingIOError:
                self._wait(True)
                break
            except OSError:
                # The host is gone: the end of its input will end this process.
                self._queue.clear()
                self._sources.clear()
                self._size = 0
                self._wait(False)
                break
            self._size -= written
            while written:
                piece = self._queue.popleft()
                if written < len(piece):
                    self._queue.appendleft(memoryview(piece)[written:])
                    break
                written -= len(piece)
        self._loop.rest(self._size > (LOW if self._loop.resting else HIGH))

    def _wait(self, waiting):
        if waiting != self._waiting:
            self._waiting = waiting
            self._loop.watch_writable(self._fd, self._write if waiting else None)

    def flush(self):
        """Writes what is queued, waiting for the host; for the last words before an exit."""
        os.set_blocking(self._fd, True)
        self._write()
