"""What the supervisor asks of Linux: protection of its processes, descendants, out-of-memory counters."""

import ctypes
import os
import signal
import time

# Processes that are not all dead after so long are multiplying.
ORPHANS_SECONDS = 3

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


def close_to_others():
    """Makes this process's /proc entries unreadable to others of the same user.

    Otherwise user code could write frames of its own into `/proc/PPID/fd/N`.
    """
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def adopt_orphans():
    """Makes this process the parent of descendants whose own parents have died, so that it can end them."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def prefer_as_victim():
    """Asks the kernel to choose this process, not the supervisor, when memory runs out."""
    # The file belongs to root while the process is closed to others.
    _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass
    close_to_others()


def die_with_parent(wanted=True):
    """Ends this process when the thread that forked it ends, or no longer does."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL if wanted else 0, 0, 0, 0)


def flush_c_stdio():
    """Writes out what C code has left in the buffers of libc's streams."""
    _libc.fflush(None)


def _children():
    me = os.getpid()
    try:
        with open(f"/proc/self/task/{me}/children") as file:
            return [int(pid) for pid in file.read().split()]
    except (OSError, ValueError):
        return _children_by_scan(me)


def _children_by_scan(parent):
    return [pid for pid, (its_parent, _state) in _all().items() if its_parent == parent]


def _all():
    """`{pid: (parent, state)}` of every process that can be seen; a state is the letter of proc(5)."""
    found = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return found
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # The command may hold spaces and parentheses; what follows the last one is plain.
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if len(fields) > 1:
            found[int(name)] = int(fields[1]), fields[0].decode("ascii")
    return found


def has_background(kernel, own):
    """Whether processes live that code in the kernel has started; ended ones that nobody waits for do not count.

    Those whose parents have died are children of this process, as are those in `own`, which are no work of user code.
    """
    processes, me = _all(), os.getpid()
    family = {kernel} | {pid for pid, (parent, _state) in processes.items() if parent == me and pid not in own}
    # Parents may be listed after their children.
    while True:
        grown = family | {pid for pid, (parent, _state) in processes.items() if parent in family}
        if grown == family:
            break
        family = grown
    return any(processes[pid][1] not in "ZX" for pid in family - {kernel} if pid in processes)


def kill_group(pid):
    """Kills a kernel with everything that stayed in its process group."""
    for send in (os.killpg, os.kill):
        try:
            send(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass


def resume(pid):
    """Lets a stopped process go on; one that runs is not disturbed."""
    try:
        os.kill(pid, signal.SIGCONT)
    except (ProcessLookupError, PermissionError):
        pass


def kill_orphans(keep):
    """Kills every child of this process outside `keep`, until none is left; False where that cannot be reached.

    A killed child's own children come to this process, its subreaper, before it can be waited for, so that each round
    reaches one generation deeper. A process that forks and exits in a loop may be a generation further when its turn
    comes, each time by chance: the rounds are bounded by time against processes that multiply.
    """
    end = time.monotonic() + ORPHANS_SECONDS
    while True:
        orphans = [pid for pid in _children() if pid not in keep]
        if not orphans:
            return True
        for pid in orphans:
            kill_group(pid)
        for pid in orphans:
            try:
                os.waitpid(pid, 0)
            except ChildProcessError:
                pass
        if time.monotonic() > end:
            return False


class OomCounter:
    """How many processes of this cgroup the kernel has killed for memory, as far as it can be read here."""

    def __init__(self):
        self._fd = None
        for path in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
            try:
                self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                break
            except OSError:
                continue

    def read(self):
        """The count, or None where the system does not say."""
        if self._fd is None:
            return None
        try:
            for line in os.pread(self._fd, 4096, 0).splitlines():
                name, _, value = line.partition(b" ")
                if name == b"oom_kill":
                    return int(value)
        except (OSError, ValueError):
            pass
        return None

    def fileno(self):
        """The open counter, or None."""
        return self._fd


def describe_end(status):
    """A wait status as `{"kind": "exit", "exit_code"}` or `{"kind": "signal", "signal", "signal_name"}`."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        return {"kind": "signal", "signal": number, "signal_name": name}
    return {"kind": "exit", "exit_code": os.WEXITSTATUS(status)}
