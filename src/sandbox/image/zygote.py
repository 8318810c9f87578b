"""The zygote: imports what every kernel needs once, and forks kernels and workers from it.

There are two. The first has IPython only and can serve a cell that comes early; it forks the second, which goes
on to import the data stack and then takes over. Both stay single-threaded, so that forking them is safe.
"""

import gc
import importlib
import os
import select
import shutil
import signal
import sys
import time

import processes
from channel import Channel

# Safe to fork. Libraries with thread pools of their own (polars, for one) are imported by the kernel itself.
STACK = ("numpy", "pandas", "matplotlib.pyplot")


def start(base, data, workdir, folder):
    """Turns the calling process, fresh from a fork, into the first zygote; does not return."""
    try:
        # While it imports it cannot see that its channel has closed.
        processes.die_with_parent()
        begun = time.monotonic()
        # Imports make next to no garbage, and looking for it takes a tenth of their time.
        gc.disable()
        channel = Channel(base)
        try:
            import hooks
            import kernel
            import shell

            hooks.install()
            made = shell.make()
        except BaseException as error:
            channel.send({"failed": f"{type(error).__name__}: {error}"})
            os._exit(3)
        channel.send({"ready": "base", "pid": os.getpid(), "ms": (time.monotonic() - begun) * 1000, "missing": []})
        if os.fork() == 0:
            processes.die_with_parent()
            base.close()
            channel = Channel(data)
            missing = _import_stack()
            gc.collect()
            # From now on its channel tells, and its parent may retire.
            processes.die_with_parent(False)
            channel.send({"ready": "data", "pid": os.getpid(), "missing": missing, "ms": (time.monotonic() - begun) * 1000})
        else:
            data.close()
        # Shared pages stay shared only while the collector leaves these objects alone.
        gc.freeze()
        gc.enable()
        _Zygote(channel, lambda sock: kernel.main(sock, made, workdir, folder), folder).serve()
    finally:
        os._exit(1)


def _take_font_cache():
    """Copies matplotlib's list of fonts, made with the image, to where matplotlib looks: scanning fonts takes seconds."""
    source, target = os.environ.get("CODEINTERP_FONT_CACHE"), os.environ.get("MPLCONFIGDIR")
    if source and target and not os.path.exists(target):
        try:
            shutil.copytree(source, target)
        except OSError:
            # matplotlib scans by itself then.
            pass


def _import_stack():
    _take_font_cache()
    missing = []
    for name in STACK:
        try:
            importlib.import_module(name)
        except Exception as error:
            missing.append(f"{name}: {type(error).__name__}: {error}"[:300])
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        # Showing a table imports a good deal more.
        table = pandas.DataFrame({"a": [1.5]})
        str(table), table._repr_html_()
    return missing


class _Zygote:
    """Waits for orders to fork, and reports the ends of what it forked."""

    def __init__(self, channel, run_kernel, folder):
        self._channel = channel
        self._run_kernel = run_kernel
        self._folder = folder
        self._children = set()

    def serve(self):
        wake, signalled = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        poll.register(self._channel.fileno(), select.POLLIN)
        while True:
            for fd, _event in poll.poll():
                if fd == wake:
                    os.read(wake, 4096)
                elif not self._obey(wake, signalled):
                    self._end()
            self._reap()

    def _obey(self, *own):
        order = self._channel.receive()
        if order is None:
            return False
        (fd,) = self._channel.take_fds(1)
        try:
            pid = os.fork()
        except OSError as error:
            os.close(fd)
            self._channel.send({"fork_failed": order["token"], "error": str(error)})
            return True
        if pid == 0:
            self._become(order, fd, own)
        os.close(fd)
        self._children.add(pid)
        self._channel.send({"forked": order["token"], "pid": pid})
        return True

    def _become(self, order, fd, own):
        import socket

        try:
            signal.set_wakeup_fd(-1)
            for each in own:
                os.close(each)
            self._channel.close()
            sock = socket.socket(fileno=fd)
            if order["role"] == "kernel":
                self._run_kernel(sock)
            else:
                import worker

                worker.main(sock, order, self._folder)
        except BaseException:
            import traceback

            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(1)

    def _reap(self):
        while self._children:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._children:
                self._children.discard(pid)
                self._channel.send({"exited": pid, "status": status})

    def _end(self):
        for pid in self._children:
            processes.kill_group(pid)
        os._exit(0)
