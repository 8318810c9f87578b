"""What one execution writes to its pipes, as the supervisor sees it: counted whole, kept in head and tail."""

import codecs
import collections
import fcntl
import os
import time

import frames

READ = 1 << 18
# Output of background work after its cell has ended: enough to see it, not enough to flood.
LATE_BYTES = 64 << 10
# The first frames go at once, later ones are gathered this long.
GATHER_SECONDS = 0.03
EAGER_FRAMES = 32
_SETPIPE_SZ = getattr(fcntl, "F_SETPIPE_SZ", 1031)
# Only a flood is worth a pipe larger than the usual one.
_USUAL_PIPE = 1 << 16
PIPE_BYTES = 1 << 20


class Stream:
    """One stream of one execution."""

    def __init__(self, name, limit, emit):
        self.name = name
        self.total = 0
        self.late = 0
        self._emit = emit
        self._head_left = limit - limit // 2
        self._tail_limit = limit // 2
        self._tail = collections.deque()
        self._tail_bytes = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = []
        self._frames = 0
        self._kept = 0
        self.due = None
        self.read_fd, self.write_fd = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.read_fd, False)
        self._widened = False

    def read(self):
        """Takes in what is there; False at the end of the stream."""
        try:
            data = os.read(self.read_fd, READ)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if data:
            self._take(data)
            if len(data) >= _USUAL_PIPE and not self._widened:
                self._widen()
        return bool(data)

    def _widen(self):
        self._widened = True
        try:
            fcntl.fcntl(self.read_fd, _SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            pass  # The user's pipe quota is used up: the usual size works too.

    def drain(self):
        """Takes in what was written before now: not more than a pipe holds, as a thread may go on writing."""
        end = self.total + PIPE_BYTES + READ
        while self.total < end:
            before = self.total
            if not self.read() or self.total == before:
                return

    def _take(self, data):
        self.total += len(data)
        if self._head_left > 0:
            head, data = data[: self._head_left], data[self._head_left :]
            self._head_left -= len(head)
            self._kept += len(head)
            self._pending.append(self._decoder.decode(head, final=False))
            if self._frames < EAGER_FRAMES:
                self.send()
            elif self.due is None:
                self.due = time.monotonic() + GATHER_SECONDS
        if data:
            self._tail.append(data)
            self._tail_bytes += len(data)
            while self._tail_bytes - len(self._tail[0]) >= self._tail_limit:
                self._tail_bytes -= len(self._tail.popleft())

    def send(self):
        """Emits the text that was gathered."""
        self.due = None
        text = "".join(self._pending)
        self._pending.clear()
        if text:
            self._frames += 1
            self._emit(self.name, text, {})

    def finish(self):
        """Emits the tail, and returns `{"total_bytes", "kept_bytes"}`."""
        self.send()
        tail = b"".join(self._tail)
        self._tail.clear()
        skipped = 0
        if self._tail_bytes > self._tail_limit:
            cut = self._tail_bytes - self._tail_limit
            # Not in the middle of a letter.
            while cut < len(tail) and tail[cut] & 0xC0 == 0x80:
                cut += 1
            tail, skipped = tail[cut:], cut
        skipped += max(self.total - self._kept - skipped - len(tail), 0)
        self._kept += len(tail)
        if skipped:
            text = self._decoder.decode(b"", final=True)
            if text:
                self._emit(self.name, text, {})
            text = tail.decode("utf-8", "replace")
        else:
            text = self._decoder.decode(tail, final=True)
        if text or skipped:
            self._emit(self.name, text, {"skipped_bytes": skipped} if skipped else {})
        return {"total_bytes": self.total, "kept_bytes": self._kept}

    def read_late(self):
        """After `finish`: passes on a little of what still comes; False at the end of the stream."""
        try:
            data = os.read(self.read_fd, READ)
        except BlockingIOError:
            return True
        except OSError:
            return False
        room = LATE_BYTES - self.late
        self.late += len(data)
        if data[:room] and room > 0:
            self._emit(self.name, data[:room].decode("utf-8", "replace"), {"late": True})
        return bool(data)

    def give(self):
        """Closes the write end here, once the kernel has it."""
        if self.write_fd is not None:
            os.close(self.write_fd)
            self.write_fd = None

    def close(self):
        """Gives both ends back."""
        self.give()
        if self.read_fd is not None:
            os.close(self.read_fd)
            self.read_fd = None


class Running:
    """An execution from its request to its reply, and the late life of its pipes."""

    def __init__(self, request, send):
        self.request = request
        self.parent = request["header"]
        self.id = self.parent["msg_id"]
        self._send = send
        limits = request["metadata"].get("limits")
        limits = limits if isinstance(limits, dict) else {}
        self.displays_left = _limit(limits, "displays", 1000)
        self.display_bytes_left = _limit(limits, "display_bytes", 64 << 20)
        self.dropped = 0
        self.interrupted = False
        self.finished = False
        self.started = time.monotonic()
        self.oom_kills = None
        # Work of an earlier execution went on when this one began.
        self.background = False
        self.streams = [
            Stream("stdout", _limit(limits, "stdout_bytes", 1 << 20), self._emit),
            Stream("stderr", _limit(limits, "stderr_bytes", 1 << 20), self._emit),
        ]

    def _emit(self, name, text, metadata):
        # A frame has an upper size, and a budget may be above it.
        for start in range(0, max(len(text), 1), 1 << 20):
            piece = text[start : start + (1 << 20)]
            self._send(frames.envelope("stream", {"name": name, "text": piece}, self.parent, metadata=metadata))
            metadata = {}

    def admits(self, size):
        """Whether one more display of that many bytes fits into the execution's budget; counts it."""
        if self.displays_left < 1 or self.display_bytes_left < size:
            self.dropped += 1
            return False
        self.displays_left -= 1
        self.display_bytes_left -= size
        return True

    def finish(self):
        """Ends both streams; `{"stdout": {...}, "stderr": {...}}`."""
        self.finished = True
        return {stream.name: stream.finish() for stream in self.streams}

    def close(self):
        for stream in self.streams:
            stream.close()


def _limit(limits, name, default):
    value = limits.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        return default
    return min(value, 64 << 20)
