"""Which reader a file needs: by its first bytes, then by its name, then by what its text looks like."""

import re
import zipfile

from .faults import Fault
from .source import WHOLE_BYTES, Source

# Plain delimited text of more than this is streamed, which is quicker; the reading as a whole mends more.
QUICK_BYTES = 3 << 20
IMAGE_MAGIC = [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*", b"BM"]
# The continuation mark that an Arrow stream begins with.
ARROW_STREAM = b"\xff\xff\xff\xff"
JSON_BEGIN = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{\s*\"[^\"]*\"\s*:|\[\s*[{\[])")
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
WORKBOOKS = {"xlsx", "xlsm", "xlsb", "xls", "ods", "xla", "xlam"}
DELIMITED = {"csv", "tsv", "tab", "psv", "ssv"}
PROSE = {"txt", "log", "md", "markdown", "rst", "text", "out", "err", "py", "r", "sql", "tex", "html", "htm", "xml", "yaml", "yml", "toml", "ini", "cfg"}
JSON_NAMES = {"json", "geojson", "topojson", "webmanifest"}
JSON_LINES = {"jsonl", "ndjson", "geojsonl", "ldjson", "jsonlines"}
COLUMNAR = {"parquet", "parq", "pq", "feather", "arrow", "ipc", "arrows"}
DATABASES = {"sqlite", "sqlite3", "db", "db3"}
DOCUMENTS = {"docx": "a Word document", "pptx": "a presentation", "odt": "a text document", "odp": "a presentation", "epub": "an e-book",
             "numbers": "an Apple Numbers document", "pages": "an Apple Pages document", "key": "an Apple Keynote presentation",
             "jar": "a Java archive", "apk": "an Android package", "whl": "a Python package", "kmz": "a Google Earth archive"}
PICTURES = {"png", "jpg", "jpeg", "webp", "gif", "tif", "tiff", "bmp"}


def profile(path, name, options, progress):
    """The profile of the file by the reader that fits."""
    source = Source(path, name)
    if source.size == 0:
        raise Fault("empty", f"{name} is empty (0 bytes)", "Nothing to analyse.")
    head, suffix = source.head, source.suffix
    if head.startswith((b"PAR1", b"PARE", b"ARROW1", b"FEA1", ARROW_STREAM)) or suffix in COLUMNAR:
        from . import columnar

        return columnar.profile(source, options, progress)
    if head.startswith(b"SQLite format 3\0") or suffix in DATABASES and suffix != "db":
        from . import database

        return database.profile(source)
    if head.startswith(b"\x93NUMPY") or suffix in ("npy", "npz"):
        from . import arrays

        return arrays.profile(source)
    if any(head.startswith(magic) for magic in IMAGE_MAGIC[:6]) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP") or suffix in PICTURES:
        from . import picture

        return picture.profile(source)
    from . import foreign

    found = foreign.reader_of(head, suffix)
    if found:
        return foreign.profile(source, *found)
    if foreign.is_duckdb(head):
        return foreign.duckdb_profile(source)
    if suffix in WORKBOOKS | DELIMITED and foreign.is_page(head):
        return foreign.page_profile(source)
    if head.startswith(OLE) or (suffix in WORKBOOKS and not _text_as_workbook(source)) or _zipped_workbook(source):
        from . import workbook

        foreign.refuse_spreadsheet_xml(source)
        return workbook.profile(source, options)
    _refuse_documents(source)
    source.unfold()
    return _text(source, options, progress)


def _text_as_workbook(source):
    """Whether a file with the name of a workbook is delimited text, as many programs export it; its suffix is then that of text."""
    from . import foreign, plaintext

    head = source.head
    if foreign.SPREADSHEET_XML in head or head.lstrip()[:1] == b"<" or not plaintext.looks_like_text(head) or not plaintext.begins_as_table(source):
        return False
    source.misnamed = source.suffix
    source.suffix = "tsv" if b"\t" in head[:2000] else "csv"
    return True


def _refuse_documents(source):
    """Archives that are documents of other programs, and tar archives, hold no one table."""
    kind = DOCUMENTS.get(source.suffix) if source.head.startswith(b"PK\x03\x04") else None
    if kind:
        raise Fault("unsupported", f"{source.name} is {kind}, not a table", "Export the table in it as CSV or Excel.")
    if source.head[257:262] == b"ustar":
        raise Fault("unsupported", f"{source.name} is a tar archive", "Unpack it first and give the files inside.")


def _zipped_workbook(source):
    if not source.head.startswith(b"PK\x03\x04"):
        return False
    try:
        with zipfile.ZipFile(source.path) as archive:
            names = {name.replace("\\", "/").lower() for name in archive.namelist()}
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False
    return "[content_types].xml" in names and any(name.startswith("xl/") for name in names) or (
        "content.xml" in names and "mimetype" in names)


def _text(source, options, progress):
    """Text of some kind, or bytes that no reader knows."""
    from . import plaintext

    suffix = source.suffix
    limit = int(options.get("whole_bytes") or min(WHOLE_BYTES, max(8 << 20, int(options.get("memory_bytes") or (1 << 30)) // 28)))
    if source.compression:
        _refuse_documents(source)
    if source.compression and _binary_inside(source):
        raise Fault("unsupported", f"{source.name} holds {plaintext.describe_bytes(source.head)} inside {source.compression}",
                    "Unpack it first and give the file inside.")
    if not plaintext.looks_like_text(source.head) and suffix not in DELIMITED | JSON_NAMES | JSON_LINES:
        raise Fault("unsupported", f"{source.name} is {plaintext.describe_bytes(source.head)}; there is no table reader for it",
                    plaintext.hint_for(source.head, suffix))
    if suffix in DELIMITED | JSON_NAMES | JSON_LINES and plaintext.is_binary(source.head):
        raise Fault("corrupt", f"{source.name} is named .{suffix} but holds {plaintext.describe_bytes(source.head)}", "Check the file's origin.")
    larger = source.size > limit if not source.compression else len(source.read(limit + 1, exact=False)) > limit
    if suffix in JSON_NAMES | JSON_LINES:
        from . import records

        return records.profile(source, options, larger, suffix in JSON_LINES, progress)
    if larger:
        if suffix not in DELIMITED and not plaintext.begins_as_table(source):
            return plaintext.describe_large(source, progress)
        from . import streamed

        return streamed.profile(source, options, progress)
    data = source.read(limit)
    if suffix in DELIMITED:
        if JSON_BEGIN.match(data[:4096]):
            from . import records

            try:
                found = records.profile(source, options, False, False)
                found["warnings"].append(f"named .{suffix}, but it holds JSON")
                return found
            except Fault:
                # Text in brackets is a table all the same.
                pass
        if len(data) > QUICK_BYTES:
            from . import streamed

            try:
                return streamed.profile(source, options, progress, strict=True)
            except streamed.Doubt:
                # The slower reader knows more oddities, and says what is wrong where nothing helps.
                pass
            except Fault as fault:
                if fault.kind == "too_large":
                    raise
        from . import delimited

        return delimited.profile(source, data)
    return plaintext.choose(source, data, options, named_prose=suffix in PROSE)


def _binary_inside(source):
    head = source.head
    return head.startswith((b"PAR1", OLE, b"SQLite", b"\x93NUMPY", b"ARROW1", b"PK\x03\x04", b"\x1f\x8b", b"ORC", b"Obj\x01")) or any(head.startswith(magic) for magic in IMAGE_MAGIC[:4])
