"""Text that is no table, and the description of bytes that no reader knows."""

import re
from collections import Counter

from . import cells, charset, delimited, drawn, fixed
from . import dialect as dialects
from .faults import Fault
from .loading import PATH, Load, call

SIGNATURES = [
    (b"%PDF", "a PDF document"), (b"\x7fELF", "an ELF program"), (b"MZ", "a Windows program"), (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "gzip data"), (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"), (b"Rar!", "a RAR archive"), (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"CDF\x01", "a netCDF file"), (b"CDF\x02", "a netCDF file"), (b"ORC", "an ORC file"), (b"Obj\x01", "an Avro file"),
    (b"RIFF", "a RIFF (audio or video) file"), (b"\x00\x00\x00\x18ftyp", "an MP4 file"), (b"ID3", "an MP3 file"), (b"OggS", "an Ogg file"),
    (b"fLaC", "a FLAC file"), (b"\xca\xfe\xba\xbe", "Java bytecode"), (b"RDX", "an R data file"), (b"$FL2", "an SPSS file"),
    (b"<stata_dta>", "a Stata file"), (b"\xd0\xcf\x11\xe0", "an OLE2 compound file"), (b"PAR1", "a Parquet file"), (b"SQLite", "a SQLite database"),
    (b"DUCK", "a DuckDB database"),
]
HEAD_BYTES = 1 << 18
# Names under which tables of fixed width come.
FIXED_NAMES = {"txt", "dat", "prn", "fwf", "asc", "out", "text", ""}
# Names under which text is text, whatever tables are in it.
PAGES = {"md", "ini", "cfg", "markdown", "rst", "py", "html", "htm", "xml", "tex", "sql", "yaml", "yml", "toml", "log", "r"}
PICKLE = re.compile(rb"\x80[\x02-\x05]")


def describe_bytes(head):
    """What the first bytes say, with the bytes themselves."""
    shown = head[:16].hex(" ")
    if PICKLE.match(head):
        return f"a Python pickle (first bytes {shown})"
    if head[8:12] == b"DUCK":
        return f"a DuckDB database (first bytes {shown})"
    for magic, what in SIGNATURES:
        if head.startswith(magic):
            return f"{what} (first bytes {shown})"
    return f"binary data of an unknown kind (first bytes {shown})"


def hint_for(head, suffix):
    """What to do with a file that has no reader here."""
    if PICKLE.match(head) or suffix in ("pkl", "pickle"):
        return "A pickle runs code when it is loaded: open it with pd.read_pickle inside the sandbox only, and only if you trust its origin."
    if suffix == "dbf":
        return "A dBASE table: export it as CSV."
    return "Export it as CSV, Excel, JSON or Parquet; code in the sandbox can still open the file itself."


def looks_like_text(head):
    """Whether the bytes can be text: no zero bytes outside UTF-16 and 32, few control characters."""
    if any(head.startswith(mark) for mark, _, _ in charset.BOMS):
        return True
    if PICKLE.match(head) or any(head.startswith(magic) for magic, _ in SIGNATURES if len(magic) > 3):
        return False
    sample = without_delimiters(head[:8192])
    if b"\0" in sample:
        found = charset.utf16_without_mark(sample)
        return found is not None
    control = sum(1 for byte in sample if byte < 32 and byte not in (9, 10, 11, 12, 13, 27))
    return control <= 0.02 * len(sample)


def without_delimiters(sample):
    """The bytes without those of value 1 where every line has as many of them, as in exports of Hive."""
    lines = [line for line in sample.split(b"\n")[:-1] if line][:200]
    counts = {line.count(b"\x01") for line in lines}
    return sample.replace(b"\x01", b",") if len(counts) == 1 and 0 not in counts else sample


def is_binary(head):
    """Whether a part of the bytes that no text has are control characters other than zero bytes."""
    if any(head.startswith(mark) for mark, _, _ in charset.BOMS) or charset.utf16_without_mark(head):
        return False
    sample = without_delimiters(head[:65536])
    return len(sample) > 64 and sum(sample.count(bytes([byte])) for byte in range(1, 32) if byte not in (9, 10, 11, 12, 13, 27, 28, 29, 30, 31)) > 0.03 * len(sample)


def choose(source, data, options, named_prose):
    """A table when the text clearly is one, JSON when it parses as that, else text."""
    found = charset.detect(data)
    text, found = delimited.decode(data, found)
    plain = dialects.normalise(text.lstrip("\ufeff"))
    if not plain.strip():
        raise Fault("empty", f"{source.name} holds nothing but blank lines", "Nothing to analyse.")
    if (not named_prose or source.suffix in ("txt", "log", "out")) and re.match(r"\s*(?:\{\s*\"|\[\s*[{\[\d\"])", plain):
        from . import records

        try:
            return records.profile(source, options, False, False)
        except Fault:
            pass
    if source.suffix not in PAGES:
        table = drawn.profile(source, plain, found) or fixed.ruled(source, plain, found)
        if table:
            return table
    if is_table(plain, source.suffix):
        return delimited.of_text(source, text, found, data)
    if source.suffix in FIXED_NAMES and not source.compression and "\0" not in text:
        table = fixed.profile(source, plain, found)
        if table:
            return table
    return describe(source, plain, found, data)


def is_table(text, suffix):
    """Whether text without a table's name is one: even rows, in at least two columns, that hold values."""
    if suffix in PAGES:
        return False
    if suffix not in ("out", "err") and dialects.several_characters(text, suffix):
        return True
    dialect, score = dialects.detect(text, suffix)
    if dialect.delimiter is None:
        return False
    rows = [row for row in dialects.records(dialects.sample_of(text), dialect, 500) if row and not cells.is_blank(row)]
    if len(rows) < 2:
        return False
    widths = Counter(len(row) for row in rows)
    width, count = widths.most_common(1)[0]
    return width >= 2 and count >= 0.8 * len(rows) and score >= 0.5


def begins_as_table(source):
    """Whether the first part of a large text is a table."""
    head = source.read(HEAD_BYTES, exact=False)
    head = head[: head.rfind(b"\n") + 1]
    found = charset.detect(head, complete=False)
    text, _ = delimited.decode(head, found)
    return bool(head) and is_table(dialects.normalise(text.lstrip("\ufeff")), source.suffix)


def describe_large(source, progress):
    """The profile of text that is not held as a whole: counts, and its first lines."""
    found = charset.detect(source.head, complete=False)
    size = lines = blank = longest = current = words = 0
    ended = True
    with source.stream() as stream:
        while chunk := stream.read(1 << 20):
            size += len(chunk)
            pieces = chunk.split(b"\n")
            lines += len(pieces) - 1
            words += len(chunk.split())
            blank += sum(1 for piece in pieces[1:-1] if not piece.strip())
            longest = max(longest, current + len(pieces[0]), *map(len, pieces))
            current = len(pieces[-1]) if len(pieces) > 1 else current + len(chunk)
            ended = chunk.endswith(b"\n")
            progress({"phase": "lines", "done": size, "total": source.content_size() or size})
    head, _ = delimited.decode(source.head, found)
    options = {"encoding": found.codec}
    return {
        "file": source.name,
        "format": "text",
        **({"compression": source.compression} if source.compression else {}),
        "encoding": found.name,
        "bom": found.bom,
        "lines": lines + (0 if ended else 1),
        "blank_lines": blank,
        "words": words,
        "bytes": size,
        "longest_line": longest,
        "sample": [[line[:200]] for line in dialects.normalise(head.lstrip("\ufeff")).split("\n")[:5]],
        "warnings": [*([found.note] if found.note else []), "large text: words and the longest line are counted in bytes, and roughly"],
        "load": Load(call("open", PATH, options)).code(source.name),
    }


def describe(source, text, found, data):
    """The profile of text: lines, words, bytes, encoding, longest line, first lines."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    warnings = [found.note] if found.note else []
    options = {"encoding": found.codec}
    if "replaced when read" in found.note:
        options["errors"] = "replace"
    if remark := drawn.remark(text):
        warnings.append(remark)
    longest = max(lines, key=len, default="")
    return {
        "file": source.name,
        "format": "text",
        **({"compression": source.compression} if source.compression else {}),
        "encoding": found.name,
        "bom": found.bom,
        "lines": len(lines),
        "blank_lines": sum(1 for line in lines if not line.strip()),
        "words": len(text.split()),
        "characters": len(text),
        "bytes": len(data),
        "longest_line": len(longest),
        "sample": [[line[:200]] for line in lines[:5]],
        "warnings": warnings,
        "load": Load(call("open", PATH, options) + ".read()").code(source.name),
    }
