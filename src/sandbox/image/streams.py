"""What a cell prints: `sys.stdout` and `sys.stderr` of the kernel, credited to the execution that wrote.

Every execution has a pair of pipes of its own, which the supervisor reads. While a cell runs, descriptors 1
and 2 are those pipes too, so that C code and subprocesses are captured as well, and a process started by one
cell keeps that cell's pipes for ever. Python code finds its execution through a context variable (the main
thread and its asyncio tasks) or through its thread, which inherits it from the thread that started it; so the
late output of a thread never counts as the next cell's.
"""

import _thread
import collections
import contextvars
import functools
import io
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from processes import flush_c_stdio

# Text waits at most this long, so that a running cell is seen live without one system call per print.
FLUSH_SECONDS = 0.02
# Lines that are written out at once in such a time, so that what C code writes beside them keeps its place.
EAGER_LINES = 256
# Together they bound what is buffered.
FLUSH_TEXTS = 1024
LARGE_TEXT = 8192
# Ended executions whose pipes stay open here.
RECENT = 4
MAX_LINGERING = 32

_execution = contextvars.ContextVar("execution", default=None)
_local = threading.local()


class Execution:
    """The pipes of one cell, open here for as long as something in this process may write to them."""

    def __init__(self, parent, fds):
        self.parent = parent
        self.pipes = [Pipe(fd) for fd in fds]
        self.figures = []

    def flush(self):
        """Writes out what Python code has buffered."""
        for pipe in self.pipes:
            pipe.flush()

    def close(self):
        """Gives the pipes back; later writes of this execution are discarded."""
        for pipe in self.pipes:
            pipe.close()


class Pipe:
    """One buffered stream of one execution."""

    def __init__(self, fd):
        self.fd = fd
        # Texts are added and taken by single operations of the list, which need no lock.
        self.texts = []
        self.waiting = False
        self._armed = False
        self._eager_since = 0.0
        self._eager_left = EAGER_LINES
        # Re-entrant: a signal handler may print while its own thread is flushing.
        self.lock = threading.RLock()

    def written(self, text):
        """Called after a write that was large, or that came when nothing waited: has it written out, now or soon.

        Lines go at once while they are few, so that a cell that dies right after one has said it, and that whatever
        bypasses `sys.stdout` comes after it.
        """
        now = time.monotonic()
        if now - self._eager_since > FLUSH_SECONDS:
            self._eager_since, self._eager_left = now, EAGER_LINES
        large = len(text) > LARGE_TEXT or len(self.texts) > FLUSH_TEXTS
        if self.waiting or large or not _flusher.alive or (self._eager_left and text.endswith("\n")):
            self._eager_left = max(self._eager_left - 1, 0)
            self.flush()
            return
        self.waiting = not self._eager_left
        if not self._armed:
            self._armed = True
            _flusher.add(self)

    def flush(self):
        """Writes out everything that is buffered; blocks while the pipe is full."""
        with self.lock:
            self.waiting = self._armed = False
            count = len(self.texts)
            if count:
                text = "".join(self.texts[:count])
                del self.texts[:count]
                self._write(text.encode("utf-8", "backslashreplace"))

    def write_bytes(self, data):
        """Writes bytes in order with the text."""
        with self.lock:
            self.flush()
            self._write(data)

    def _write(self, data):
        view = memoryview(data)
        while len(view) and self.fd is not None:
            try:
                view = view[_write(self.fd, view) :]
            except OSError:
                # Nobody reads this execution's late output any more.
                return

    def close(self):
        with self.lock:
            self.flush()
            fd, self.fd = self.fd, None
            if fd is not None:
                os.close(fd)


class _Flusher:
    """A thread that writes out waiting pipes; it sleeps on a lock while nothing waits."""

    def __init__(self):
        self.alive = False
        self._wake = threading.Event()
        self._pipes = collections.deque()

    def start(self):
        self.alive = True
        thread = threading.Thread(target=self._run, name="codeinterp-flush", daemon=True)
        thread.start()

    def add(self, pipe):
        self._pipes.append(pipe)
        self._wake.set()

    def _run(self):
        while True:
            self._wake.wait()
            time.sleep(FLUSH_SECONDS)
            self._wake.clear()
            while self._pipes:
                self._pipes.popleft().flush()


_flusher = _Flusher()
# As they are before user code can put something else in their places.
_write, _threads = os.write, threading.enumerate


def current():
    """The execution that the calling code belongs to, or None."""
    execution = _execution.get()
    if execution is None:
        execution = getattr(_local, "execution", None)
        if execution is None:
            execution = getattr(threading.current_thread(), "_codeinterp_execution", None)
    return execution


class Stream(io.TextIOBase):
    """`sys.stdout` or `sys.stderr`: writes to whichever execution the caller belongs to."""

    def __init__(self, fd):
        self._fd = fd
        self._index = fd - 1
        self.buffer = _Bytes(self)
        # A closure costs half of a method, and a million prints call it two million times.
        self.write = _writer(fd - 1)

    name = property(lambda self: "<stdout>" if self._fd == 1 else "<stderr>")
    encoding = "utf-8"
    errors = "backslashreplace"
    newlines = None
    line_buffering = False
    write_through = False
    mode = "w"

    def flush(self):
        execution = current()
        if execution is not None:
            execution.pipes[self._index].flush()

    def fileno(self):
        return self._fd

    def writable(self):
        return True

    def readable(self):
        return False

    def isatty(self):
        return False

    def reconfigure(self, **_options):
        """Accepted for scripts that set an encoding; the stream is UTF-8 whatever they ask."""

    def close(self):
        """A cell that closes its stdout must not silence the next one."""


