"""Parquet, Feather and Arrow files, read by pyarrow; the footer is checked before any data is."""

import re

import pandas as pd
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from . import columns
from .faults import Fault, one_line
from .loading import PATH, Load, call

# Decoded size, as the file says it, that is read as one frame.
WHOLE_DECODED = 40 << 20
DAMAGED = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, IndexError, NotImplementedError, UnicodeDecodeError, OverflowError)


def profile(source, options, progress):
    """The profile of a columnar file."""
    head = source.head
    if head.startswith(b"PARE"):
        raise Fault("encrypted", f"{source.name} is a Parquet file with an encrypted footer", "Decrypt it first; this sandbox has no key.")
    if head.startswith((b"ARROW1", b"FEA1", b"\xff\xff\xff\xff")) or source.suffix in ("feather", "arrow", "ipc", "arrows"):
        return _arrow(source)
    if not head.startswith(b"PAR1"):
        raise Fault("corrupt", f"{source.name} is named .{source.suffix} but does not begin as a Parquet file (first bytes {head[:8].hex(' ')})",
                    "Check the file's origin.")
    return _parquet(source, options, progress)


def _parquet(source, options, progress):
    warnings = []
    try:
        metadata = pq.read_metadata(source.path)
        schema = metadata.schema.to_arrow_schema()
    except DAMAGED as error:
        frame, load = _by_duckdb(source, error, warnings)
        return _table(source, frame, "parquet", load, warnings, [])
    decoded = sum(metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups))
    memory = int(options.get("memory_bytes") or (1 << 30))
    extra = {"row_groups": metadata.num_row_groups}
    if max(decoded, metadata.num_rows * len(schema) * 8) > min(WHOLE_DECODED, memory // 5):
        from . import streamed

        return {**streamed.profile_parquet(source, options, schema, metadata.num_rows, progress), **extra}
    frame, load = _frame(source, warnings)
    if len(frame) < metadata.num_rows:
        raise Fault("corrupt", f"{source.name} says that it holds {metadata.num_rows} rows, but {len(frame)} are there", "Write the file again.")
    if len(frame) > metadata.num_rows:
        warnings.append(f"the footer says {metadata.num_rows} rows, the columns hold {len(frame)}")
    named = [name for name in frame.index.names if name]
    if named:
        warnings.append(f"column(s) {', '.join(map(str, named))} load as the index; reset_index() makes them columns")
    return {**_table(source, frame, "parquet", load, warnings, schema), **extra}


def _frame(source, warnings):
    """The file as a frame and its load: pandas as usual, else with other types where the usual ones cannot hold a value."""
    first = None
    for options in ({}, {"dtype_backend": "numpy_nullable"}, {"dtype_backend": "pyarrow"}):
        load = Load(call("pd.read_parquet", PATH, options))
        try:
            frame = load.run(source.path)
        except DAMAGED as error:
            first = first or error
            if type(error).__name__ in ("ArrowInvalid", "OSError"):
                break
            continue
        if options:
            warnings.append(f"some values do not fit the usual types ({one_line(first, 80)}); loaded with {options['dtype_backend']} types")
        return frame, load
    return _by_duckdb(source, first, warnings)


def _by_duckdb(source, first, warnings):
    """The file by duckdb, only where pyarrow refuses a type or length that the format allows, never where data is damaged."""
    if not re.search(r"recision out of range|not implemented|Length of byte array passed to", str(first), re.IGNORECASE):
        raise _fault(source, first) from first
    import duckdb

    load = Load(f"duckdb.read_parquet({PATH}).df()", ["duckdb"])
    try:
        frame = load.run(source.path)
    except duckdb.Error as error:
        raise _fault(source, first) from error
    warnings.append(f"loaded by duckdb, since pyarrow cannot ({one_line(first, 80)})")
    return frame, load


def _fault(source, error):
    text = one_line(error)
    if "encrypt" in text.lower() or "decrypt" in text.lower():
        return Fault("encrypted", f"{source.name} has encrypted columns: {text}", "Decrypt it first; this sandbox has no key.")
    return Fault("corrupt", f"{source.name} is not a readable Parquet file: {text}", "Write or download the file again.")


def _arrow(source):
    if source.size > (256 << 20):
        raise Fault("too_large", f"{source.name} ({source.kilobytes()}) is too large to read at once", "Write it as Parquet, which is read in parts.")
    try:
        if source.head.startswith((b"ARROW1", b"FEA1")):
            from pyarrow import feather

            schema = feather.read_table(source.path).schema
            frame = pd.read_feather(source.path)
            name = "feather" if source.suffix in ("feather", "") else "arrow"
            return _table(source, frame, name, Load(f"pd.read_feather({PATH})"), [], schema)
        with pa.ipc.open_stream(source.path) as reader:
            schema = reader.schema
            frame = reader.read_pandas()
        load = Load(f"pa.ipc.open_stream({PATH}).read_pandas()", ["pyarrow as pa", "pyarrow.ipc"])
        return _table(source, frame, "arrow", load, [], schema)
    except DAMAGED as error:
        raise Fault("corrupt", f"{source.name} is not a readable Arrow file: {one_line(error)}", "Write the file again.") from error


def _table(source, frame, name, load, warnings, schema):
    described = columns.describe(frame)
    warnings += described.pop("warnings")
    types = {field.name: str(field.type) for field in schema}
    for detail in described["columns_detail"]:
        stored = types.get(detail["name"])
        if stored:
            detail["stored_type"] = columns.clip(stored, 80)
    for field in schema:
        if pa.types.is_integer(field.type) and field.name in frame.columns and str(frame[field.name].dtype) == "float64":
            warnings.append(f"{field.name}: {field.type} with missing cells loads as float64; integers beyond 2^53 would be rounded "
                            "(dtype_backend=\"numpy_nullable\" keeps them)")
    return {"file": source.name, "format": name, **described, "warnings": warnings, "load": load.code(source.name)}
