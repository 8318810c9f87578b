"""The file behind a profile: what it is on disk, whether it is compressed, and its bytes within bounds."""

import bz2
import gzip
import io
import lzma
import os
import stat
import zipfile
import zlib

from .faults import Fault, one_line

# Read as a whole up to here; larger text is streamed.
WHOLE_BYTES = 48 << 20
# How many times its size a compressed file may unfold to, once it is beyond the floor.
UNFOLDED_RATIO = 250
UNFOLDED_FLOOR = 24 << 20

MAGIC = [(b"\x1f\x8b", "gzip"), (b"BZh", "bz2"), (b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"PK\x03\x04", "zip")]
SUFFIXES = {"gz": "gzip", "bz2": "bz2", "xz": "xz", "zst": "zstd", "zip": "zip"}


class Source:
    """A regular file: `path` on disk, `name` as shown and used in code, `size` in bytes, `head` its first bytes,
    `compression` (a pandas name) or None, `member` of an archive or None, `suffix` of the name without compression."""

    def __init__(self, path, name):
        self.path = path
        self.name = name
        try:
            info = os.lstat(path)
        except OSError as error:
            raise Fault("not_found", f"{name} cannot be opened: {one_line(error.strerror or error)}", "Check the path.") from error
        if not stat.S_ISREG(info.st_mode):
            what = "a symbolic link" if stat.S_ISLNK(info.st_mode) else "a folder" if stat.S_ISDIR(info.st_mode) else "not a regular file"
            raise Fault("not_regular", f"{name} is {what}", "Give the data file itself.")
        self.size = info.st_size
        try:
            with open(path, "rb") as stream:
                self.head = stream.read(65536)
        except OSError as error:
            raise Fault("not_found", f"{name} cannot be read: {one_line(error.strerror or error)}", "Check its permissions.") from error
        self.compression = None
        self.member = None
        self.others = []
        # The suffix that the name has wrongly, where the content is another kind of table.
        self.misnamed = None
        self.suffix = suffix_of(name)

    def kilobytes(self):
        """The size for people."""
        return f"{self.size:,} bytes" if self.size < 10_000 else f"{self.size / 1e6:,.1f} MB"

    def unfold(self):
        """Recognise compression around another format, set `compression`, `member`, `suffix` and `head` of the inside."""
        found = next((kind for magic, kind in MAGIC if self.head.startswith(magic)), None)
        if found is None:
            wanted = SUFFIXES.get(self.suffix)
            if wanted and self.size:
                raise Fault("corrupt", f"{self.name} is named .{self.suffix} but does not hold {wanted} data "
                            f"(first bytes: {self.head[:8].hex(' ')})", "Download or create the file again.")
            return
        if found == "zip":
            self._pick_member()
        self.compression = found
        if self.suffix in SUFFIXES:
            self.suffix = suffix_of(self.member or self.name.rsplit(".", 1)[0])
        elif self.member:
            self.suffix = suffix_of(self.member)
        self.head = self.read(65536, exact=False)

    def _pick_member(self):
        try:
            with zipfile.ZipFile(self.path) as archive:
                members = [info for info in archive.infolist()
                           if not info.is_dir() and not info.filename.startswith("__MACOSX/")
                           and not os.path.basename(info.filename).startswith(".")]
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise Fault("corrupt", f"{self.name} is a damaged zip archive: {one_line(error)}", "Create the archive again.") from error
        if not members:
            raise Fault("empty", f"{self.name} is an archive without files", "Nothing to analyse.")
        if any(info.flag_bits & 1 for info in members):
            raise Fault("encrypted", f"{self.name} is protected by a password", "Unpack it first and give the file inside.")
        rank = {"csv": 0, "tsv": 0, "jsonl": 1, "ndjson": 1, "json": 1, "parquet": 1, "xlsx": 1, "txt": 3}
        best = min(members, key=lambda info: (rank.get(suffix_of(info.filename), 2), info.filename.count("/")))
        self.member = best.filename
        self.others = [info.filename for info in members if info is not best]
        if best.file_size > WHOLE_BYTES and best.file_size > UNFOLDED_RATIO * max(best.compress_size, 1):
            raise Fault("too_large", f"{self.name} would unfold from {best.compress_size:,} to {best.file_size:,} bytes, as a zip bomb does",
                        "Unpack it yourself if you trust it.")

    def stream(self):
        """The content, decompressed, as a binary stream."""
        if self.compression is None:
            return open(self.path, "rb")
        if self.compression == "gzip":
            return gzip.open(self.path, "rb")
        if self.compression == "bz2":
            return bz2.open(self.path, "rb")
        if self.compression == "xz":
            return lzma.open(self.path, "rb")
        if self.compression == "zip":
            return zipfile.ZipFile(self.path).open(self.member)
        import pyarrow

        return pyarrow.input_stream(self.path, compression="zstd")

    def read(self, limit, exact=True):
        """Up to `limit` bytes of content. `exact`: a file that holds more is a Fault."""
        out = io.BytesIO()
        try:
            with self.stream() as stream:
                while out.tell() <= limit:
                    # What can be had before a fault is kept, so that the message can say how much that was.
                    part = min(1 << 16, limit + 1 - out.tell())
                    chunk = stream.read1(part) if self.compression in ("gzip", "bz2", "xz") else stream.read(part)
                    if not chunk:
                        break
                    out.write(chunk)
                self._bound_ratio(stream, out.tell())
        except Fault:
            raise
        except (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError) as error:
            got = out.tell()
            if not exact and got:
                return out.getvalue()
            raise Fault("corrupt", f"{self.name} is damaged or cut off after {got:,} bytes of content: {one_line(error)}",
                        "Copy or download the file again.") from error
        data = out.getvalue()
        if len(data) > limit:
            if exact:
                raise Fault("too_large", f"{self.name} holds more than {limit:,} bytes", "Split the file or reduce it first.")
            data = data[:limit]
        return data

    def _bound_ratio(self, stream, unfolded):
        """Refuse content that unfolds beyond any real data's compression."""
        if self.compression is None or unfolded < UNFOLDED_FLOOR:
            return
        inner = getattr(stream, "fileobj", None)
        used = min(inner.tell() if inner is not None else self.size, self.size)
        if unfolded > UNFOLDED_RATIO * max(used, 1):
            raise Fault("too_large", f"{self.name} unfolds {used:,} bytes to more than {unfolded:,}, as a zip bomb does",
                        "Unpack it yourself if you trust it.")

    def content_size(self):
        """Bytes of content, None while unknown (a compressed file is not unfolded to find out)."""
        return self.size if self.compression is None else None


def suffix_of(name):
    """The lower-case extension of a name without its dot, or ''."""
    base = os.path.basename(name)
    return base.rsplit(".", 1)[1].lower() if "." in base.strip(".") else ""
