"""The kernel: a forked child that runs cells in IPython and answers over its channel.

Nothing here is trusted by the supervisor, since user code runs in this very process.
"""

import os
import signal
import sys
import threading
import time
import traceback

import hooks
import processes
import streams
import tracebacks
import variables
from channel import Channel

# The kernel's own modules, taken out of the way of a user's modules of the same names.
_OWN = ("channel", "frames", "hooks", "kernel", "processes", "shell", "streams", "tracebacks", "variables", "zygote")


class Kernel:
    """Runs one request after another until the supervisor closes the channel."""

    def __init__(self, sock, shell, workdir):
        self._channel = Channel(sock)
        self._shell = shell
        self._workdir = workdir
        self._running = False
        self._execution = None
        self._published = 0
        self._mapped = False
        self._spawned = False
        self._capture = streams.Capture()
        self._tracker = variables.Tracker(shell)
        self._requests = {
            "execute": self._execute,
            "complete": self._complete,
            "inspect": self._inspect,
            "variables": self._variables,
        }
        shell.attach(self._publish)
        sys.addaudithook(self._audit)
        # A process made by fork alone must not be able to speak for the kernel.
        os.register_at_fork(after_in_child=self._channel.close)

    def serve(self):
        """The main loop."""
        signal.signal(signal.SIGINT, self._on_interrupt)
        loaded = [name for name in ("numpy", "pandas", "matplotlib") if name in sys.modules]
        self._channel.send({"type": "hello", "pid": os.getpid(), "loaded": loaded})
        while True:
            message = self._channel.receive()
            if message is None:
                os._exit(0)
            answer = self._requests.get(message.get("type"))
            if answer is not None:
                self._answer(answer, message)

    def _answer(self, answer, message):
        try:
            content = answer(message)
        except BaseException as error:  # A broken namespace must not end the kernel.
            content = {"status": "error", "exit_code": 1, **_plain_error(error)}
        reply = {"type": "reply", "id": message.get("id"), "content": content}
        try:
            sent = self._channel.send(reply)
        except (TypeError, ValueError):
            sent = False
        if not sent:
            content = {"status": "error", "exit_code": 1, **_plain_error(ValueError("the reply is too large"))}
            self._channel.send({**reply, "content": content})
        # Only now: the supervisor, woken by every pipe that closes, has the reply already.
        self._capture.let_go()

    def _on_interrupt(self, *_):
        # Between cells there is nothing to interrupt, and a late signal must not reach the next one.
        if self._running:
            raise KeyboardInterrupt

    def _audit(self, event, args):
        if event == "mmap.__new__":
            self._mapped = True
        elif event in streams.STARTS_PROCESS:
            self._spawned = True
            self._capture.before_process()

    def _publish(self, kind, content, binary=None):
        execution = streams.current()
        if execution is None:
            return
        # After a result the cell ends, and its reply waits for the text that is left.
        ordered = kind != "execute_result" and execution is self._execution
        ordered = ordered and threading.current_thread() is threading.main_thread()
        execution.flush()
        processes.flush_c_stdio()
        self._published += ordered
        message = {"type": kind, "id": execution.parent, "content": content, "wait": self._published if ordered else None}
        if binary:
            message["mimes"] = list(binary)
        try:
            sent = self._channel.send(message, list(binary.values()) if binary else ())
        except (TypeError, ValueError, RecursionError) as error:
            sys.stderr.write(f"a display could not be sent: {error}\n")
            return
        except OSError:
            # A process that a cell forked has no channel.
            return
        if not sent:
            sys.stderr.write("a display was too large to be sent\n")
        elif ordered:
            # Text and displays go separate ways: what is printed next must not overtake this display.
            while (answer := self._channel.receive()) is not None:
                if answer.get("type") == "shown" and answer.get("count") == self._published:
                    break

    def _execute(self, message):
        shell = self._shell
        background = self._capture.has_background()
        self._execution = self._capture.begin(message["id"], self._channel.take_fds(2))
        shell.failure = None
        error = None
        count = shell.execution_count
        begun = time.perf_counter()
        try:
            self._running = True
            result = shell.run_cell(message["code"], store_history=not message.get("silent"), silent=False)
            error = result.error_before_exec or result.error_in_exec
            if "matplotlib._pylab_helpers" in sys.modules:
                self._show_figures()
            self._capture.flush()
            self._running = False
        except BaseException as late:  # An interrupt that comes after the cell's own code.
            self._running = False
            # IPython may stumble over the error that it wanted to show.
            shown = shell.failure[0] if shell.failure and not isinstance(late, KeyboardInterrupt) else None
            error = error or shown or late
        finally:
            self._running = False
            signal.signal(signal.SIGINT, self._on_interrupt)
        duration = time.perf_counter() - begun
        reply = {"status": "ok", "exit_code": 0, "execution_count": count, "duration_ms": duration * 1000}
        if error is not None:
            reply.update(self._failure(error))
        reply["variables"] = self._tracker.changes()
        reply["mapped"], self._mapped = self._mapped, False
        reply["spawned"], reply["background"] = self._spawned, background
        shell.failure = None
        for names in (shell.user_ns, shell.user_ns_hidden):
            # IPython keeps the code of every cell there, and each one more is looked at after every cell.
            names.pop(f"_i{count - shell.cache_size}", None)
        history = getattr(shell.history_manager, "outputs", None)
        if history:
            history.clear()
        self._execution = None
        self._capture.end()
        return reply

    def _show_figures(self):
        import codeinterp_inline

        try:
            codeinterp_inline.show_all()
        except Exception as error:
            sys.stderr.write(f"A figure could not be drawn: {type(error).__name__}: {error}\n")

    def _failure(self, error):
        if isinstance(error, SystemExit):
            return _exit(error)
        lines = []
        if self._shell.failure is not None and self._shell.failure[0] is error:
            lines = self._shell.failure[1]
        if not lines:
            lines = traceback.format_exception(type(error), error, error.__traceback__)
        reply = {"status": "error", "exit_code": 1, **tracebacks.report(self._shell, error, lines, self._workdir)}
        if isinstance(error, ModuleNotFoundError):
            reply["installed"] = _installed()
        return reply

    def _complete(self, message):
        code, position = message["code"], message["cursor_pos"]
        text, matches = self._shell.complete("", code, position)
        return {
            "status": "ok",
            "matches": [str(match)[:500] for match in matches[:500]],
            "cursor_start": max(position - len(text), 0),
            "cursor_end": position,
            "metadata": {},
        }

    def _inspect(self, message):
        from IPython.utils.tokenutil import token_at_cursor

        name = token_at_cursor(message["code"], message["cursor_pos"])
        try:
            data = self._shell.object_inspect_mime(name, detail_level=int(message.get("detail_level") or 0))
        except KeyError:
            return {"status": "ok", "found": False, "data": {}, "metadata": {}}
        data = {mime: tracebacks.clip(str(text), 1 << 16) for mime, text in data.items()}
        return {"status": "ok", "found": True, "data": data, "metadata": {}}

    def _variables(self, message):
        return {"status": "ok", "variables": variables.describe(self._shell, message.get("name"))}


