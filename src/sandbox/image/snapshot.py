"""What an execution did to the working directory: a difference by contents."""

import hashlib
import os
import stat
import time

MAX_FILES = 10_000
MAX_REPORTED = 500
MAX_DEPTH = 32
# A larger file is compared by its size and times only.
MAX_HASHED = 256 << 20
# All hashing after one cell together; beyond it times decide.
MAX_HASHED_TOTAL = 1 << 30
# File times advance in ticks of the kernel; a file written within the tick of its last look may have changed since.
_TICK_NS = 20_000_000
PART = ".codeinterp-part-"


class Snapshot:
    """The state of the working directory as last seen."""

    def __init__(self, workdir):
        self._workdir = workdir
        self._files = {}
        # The state at the beginning of the running execution.
        self._begun = {}
        self._skipped = {}
        self._omitted = 0
        self.refresh()

    def refresh(self):
        """Takes the present state as the known one."""
        self.changes()

    def begin(self):
        """An execution begins: what has changed since the last one is not its doing."""
        self._begun, _skipped = self._look_around(mapped=False)

    def note(self, path, info, digest):
        """Takes one file, which was put by the host, as known: its status and the SHA-256 of its contents."""
        self._files[path] = _state(info, digest, time.time_ns())

    def changes(self, mapped=False):
        """Files that are new, changed or gone since the last call, and what was passed over and why.

        `background` names those of them that were so already when the execution began: work that an earlier one left
        running did it. `mapped` says that files were mapped into memory, whose changes leave no trace in the times.
        """
        begun, self._begun = self._begun, {}
        found, skipped = self._look_around(mapped, begun)
        before, self._files = self._files, found
        created = [path for path in found if path not in before]
        changed = [path for path in found if path in before and _differs(before[path], found[path])]
        deleted = [path for path in before if path not in found]
        reasons = [{"path": path, "reason": why} for path, why in skipped.items() if self._skipped.get(path) != why]
        self._skipped = skipped
        reported = created[:MAX_REPORTED], changed[:MAX_REPORTED], deleted[:MAX_REPORTED], reasons[:100]
        kept = sum(map(len, reported))
        omitted = len(created) + len(changed) + len(deleted) + len(reasons) - kept
        background = [path for path in (*created, *changed) if path in begun and not _differs(begun[path], found[path])]
        return {
            "created": [_entry(path, found[path]) for path in reported[0]],
            "changed": [_entry(path, found[path]) for path in reported[1]],
            "deleted": reported[2],
            "skipped": reported[3],
            "background": background[:MAX_REPORTED],
            "omitted": omitted + self._omitted,
        }

    def _look_around(self, mapped, later=()):
        """The files there are, and what is passed over; what is known of a file is taken from `later` first."""
        keep_usable(self._workdir)
        found, skipped, self._omitted = {}, {}, 0
        known = {**self._files, **later} if later else self._files
        self._scan(self._workdir, "", 0, found, skipped, known, [MAX_HASHED_TOTAL], mapped)
        return found, skipped

    def _scan(self, folder, prefix, depth, found, skipped, known, budget, mapped):
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            if prefix:
                skipped[prefix] = f"cannot be read: {error.strerror}"
            return
        for entry in entries:
            if len(found) + len(skipped) >= MAX_FILES:
                self._omitted += 1
                continue
            if entry.name.startswith(PART) or entry.name == "__pycache__":
                continue
            path = prefix + entry.name
            reason = _bad_name(entry.name)
            if reason:
                skipped[path.encode("utf-8", "backslashreplace").decode()] = reason
            elif entry.is_dir(follow_symlinks=False):
                if depth + 1 >= MAX_DEPTH:
                    skipped[path] = "too deep"
                else:
                    self._scan(entry.path, path + "/", depth + 1, found, skipped, known, budget, mapped)
            else:
                seen = self._look(entry.path, known.get(path), skipped, budget, mapped, path)
                if seen is not None:
                    found[path] = seen

    def _look(self, full, known, skipped, budget, mapped, path):
        """`(size, mtime, ctime, inode, looked, hash)` of a regular file."""
        try:
            info = os.lstat(full)
        except OSError:
            return None
        reason = _bad_kind(info)
        if reason:
            skipped[path] = reason
            return None
        same = known is not None and known[:4] == (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)
        # A change time cannot be set back by user code, but it must be older than the last look by a tick.
        if same and not mapped and info.st_ctime_ns + _TICK_NS < known[4]:
            return known
        now = time.time_ns()
        digest = None
        if info.st_size <= min(MAX_HASHED, budget[0]):
            budget[0] -= info.st_size
            digest = _hash(full)
        return _state(info, digest, now)


def _state(info, digest, looked):
    """What is remembered of a file."""
    return (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, looked, digest)


def keep_usable(workdir):
    """Gives the working directory back the permissions that user code may have taken from it."""
    if not os.access(workdir, os.R_OK | os.W_OK | os.X_OK):
        try:
            os.chmod(workdir, 0o700)
        except OSError:
            # Not ours to change: whoever needs it says what fails.
            pass


def _differs(before, now):
    if before is now:
        return False
    if before[5] is not None and now[5] is not None:
        return before[5] != now[5]
    return before[:4] != now[:4]


def _entry(path, seen):
    return {"path": path, "bytes": seen[0], "sha256": seen[5]}


def _bad_kind(info):
    mode = info.st_mode
    if stat.S_ISREG(mode):
        return "has several hard links" if info.st_nlink > 1 else None
    for test, name in (
        (stat.S_ISLNK, "is a symbolic link"),
        (stat.S_ISFIFO, "is a named pipe"),
        (stat.S_ISSOCK, "is a socket"),
        (stat.S_ISCHR, "is a device"),
        (stat.S_ISBLK, "is a device"),
    ):
        if test(mode):
            return name
    return "is not a regular file"


def _bad_name(name):
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
        return "its name has control characters"
    return None


def _hash(path):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    digest = hashlib.sha256()
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        left = MAX_HASHED + 1
        while left > 0:
            data = os.read(fd, 1 << 20)
            if not data:
                return digest.hexdigest()
            left -= len(data)
            digest.update(data)
        return None
    except OSError:
        return None
    finally:
        os.close(fd)
