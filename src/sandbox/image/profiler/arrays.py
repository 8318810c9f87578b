"""NumPy files (.npy, .npz), never with pickled objects; headers and sizes are checked before data is read."""

import zipfile

import numpy as np
import pandas as pd

from . import columns
from .faults import Fault, one_line
from .loading import PATH, Load, literal

MAX_BYTES = 256 << 20
MAX_ARRAYS = 500


def profile(source):
    """The profile of an array file: `arrays`, and the first array of one or two dimensions as the table."""
    try:
        if source.head.startswith(b"PK\x03\x04"):
            return _archive(source)
        array = np.load(source.path, mmap_mode="r", allow_pickle=False)
        return _described(source, "npy", [("", array)], Load(f"np.load({PATH})", ["numpy as np"]), [])
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, KeyError, TypeError, SyntaxError, OverflowError) as error:
        text = one_line(error)
        if "allow_pickle" in text or "Object arrays" in text or "Python objects" in text:
            raise Fault("unsupported", f"{source.name} holds pickled Python objects, which run code when loaded",
                        "Open it with allow_pickle=True inside the sandbox only, and only if you trust its origin.") from error
        raise Fault("corrupt", f"{source.name} is not a readable NumPy file: {text}", "Save the array again.") from error


def _archive(source):
    with zipfile.ZipFile(source.path) as archive:
        infos = archive.infolist()
    if any(info.file_size > MAX_BYTES and info.file_size > 200 * max(info.compress_size, 1) for info in infos):
        raise Fault("too_large", f"{source.name} unfolds to far more than it holds, as a zip bomb does", "Save it without compression if you trust it.")
    warnings, arrays = [], []
    with np.load(source.path, allow_pickle=False) as loaded:
        for info in infos[:MAX_ARRAYS]:
            name = info.filename.removesuffix(".npy")
            if info.file_size > MAX_BYTES:
                warnings.append(f"array {name} has {info.file_size:,} bytes and was not read")
                continue
            try:
                arrays.append((name, loaded[name]))
            except ValueError as error:
                warnings.append(f"array {name} was not read: {one_line(error, 80)}")
    if not arrays:
        raise Fault("unsupported", f"{source.name} has no array that can be read ({'; '.join(warnings[:3]) or 'it is empty'})",
                    "Object arrays are pickles: open them in the sandbox only.")
    chosen = next((name for name, array in arrays if array.ndim in (1, 2)), arrays[0][0])
    arrays.sort(key=lambda item: item[0] != chosen)
    return _described(source, "npz", arrays, Load(f"np.load({PATH})[{literal(chosen)}]", ["numpy as np"]), warnings)


def _described(source, name, arrays, load, warnings):
    first = arrays[0][1]
    listed = [{"name": label, "shape": list(array.shape), "dtype": str(array.dtype)} for label, array in arrays]
    result = {"file": source.name, "format": name, "arrays": listed, "shape": list(first.shape), "dtype": str(first.dtype)}
    if len(arrays) > 1:
        warnings.append(f"described is the array {arrays[0][0]}; the others are " + ", ".join(label for label, _ in arrays[1:20]))
    if first.dtype.names or first.ndim in (1, 2):
        if first.nbytes > MAX_BYTES or (first.ndim == 2 and first.shape[1] > 20_000):
            raise Fault("too_large", f"{source.name} holds an array of shape {first.shape} ({first.nbytes:,} bytes), too large to describe at once",
                        f"Open it in parts: np.load({literal(source.name)}, mmap_mode=\"r\").")
        described = columns.describe(pd.DataFrame(np.asarray(first)))
        warnings += described.pop("warnings")
        load = Load(f"pd.DataFrame({load.expression})", load.imports)
        return {**result, **described, "warnings": warnings, "load": load.code(source.name)}
    if first.ndim == 0:
        statistics = {"value": columns.plain(first.item())}
    else:
        numbers = np.asarray(first) if first.nbytes <= MAX_BYTES else np.asarray(first[: max(1, MAX_BYTES // max(first[0].nbytes, 1))])
        numeric = np.issubdtype(numbers.dtype, np.number) and numbers.size and not np.iscomplexobj(numbers)
        statistics = {"min": columns.plain(numbers.min()), "max": columns.plain(numbers.max()), "mean": columns.plain(numbers.mean())} if numeric else {}
    warnings.append(f"an array of {first.ndim} dimensions is no table")
    return {**result, "statistics": statistics, "warnings": warnings, "load": load.code(source.name)}