def _exit(error):
    code = error.code
    if code is None:
        code = 0
    elif not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        code = 1
    code = int(code)
    if code == 0:
        return {"status": "ok", "exit_code": 0}
    try:
        value = str(code)
    except ValueError:  # It has more digits than Python writes out.
        value = hex(code)[:100]
    # Negative codes have meanings of their own to the host, and larger ones no place: those are told as the system does.
    if not 0 < code < 1 << 31:
        code = code & 0xFF or 1
    return {
        "status": "error",
        "exit_code": code,
        "ename": "SystemExit",
        "evalue": value,
        "traceback": [f"SystemExit: {value}"],
        "traceback_user": f"SystemExit: {value}\n",
    }


def _plain_error(error):
    text = f"{type(error).__name__}: {error}"[:2000]
    return {"ename": type(error).__name__, "evalue": str(error)[:2000], "traceback": [text], "traceback_user": text}


def _installed():
    """What can be imported instead, for whoever tried a module that is not here."""
    from importlib.metadata import distributions

    return sorted({str(found.metadata["Name"]) for found in distributions() if found.metadata["Name"]})[:300]


def main(sock, shell, workdir, folder):
    """Turns the calling process, fresh from a fork, into a kernel; does not return."""
    os.setsid()
    processes.prefer_as_victim()
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN if number == signal.SIGPIPE else signal.SIG_DFL)
    os.chdir(workdir)
    sys.path[:] = ["", *(entry for entry in sys.path if entry not in ("", folder))]
    sys.argv = [""]
    for name in _OWN:
        sys.modules.pop(name, None)
    hooks_installed = any(isinstance(finder, hooks._Finder) for finder in sys.meta_path)
    if not hooks_installed:
        hooks.install()
    Kernel(sock, shell, workdir).serve()