def _writer(index):
    get = _execution.get

    def write(text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        execution = get() or current()
        if execution is not None:
            pipe = execution.pipes[index]
            texts = pipe.texts
            texts.append(text)
            if not pipe.waiting or len(texts) > FLUSH_TEXTS or len(text) > LARGE_TEXT:
                pipe.written(text)
        return len(text)

    return write


class _Bytes(io.RawIOBase):
    """`sys.stdout.buffer`."""

    def __init__(self, stream):
        self._stream = stream

    def write(self, data):
        data = bytes(data)
        execution = current()
        if execution is not None:
            execution.pipes[self._stream._index].write_bytes(data)
        return len(data)

    def flush(self):
        self._stream.flush()

    def fileno(self):
        return self._stream._fd

    def writable(self):
        return True

    def close(self):
        """See `Stream.close`."""


class Capture:
    """Executions of this kernel, at most one of them running."""

    def __init__(self):
        self._lingering = []
        self._running = None
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for fd in (0, 1, 2):
            os.dup2(self._null, fd)
        sys.stdin = sys.__stdin__ = io.StringIO()
        self._streams = Stream(1), Stream(2)
        self._install()
        _inherit_by_threads()
        os.write, os.writev = self._in_order(os.write), self._in_order(os.writev)
        os.register_at_fork(before=self._before_fork, after_in_parent=self._after_fork, after_in_child=self._in_child)
        _flusher.start()

    def _in_order(self, write):
        """`os.write` or `os.writev`: what was printed before goes out before."""

        @functools.wraps(write)
        def ordered(fd, data, /):
            if self._running is not None and (fd == 1 or fd == 2):
                self._running.pipes[fd - 1].flush()
            return write(fd, data)

        return ordered

    def begin(self, parent, fds):
        """Starts an execution whose output goes to the given write ends of pipes."""
        execution = self._running = Execution(parent, fds)
        os.dup2(fds[0], 1)
        os.dup2(fds[1], 2)
        _execution.set(execution)
        return execution

    def flush(self):
        """Writes out what Python and C code of the running execution have buffered."""
        if self._running is not None:
            self._running.flush()
        flush_c_stdio()

    def end(self):
        """Ends the running execution; its pipes stay open until they are let go."""
        execution = self._running
        self.flush()
        _execution.set(None)
        os.dup2(self._null, 1)
        os.dup2(self._null, 2)
        self._running = None
        # User code may have put something else there, or taken our streams away.
        self._install()
        self._lingering.append(execution)

    def _install(self):
        sys.stdout, sys.stderr = self._streams
        sys.__stdout__, sys.__stderr__ = self._streams

    def let_go(self):
        """Closes the pipes of ended executions that nothing writes to any more."""
        if len(self._lingering) <= RECENT:
            return
        alive = {getattr(thread, "_codeinterp_execution", None) for thread in _threads()}
        # Work handed to a pool of an earlier cell may still run, so the last few stay open in any case.
        older, recent = self._lingering[:-RECENT], self._lingering[-RECENT:]
        kept = [old for old in older if old in alive][-MAX_LINGERING:]
        for old in older:
            if old not in kept:
                old.close()
        self._lingering = kept + recent

    def _all(self):
        return [*self._lingering, *([self._running] if self._running else [])]

    def _before_fork(self):
        # A child must not write again what its parent has buffered, nor inherit a lock that is held.
        for execution in self._all():
            execution.flush()
            for pipe in execution.pipes:
                pipe.lock.acquire()

    def _after_fork(self):
        for execution in self._all():
            for pipe in execution.pipes:
                pipe.lock.release()

    def _in_child(self):
        self._after_fork()
        # The flusher's thread does not exist in the child: write through instead.
        _flusher.alive = False

    def before_process(self):
        """A process is about to start: what was printed before must come before its output."""
        if self._running is not None:
            self._running.flush()

    def has_background(self):
        """Whether threads live that an execution has started; asked between two of them, it was an earlier one."""
        return any(getattr(thread, "_codeinterp_execution", None) is not None for thread in _threads())


# Audit events.
STARTS_PROCESS = frozenset(("subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "os.fork", "os.forkpty"))


def _inherit_by_threads():
    """Makes every thread, and every task of a thread pool, belong to the execution that started it."""
    start, submit, start_new = threading.Thread.start, ThreadPoolExecutor.submit, _thread.start_new_thread

    def inheriting_start(self):
        self._codeinterp_execution = current()
        return start(self)

    def _adopt(function, execution, args, kwargs):
        before, _local.execution = getattr(_local, "execution", None), execution
        try:
            return function(*args, **kwargs)
        finally:
            _local.execution = before

    def inheriting_submit(self, fn, /, *args, **kwargs):
        return submit(self, _adopt, fn, current(), args, kwargs)

    def inheriting_start_new(function, args, kwargs=None):
        return start_new(_adopt, (function, current(), args, kwargs or {}))

    threading.Thread.start = inheriting_start
    ThreadPoolExecutor.submit = inheriting_submit
    _thread.start_new_thread = _thread.start_new = inheriting_start_new
