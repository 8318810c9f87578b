"""The supervisor of a sandbox: joins the host, by frames on its stdin and stdout, with the kernel it forks.

Usage: `python -I supervisor.py [--workdir DIR] [--memory BYTES] [--threads N]`

It runs no user code. At the end of its input it kills everything that it started and ends. Requests are Jupyter
messages: `execute_request`, `interrupt_request`, `complete_request`, `inspect_request`, and of our own
`restart_request`, `kill_request`, `variables_request`, `put_file_request` (then raw chunks and `transfer_end`),
`list_files_request`, `get_file_request`, `profile_request`, `cancel_request`, `ping_request`. Each is answered by
one `*_reply`. Events without a request: `supervisor_ready`, `kernel_ready`, `kernel_died`, `supervisor_failed`.
"""

import importlib.util
import os
import signal
import sys
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)
sys.dont_write_bytecode = True

import frames  # noqa: E402
import processes  # noqa: E402
from executions import Executions  # noqa: E402
from loop import Loop, Output  # noqa: E402
from profiles import Profiles  # noqa: E402
from transfers import Transfers  # noqa: E402

PROTOCOL = 1


class Supervisor:
    """Owns the loop, the way to the host, and hands each request to who answers it."""

    def __init__(self, workdir, memory, protocol_in, protocol_out):
        self.workdir = workdir
        self.memory = memory
        self.loop = Loop()
        self.output = Output(self.loop, protocol_out)
        self._in = protocol_in
        self._decoder = frames.Decoder(frames.MAX_JSON_FROM_HOST, raw=True)
        # Used again for every read: a new megabyte each time costs as much as copying it.
        self._input = bytearray(1 << 20)
        os.set_blocking(protocol_in, False)
        self._wake, signalled = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # As process 1 of a container it would not be ended by a signal that it does not handle.
        signal.signal(signal.SIGTERM, lambda *_: self.end(128 + signal.SIGTERM))
        signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
        self.private_fds = (protocol_in, protocol_out, self._wake, signalled)
        self.transfers = Transfers(self)
        self.executions = Executions(self, FOLDER)
        self.profiles = Profiles(self)
        self._requests = {
            "ping_request": self._ping,
            **self.executions.requests,
            **self.transfers.requests,
            **self.profiles.requests,
        }

    def run(self):
        """Serves until the end of input; does not return."""
        version = ".".join(map(str, sys.version_info[:3]))
        if sys.version_info < (3, 10):
            self.fail(f"the sandbox's Python is {version}, and 3.10 or newer is needed")
        if importlib.util.find_spec("IPython") is None:
            self.fail(f"IPython is not installed in the sandbox's Python ({sys.executable}): the kernel needs it")
        self.event("supervisor_ready", {"protocol": PROTOCOL, "python": version, "workdir": self.workdir})
        self.loop.watch(self._in, self._read)
        self.loop.watch(self._wake, self._reap)
        self.executions.start()
        while True:
            self.loop.turn(self.executions.due())

    def event(self, kind, content, parent=None):
        """Sends a message that answers no request."""
        self.output.send(frames.envelope(kind, content, parent))

    def reply(self, request_header, kind, content):
        """Answers a request."""
        self.output.send(frames.envelope(kind, content, request_header, channel="shell"))

    def refuse(self, request, message, ename="Refused"):
        """Answers a request by a refusal."""
        kind = request["header"]["msg_type"].replace("_request", "_reply")
        self.reply(request["header"], kind, {"status": "error", "refused": True, "ename": ename, "evalue": message})

    def fail(self, message):
        """Says why nothing can run here, and ends."""
        self.event("supervisor_failed", {"evalue": message})
        self.output.flush()
        self.end(3)

    def end(self, code=0):
        """Kills all that was started and ends this process."""
        self.executions.kill_all()
        os._exit(code)

    def _read(self):
        for _ in range(64):
            try:
                count = os.readv(self._in, [self._input])
            except BlockingIOError:
                return
            except OSError:
                count = 0
            if not count:
                self.end()
            try:
                for kind, payload in self._decoder.feed(memoryview(self._input)[:count]):
                    self._take(kind, payload)
            except frames.FrameError as error:
                self.fail(f"the host broke the framing: {error}")

    def _take(self, kind, payload):
        if kind == frames.KIND_RAW:
            self.transfers.chunk(*payload)
            return
        message = frames.parse_json(payload)
        if message is None:
            return
        header, content = message.get("header"), message.get("content")
        if not isinstance(header, dict) or not isinstance(content, dict) or not isinstance(header.get("msg_id"), str):
            return
        if not isinstance(message.get("metadata"), dict):
            message["metadata"] = {}
        answer = self._requests.get(header.get("msg_type"))
        if answer is not None:
            answer(message)
        elif isinstance(header.get("msg_type"), str):
            self.refuse(message, f"unknown request {header['msg_type'][:100]}")

    def _reap(self):
        try:
            os.read(self._wake, 4096)
        except BlockingIOError:
            pass
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.executions.on_exit(pid, status)

    def _ping(self, request):
        self.reply(request["header"], "ping_reply", {"status": "ok", "time": time.time(), **self.executions.state()})


def _arguments(argv):
    values = {"--workdir": "/workspace", "--memory": None, "--threads": None}
    names = iter(argv)
    for name in names:
        if name not in values:
            raise SystemExit(f"supervisor.py: unknown argument {name}")
        values[name] = next(names, None)
    numbers = [int(values[name]) if values[name] else None for name in ("--memory", "--threads")]
    return os.path.abspath(values["--workdir"]), *numbers


def main():
    """Takes the pipe off stdin and stdout, so that nothing else can read or write it, and serves."""
    workdir, memory, threads = _arguments(sys.argv[1:])
    processes.close_to_others()
    processes.adopt_orphans()
    for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    protocol_in, protocol_out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    if threads:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
            os.environ.setdefault(name, str(threads))
    os.makedirs(workdir, exist_ok=True)
    os.chdir(workdir)
    Supervisor(workdir, memory, protocol_in, protocol_out).run()


if __name__ == "__main__":
    main()
