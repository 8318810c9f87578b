"""Profile requests: each is done by a worker forked from the zygote, apart from the kernel."""

import collections
import os
import signal
import stat

import children
import files

MAX_WORKERS = 1
MAX_WAITING = 1000


class Profiles:
    """Workers under way and requests that wait for one."""

    def __init__(self, supervisor):
        self._supervisor = supervisor
        self._waiting = collections.deque()
        self._workers = []
        self.requests = {"profile_request": self._ask, "cancel_request": self._cancel}

    def _ask(self, request):
        content = request["content"]
        try:
            *folders, name = files.parts(content.get("path"))
            folder = files.open_folder(self._supervisor.workdir, folders)
            try:
                if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                    raise files.FileError("it is not a regular file")
            finally:
                os.close(folder)
            if not isinstance(content.get("options"), dict) or len(self._waiting) >= MAX_WAITING:
                raise files.FileError("no options given, or too many profiles at once")
        except files.FileError as error:
            self._supervisor.refuse(request, str(error), "FileError")
            return
        except OSError as error:
            self._supervisor.refuse(request, error.strerror, "FileError")
            return
        self._waiting.append(request)
        self.begin()

    def begin(self):
        """Starts what can be started now; called again when a worker ends or the zygote is ready."""
        zygote = self._supervisor.executions.data_zygote()
        while zygote is not None and self._waiting and len(self._workers) < MAX_WORKERS:
            request = self._waiting.popleft()
            order = {
                "role": "worker",
                "id": request["header"]["msg_id"],
                "workdir": self._supervisor.workdir,
                "path": request["content"]["path"],
                "options": request["content"]["options"],
                "memory": self._supervisor.memory,
            }
            worker = zygote.fork(children.Worker, order)
            if worker is None:
                self._supervisor.refuse(request, "no process could be started for the profile", "KernelDied")
                continue
            worker.parent = request["header"]
            self._workers.append(worker)
            self._supervisor.loop.watch(worker.fd, lambda worker=worker: self._read(worker), restable=True)

    def _read(self, worker):
        messages, alive = worker.read()
        for message, _size in messages:
            content = message.get("content")
            if message.get("id") != worker.parent["msg_id"] or not isinstance(content, dict) or worker.answered:
                continue
            if message.get("type") == "progress":
                self._supervisor.event("profile_progress", content, worker.parent)
            elif message.get("type") == "reply":
                worker.answered = True
                self._supervisor.reply(worker.parent, "profile_reply", content)
        if not alive:
            # Its end is answered when the system has told the cause.
            self._supervisor.loop.forget(worker.fd)
            worker.kill()

    def on_exit(self, worker, status):
        """A worker has ended; what it said last may still be unread."""
        if worker not in self._workers:
            return
        worker.idle = False
        while not worker.idle:
            self._read(worker)
        self._workers.remove(worker)
        self._supervisor.loop.forget(worker.fd)
        worker.close()
        if not worker.answered:
            killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
            text = "the profile was ended by the system"
            if killed:
                text += "; most likely it needs more memory than the sandbox has"
            content = {"status": "error", "ename": "OutOfMemory" if killed else "KernelDied", "evalue": text}
            self._supervisor.reply(worker.parent, "profile_reply", content)
        self.begin()

    def _cancel(self, request):
        target = request["content"].get("msg_id")
        found = False
        for waiting in [each for each in self._waiting if each["header"]["msg_id"] == target]:
            self._waiting.remove(waiting)
            self._supervisor.refuse(waiting, "cancelled", "Cancelled")
            found = True
        for worker in [each for each in self._workers if each.parent["msg_id"] == target]:
            if not worker.answered:
                content = {"status": "error", "ename": "Cancelled", "evalue": "cancelled"}
                self._supervisor.reply(worker.parent, "profile_reply", content)
            worker.answered = found = True
            worker.kill()
        self._supervisor.reply(request["header"], "cancel_reply", {"status": "ok", "found": found})
