"""Executions and the kernel that runs them: who is alive, what is asked of it, what is credited to whom."""

import collections
import os
import re
import signal
import time

import capture
import children
import frames
import processes
import snapshot
from replies import checked, place_blobs, sentence

# A first cell that uses one of these is as fast after waiting for the zygote as by importing them itself.
_NEEDS_STACK = re.compile(r"\b(numpy|pandas|matplotlib|pyplot|seaborn|plotly|polars|scipy|sklearn|statsmodels)\b")
_DISPLAYS = ("display_data", "execute_result", "update_display_data", "clear_output")
# Ended executions whose pipes are still read.
MAX_LINGERING = 64
MAX_ZYGOTE_FAILURES = 5
# A kernel that has closed its channel may be ending by itself: it is killed only after so long.
EXIT_SECONDS = 3
# Between a kernel's kill and its zygote's, which has not told of its end.
REPORT_SECONDS = 4
# A fork takes milliseconds; a zygote that takes so long does not work any more.
START_SECONDS = 20
# Kernels in a row that end before they can serve.
MAX_KERNEL_FAILURES = 5
# Questions that wait for a kernel.
MAX_QUESTIONS = 32


class Executions:
    """Owns zygotes, kernel, and the executions running or lingering."""

    def __init__(self, supervisor, folder):
        self._supervisor = supervisor
        self._folder = folder
        self._zygotes = []
        # Those that were let go, until they have ended.
        self._retired = []
        self._zygote_failures = 0
        self._kernel = None
        self._kernel_failures = 0
        self._running = None
        self._pending = None
        self._restarts = []
        # Questions to the kernel, by id, and those that came while there was none.
        self._asked = {}
        self._questions = []
        self._lingering = collections.deque()
        self._why = "start"
        self._oom = processes.OomCounter()
        self.snapshot = snapshot.Snapshot(supervisor.workdir)
        self.requests = {
            "execute_request": self._execute,
            "interrupt_request": self._interrupt,
            "restart_request": self._restart,
            "kill_request": self._kill,
            "complete_request": self._ask,
            "inspect_request": self._ask,
            "variables_request": self._ask,
        }

    # ── zygotes ────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self):
        """Forks the zygotes; a kernel follows when one is ready."""
        private = [*self._supervisor.private_fds, *filter(None, [self._oom.fileno()])]
        base, data = children.start_zygotes(private, self._supervisor.workdir, self._folder)
        self._zygotes = [base, data]
        for zygote in self._zygotes:
            self._supervisor.loop.watch(zygote.fd, lambda zygote=zygote: self._read_zygote(zygote))

    def data_zygote(self):
        """The zygote that has the data stack, once it is ready."""
        return next((zygote for zygote in self._zygotes if zygote.name == "data" and zygote.ready), None)

    def _read_zygote(self, zygote):
        messages, alive = zygote.read()
        for message, _size in messages:
            if "ready" in message:
                zygote.ready, zygote.pid = True, message.get("pid")
                zygote.missing = message.get("missing") or []
                self._zygote_failures = 0
                self._retire_base()
                self._ensure_kernel()
                self._supervisor.profiles.begin()
            elif "failed" in message:
                self._supervisor.fail(f"IPython cannot be loaded in the sandbox: {message['failed']}")
            elif "forked" in message:
                peer = zygote.forking.pop(message["forked"], None)
                if peer is not None:
                    peer.pid = message["pid"]
                    zygote.children[peer.pid] = peer
                    if peer.doomed:
                        peer.kill()
            elif "fork_failed" in message:
                peer = zygote.forking.pop(message["fork_failed"], None)
                if peer is not None:
                    self._fork_failed(peer, str(message.get("error")))
            elif "exited" in message:
                peer = zygote.children.pop(message["exited"], None)
                if peer is not None:
                    self._child_ended(peer, message["status"])
        if not alive and zygote in self._zygotes:
            self._zygote_ended(zygote)

    def _fork_failed(self, peer, reason):
        if peer is not self._kernel:
            self._supervisor.profiles.on_exit(peer, signal.SIGKILL)
            return
        self._drop_kernel()
        waiting, self._questions = self._questions, []
        if self._pending is not None:
            waiting.append(self._pending)
            self._pending = None
        for request in waiting:
            self._supervisor.refuse(request, f"no kernel could be started: {reason}", "KernelDied")

    def _retire_base(self):
        """Lets the first zygote go when the second serves and no kernel of the first lives."""
        base = next((zygote for zygote in self._zygotes if zygote.name == "base"), None)
        if base is not None and self.data_zygote() and not base.children and not base.forking:
            self._zygotes.remove(base)
            self._retired.append(base)
            self._supervisor.loop.forget(base.fd)
            base.close()

    def _zygote_ended(self, zygote):
        # Killed by user code, or by the system for memory: both are replaced, and the kernel with them.
        self._zygotes.remove(zygote)
        self._supervisor.loop.forget(zygote.fd)
        zygote.close()
        for peer in [*zygote.children.values(), *zygote.forking.values()]:
            self._end_with_zygote(peer)
        if zygote.name == "base" and self.data_zygote():
            return
        self._zygote_failures += 1
        if self._zygote_failures > MAX_ZYGOTE_FAILURES:
            self._supervisor.fail("the process that starts kernels ends again and again")
        for other in self._zygotes:
            self._supervisor.loop.forget(other.fd)
            for peer in [*other.children.values(), *other.forking.values()]:
                self._end_with_zygote(peer)
            other.close()
        self._zygotes = []
        processes.kill_orphans(keep=())
        self.start()

    def _end_with_zygote(self, peer):
        # How it ended, only its zygote could have told.
        if peer is self._kernel:
            peer.cause = peer.cause or "zygote"
        peer.kill()
        self._child_ended(peer, signal.SIGKILL)

    def on_exit(self, pid, status):
        """A direct child has ended: a zygote, which its socket tells too, or an orphan of user code."""
        self._retired = [zygote for zygote in self._retired if zygote.pid != pid]
        for zygote in self._zygotes:
            if zygote.pid == pid:
                self._zygote_ended(zygote)
                return

    # ── kernel ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _ensure_kernel(self):
        if self._kernel is not None:
            return
        zygote = self.data_zygote()
        if zygote is None:
            code = self._pending["content"].get("code", "") if self._pending else None
            ready = next((zygote for zygote in self._zygotes if zygote.ready), None)
            if ready is None or code is None or _NEEDS_STACK.search(code):
                return
            zygote = ready
        snapshot.keep_usable(self._supervisor.workdir)
        self._kernel = zygote.fork(children.Kernel, {"role": "kernel"})
        if self._kernel is not None:
            kernel = self._kernel
            kernel.deadline = time.monotonic() + START_SECONDS
            self._supervisor.loop.watch(kernel.fd, lambda: self._read_kernel(kernel), restable=True)

    def _read_kernel(self, kernel):
        messages, alive = kernel.read()
        for message, size in messages:
            kind, content = message.get("type"), message.get("content")
            if kind == "hello" and not kernel.ready and not kernel.doomed:
                self._kernel_ready(message)
            elif kind == "reply" and isinstance(content, dict):
                self._reply(message.get("id"), content)
            elif kind in _DISPLAYS and isinstance(content, dict):
                self._display(kind, message, content, size)
                # The kernel waits, so that what it prints next comes after the display.
                if isinstance(message.get("wait"), int):
                    self._tell(kernel, {"type": "shown", "count": message["wait"]})
        if not alive:
            self._channel_closed(kernel)

    def _tell(self, kernel, message, fds=()):
        if not kernel.send(message, fds):
            self._channel_closed(kernel)

    def _channel_closed(self, kernel):
        """Whatever it has become, it is no kernel any more: it is ended, unless it ends by itself.

        The channel of a process that exits, or executes another program, closes before its end can be told. Killed
        here and now, it would seem to have died of that.
        """
        self._supervisor.loop.forget(kernel.fd)
        if kernel.broken:
            self._kill_kernel(kernel, "protocol")
        elif not kernel.closed and not kernel.doomed:
            kernel.deadline = time.monotonic() + EXIT_SECONDS
            kernel.zygote.resume()
        kernel.closed = True

    def _kernel_ready(self, hello):
        kernel = self._kernel
        kernel.ready = True
        kernel.deadline = None
        self._kernel_failures = 0
        loaded = [str(name)[:50] for name in hello.get("loaded") or []][:20]
        why, self._why = self._why, "start"
        zygote = kernel.zygote
        content = {"cause": why, "loaded": loaded, "missing": zygote.missing, "pid": kernel.pid}
        self._supervisor.event("kernel_ready", content)
        for header in self._restarts:
            self._supervisor.reply(header, "restart_reply", {"status": "ok"})
        self._restarts = []
        questions, self._questions = self._questions, []
        for request in questions:
            self._put_question(request)
        if self._pending is not None:
            request, self._pending = self._pending, None
            self._begin(request)

    def _child_ended(self, peer, status):
        if peer is self._kernel:
            self._kernel_ended(status)
        elif isinstance(peer, children.Worker):
            self._supervisor.profiles.on_exit(peer, status)
        self._retire_base()

    def _kernel_ended(self, status):
        kernel = self._kernel
        kernel.idle = False
        while not kernel.idle:
            self._read_kernel(kernel)
        cause = self._cause(kernel, status)
        if not kernel.ready and not kernel.doomed:
            self._kernel_failures += 1
            if self._kernel_failures > MAX_KERNEL_FAILURES:
                self._supervisor.fail(f"no kernel can be started: {sentence(cause)}")
        self._drop_kernel()
        keep = {zygote.pid for zygote in self._zygotes}
        if not processes.kill_orphans(keep):
            self._supervisor.fail("its processes multiply faster than they can be ended")
        running, self._running = self._running, None
        parent = None
        if running is not None:
            parent = running.parent
            self._finish(running, {"status": "error", "ename": "KernelDied", "evalue": sentence(cause)}, cause)
        for each in self._lingering:
            self._close(each)
        self._lingering.clear()
        for header, kind in self._asked.values():
            content = {"status": "error", "ename": "KernelDied", "evalue": sentence(cause)}
            self._supervisor.reply(header, kind, content)
        self._asked.clear()
        self._supervisor.event("kernel_died", {"cause": cause, "loaded": kernel.loaded}, parent)
        self._why = "restart" if cause["kind"] == "restart" else "died"
        self._ensure_kernel()

    def _cause(self, kernel, status):
        cause = processes.describe_end(status)
        if kernel.cause is not None:
            return {**cause, "kind": kernel.cause}
        running = self._running
        if cause.get("signal") == signal.SIGKILL and running is not None and running.oom_kills is not None:
            now = self._oom.read()
            if now is not None and now > running.oom_kills:
                return {**cause, "kind": "oom"}
        return cause

    def _drop_kernel(self):
        if self._kernel is not None:
            self._supervisor.loop.forget(self._kernel.fd)
            self._kernel.close()
            self._kernel = None

    def _kill_kernel(self, kernel, cause):
        if kernel is not None and not kernel.doomed:
            kernel.cause = cause
            kernel.deadline = time.monotonic() + REPORT_SECONDS
            kernel.kill()
            kernel.zygote.resume()

    def _overdue(self, kernel):
        """The kernel should have ended by now."""
        kernel.deadline = None
        if kernel.ready and not kernel.doomed:
            self._kill_kernel(kernel, "closed")
        else:
            # Its zygote does not do its work any more; the end of that is told by its own channel.
            kernel.zygote.kill()

    def kill_all(self):
        """Ends everything below this process; the last act."""
        for zygote in self._zygotes:
            for peer in [*zygote.children.values(), *zygote.forking.values()]:
                peer.kill()
        for zygote in self._zygotes:
            if zygote.pid:
                processes.kill_group(zygote.pid)
        processes.kill_orphans(keep=())

    # ── executions ─────────────────────────────────────────────────────────────────────────────────────────────

    def _execute(self, request):
        if not isinstance(request["content"].get("code"), str):
            self._supervisor.refuse(request, "no code given")
        elif self._running is not None or self._pending is not None:
            self._supervisor.refuse(request, "another execution is under way", "KernelBusy")
        elif self._kernel is not None and self._kernel.serves:
            self._begin(request)
        else:
            self._pending = request
            self._ensure_kernel()

    def _begin(self, request):
        try:
            running = capture.Running(request, self._supervisor.output.send)
        except OSError as error:
            self._supervisor.refuse(request, f"no pipes could be made for it: {error.strerror}", "KernelDied")
            return
        running.oom_kills = self._oom.read()
        running.background = self._kernel.spawned and processes.has_background(self._kernel.pid, self._own_pids())
        self.snapshot.begin()
        content = request["content"]
        order = {"type": "execute", "id": running.id, "code": content["code"], "silent": content.get("silent") is True}
        self._running = running
        self._tell(self._kernel, order, [stream.write_fd for stream in running.streams])
        for stream in running.streams:
            stream.give()
            self._supervisor.loop.watch(stream.read_fd, lambda stream=stream: self._read_stream(running, stream), restable=True)
        self._supervisor.event("status", {"execution_state": "busy"}, running.parent)

    def _own_pids(self):
        """Processes below this one that are no work of user code."""
        zygotes = (*self._zygotes, *self._retired)
        return {peer.pid for zygote in zygotes for peer in (zygote, *zygote.children.values())}

    def _read_stream(self, running, stream):
        alive = stream.read_late() if running.finished else stream.read()
        if not alive:
            self._supervisor.loop.forget(stream.read_fd)
            if running.finished:
                stream.close()

    def _display(self, kind, message, content, size):
        metadata, identity = {}, message.get("id")
        running = self._running
        if running is None or identity != running.id:
            running = next((each for each in self._lingering if each.id == identity), None)
            if running is None:
                return
            metadata = {"late": True}
        else:
            # What was printed before the display comes before it.
            for stream in running.streams:
                stream.drain()
                stream.send()
        blobs = place_blobs(content, message.get("mimes"), message["blobs"])
        if running.admits(size + sum(len(blob) * 4 // 3 for blob in blobs.values())):
            self._supervisor.output.send(frames.envelope(kind, content, running.parent, metadata=metadata), blobs)

    def _reply(self, identity, content):
        running = self._running
        if running is not None and identity == running.id:
            self._running = None
            self._kernel.spawned = content.get("spawned") is True
            running.background = running.background or content.get("background") is True
            self._finish(running, content)
            return
        asked = self._asked.pop(identity, None) if isinstance(identity, str) else None
        if asked is not None:
            self._supervisor.reply(*asked, content)

    def _finish(self, running, content, cause=None):
        for stream in running.streams:
            stream.drain()
        reply = checked(content)
        if cause is not None:
            reply["cause"] = cause
        reply["streams"] = running.finish()
        reply["files"] = self.snapshot.changes(content.get("mapped") is True)
        reply["files"]["shared"] = running.background
        reply["interrupted"] = running.interrupted
        reply["dropped_displays"] = running.dropped
        if running.oom_kills is not None:
            reply["oom_kills"] = (self._oom.read() or 0) - running.oom_kills
        reply["elapsed_ms"] = (time.monotonic() - running.started) * 1000
        self._supervisor.reply(running.parent, "execute_reply", reply)
        self._lingering.append(running)
        if len(self._lingering) > MAX_LINGERING:
            self._close(self._lingering.popleft())

    def _close(self, running):
        for stream in running.streams:
            if stream.read_fd is not None:
                self._supervisor.loop.forget(stream.read_fd)
        running.close()

    def due(self):
        """When the next thing has to be done without an event; what is due already is done now."""
        now = time.monotonic()
        kernel = self._kernel
        if kernel is not None and kernel.deadline is not None and kernel.deadline <= now:
            self._overdue(kernel)
        streams = self._running.streams if self._running is not None else ()
        for stream in streams:
            if stream.due is not None and stream.due <= now:
                stream.send()
        times = [stream.due for stream in streams]
        if kernel is not None:
            times.append(kernel.deadline)
        return min((each for each in times if each is not None), default=None)

    # ── other requests ─────────────────────────────────────────────────────────────────────────────────────────

    def _interrupt(self, request):
        wanted = request["content"].get("msg_id")
        running, kernel = self._running, self._kernel
        found = running is not None and wanted in (None, running.id)
        if found:
            running.interrupted = True
            try:
                os.killpg(kernel.pid, signal.SIGINT)
            except (OSError, TypeError):
                found = False
        elif self._pending is not None and wanted in (None, self._pending["header"]["msg_id"]):
            pending, self._pending = self._pending, None
            self._supervisor.refuse(pending, "interrupted before it began", "Interrupted")
            found = True
        self._supervisor.reply(request["header"], "interrupt_reply", {"status": "ok", "interrupted": found})

    def _restart(self, request):
        self._restarts.append(request["header"])
        self._kill_kernel(self._kernel, "restart")
        self._ensure_kernel()

    def _kill(self, request):
        cause, wanted = request["content"].get("cause"), request["content"].get("msg_id")
        # Meant for one execution, it must not hit the next.
        if wanted is None or (self._running is not None and self._running.id == wanted):
            self._kill_kernel(self._kernel, cause if cause in ("timeout", "oom", "cancelled") else "killed")
        self._supervisor.reply(request["header"], "kill_reply", {"status": "ok"})

    def _ask(self, request):
        if self._running is not None or self._pending is not None or len(self._questions) >= MAX_QUESTIONS:
            self._supervisor.refuse(request, "the kernel is busy", "KernelBusy")
        elif self._kernel is not None and self._kernel.serves:
            self._put_question(request)
        else:
            # The next kernel answers: one that has just died or is not there yet is no busy one.
            self._questions.append(request)
            self._ensure_kernel()

    def _put_question(self, request):
        header, content = request["header"], request["content"]
        kind = header["msg_type"].removesuffix("_request")
        order = {"type": kind, "id": header["msg_id"]}
        if kind == "variables":
            name = content.get("name")
            order["name"] = name if isinstance(name, str) else None
        else:
            code, position = content.get("code"), content.get("cursor_pos")
            if not isinstance(code, str) or not isinstance(position, int) or not 0 <= position <= len(code):
                self._supervisor.refuse(request, "code and cursor_pos do not fit")
                return
            order.update(code=code, cursor_pos=position, detail_level=1 if content.get("detail_level") else 0)
        self._asked[header["msg_id"]] = (header, f"{kind}_reply")
        self._tell(self._kernel, order)

    def state(self):
        """What a ping tells."""
        kernel = self._kernel
        ready = kernel is not None and kernel.serves
        state = "busy" if self._running is not None else "idle" if ready else "starting"
        return {"kernel_state": state, "data_ready": self.data_zygote() is not None}
