"""Files across the pipe: put, list and get, all below the working directory and nowhere else.

Every folder on the way is opened on its own without following links, so that user code cannot lead a name outside.
"""

import hashlib
import os
import stat
import uuid

import frames
import snapshot

MAX_PATH = 1024
MAX_LISTED = 10_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FileError(Exception):
    """A request about a file that is refused or fails; its text is for people."""


def parts(path):
    """The components of a relative path, checked."""
    if not isinstance(path, str) or not path or len(path.encode("utf-8", "surrogatepass")) > MAX_PATH:
        raise FileError("the path is empty or too long")
    if any(ord(letter) < 32 or ord(letter) == 127 or 0xD800 <= ord(letter) < 0xE000 for letter in path):
        raise FileError("the path has control characters")
    names = path.split("/")
    if any(name in ("", ".", "..") for name in names):
        raise FileError("the path must be relative, without empty, '.' or '..' parts")
    return names


def open_folder(workdir, names, create=False):
    """A descriptor of the folder of those names below the working directory."""
    fd = os.open(workdir, _FOLDER)
    try:
        for name in names:
            if create:
                try:
                    os.mkdir(name, 0o755, dir_fd=fd)
                except FileExistsError:
                    pass
            step = os.open(name, _FOLDER, dir_fd=fd)
            os.close(fd)
            fd = step
        return fd
    except OSError as error:
        os.close(fd)
        raise FileError(f"folder {'/'.join(names)}: {error.strerror}") from error


class Put:
    """A file on its way in; it appears under its name whole or not at all."""

    def __init__(self, workdir, path, size, mode):
        *folders, self._name = parts(path)
        self.path = path
        self._expected = size
        self._digest = hashlib.sha256()
        self._written = 0
        self._folder = open_folder(workdir, folders, create=True)
        self._part = snapshot.PART + uuid.uuid4().hex
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._fd = os.open(self._part, flags, mode, dir_fd=self._folder)
        except OSError as error:
            os.close(self._folder)
            raise FileError(error.strerror) from error
        self.error = None
        # Its status, once it is in its place.
        self.info = None

    def write(self, data):
        """Takes a chunk; an error is kept for the end, as the rest of the transfer is on its way already."""
        if self.error is not None:
            return
        self._written += len(data)
        self._digest.update(data)
        if self._written > self._expected:
            self.error = "more came than was announced"
            return
        view = memoryview(data)
        try:
            while len(view):
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            self.error = error.strerror

    def finish(self, size, sha256):
        """Puts the file in its place; `(bytes, sha256)`."""
        digest = self._digest.hexdigest()
        if self.error is None and (self._written != size or digest != sha256):
            self.error = "what arrived is not what was sent"
        if self.error is None:
            try:
                os.rename(self._part, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
                self.info = os.fstat(self._fd)
            except OSError as error:
                self.error = error.strerror
        error = self.error
        self.abort()
        if error is not None:
            raise FileError(error)
        return self._written, digest

    def abort(self):
        """Leaves nothing behind of a transfer that did not end well. Idempotent."""
        if self._fd is None:
            return
        os.close(self._fd)
        self._fd = None
        try:
            os.unlink(self._part, dir_fd=self._folder)
        except OSError:
            pass
        os.close(self._folder)


class Get:
    """A file on its way out, read from one descriptor; a change under way makes it an error."""

    def __init__(self, workdir, path, limit):
        *folders, name = parts(path)
        folder = open_folder(workdir, folders)
        try:
            self._fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError as error:
            raise FileError(error.strerror) from error
        finally:
            os.close(folder)
        self._before = os.fstat(self._fd)
        try:
            if not stat.S_ISREG(self._before.st_mode):
                raise FileError("it is not a regular file")
            if self._before.st_nlink > 1:
                raise FileError("it has several hard links")
            if self._before.st_nlink == 0:
                raise FileError("it was removed or replaced while it was opened")
            if self._before.st_size > limit:
                raise FileError(f"it has {self._before.st_size} bytes, more than the limit of {limit}")
        except FileError:
            os.close(self._fd)
            raise
        self.transfer = uuid.uuid4().bytes
        self._digest = hashlib.sha256()
        self.sent = 0

    def next_chunk(self):
        """The next piece as a raw frame, or None at the end."""
        data = os.read(self._fd, min(frames.CHUNK, self._before.st_size - self.sent))
        if not data:
            return None
        self.sent += len(data)
        self._digest.update(data)
        return frames.encode_chunk(self.transfer, data)

    def finish(self):
        """The reply's content; raises where the file changed while it was read."""
        after = os.fstat(self._fd)
        self.close()
        before = self._before
        if (after.st_size, after.st_mtime_ns, after.st_ctime_ns, self.sent) != (
            before.st_size,
            before.st_mtime_ns,
            before.st_ctime_ns,
            before.st_size,
        ):
            raise FileError("it changed while it was read")
        return {"status": "ok", "transfer": self.transfer.hex(), "bytes": self.sent, "sha256": self._digest.hexdigest()}

    def close(self):
        """Gives the descriptor back. Idempotent."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def listing(workdir):
    """`{"files": [{"path", "bytes", "mtime"}], "omitted": n}`: regular files, recursively."""
    found, omitted = [], 0
    pending = [(workdir, "", 0)]
    while pending:
        folder, prefix, depth = pending.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if snapshot._bad_name(entry.name) or entry.name.startswith(snapshot.PART):
                continue
            if entry.is_dir(follow_symlinks=False):
                if depth < snapshot.MAX_DEPTH:
                    pending.append((entry.path, f"{prefix}{entry.name}/", depth + 1))
                continue
            if not entry.is_file(follow_symlinks=False):
                continue
            if len(found) >= MAX_LISTED:
                omitted += 1
                continue
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            found.append({"path": prefix + entry.name, "bytes": info.st_size, "mtime": info.st_mtime})
    return {"files": found, "omitted": omitted}
