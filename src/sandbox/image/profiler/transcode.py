"""Large text of another encoding as UTF-8 in scratch, compressed, so that it can be read as a stream."""

import codecs
import contextlib
import os
import tempfile

from .faults import Fault
from .measure import memory_of

CHUNK = 1 << 20
# The part of the memory that the copy may take: scratch is charged to it.
SHARE = 0.25


class Copy:
    """A copy in UTF-8: `path`, its `compression`, and how many characters were `replaced` because their bytes are invalid."""

    def __init__(self, path):
        self.path = path
        self.compression = "zstd"
        self.replaced = 0

    def stream(self):
        """The content of the copy as a binary stream."""
        import pyarrow

        return pyarrow.input_stream(self.path, compression=self.compression)


@contextlib.contextmanager
def as_utf8(source, codec, options, progress):
    """The `Copy` of a source, removed at the end; a Fault when it would take too much of the memory."""
    import pyarrow

    copy = Copy(os.path.join(options.get("scratch") or tempfile.gettempdir(), f".profile-{os.getpid()}.csv.zst"))
    bound, done = int(memory_of(options) * SHARE), 0
    decoder = codecs.getincrementaldecoder(codec)("replace")
    try:
        with source.stream() as stream, pyarrow.output_stream(copy.path, compression="zstd") as out:
            while True:
                chunk = stream.read(CHUNK)
                text = decoder.decode(chunk, not chunk)
                copy.replaced += text.count("\ufffd")
                out.write(text.encode("utf-8", "replace"))
                if not chunk:
                    break
                done += len(chunk)
                progress({"phase": "encoding", "done": done, "total": source.content_size() or done})
                if os.path.getsize(copy.path) > bound:
                    raise Fault("too_large", f"{source.name} ({source.kilobytes()}) is in {codec}, and its copy in UTF-8 takes more than {bound:,} bytes of scratch",
                                f'Convert it first, for example: iconv -f {codec} -t utf-8 "{source.name}".')
        yield copy
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(copy.path)


def text_of_head(head, codec):
    """The whole lines of the first bytes of text in a codec of several bytes a character."""
    text = codecs.getincrementaldecoder(codec)("replace").decode(head)
    return text[: text.rfind("\n") + 1] or text
