"""The exact profile of a data file: what it holds, column by column, and the code that loads it.

Runs inside the sandbox, where the file is. Every reader looks at all rows, never at a sample, and works within
bounds: what is too large, damaged, protected or unknown becomes an error object with a kind, a message and a hint.

`profile_file(path, options, progress)` gives a dictionary of plain JSON values:

- `file`, `format` (csv, tsv, xlsx, xlsm, xlsb, xls, ods, json, jsonl, parquet, feather, arrow, sqlite,
  duckdb, stata, spss, sas, orc, avro, html, npy, npz, fwf for columns of fixed width, texttable for a
  table drawn with bars and rules, text, image)
- tables: `rows`, `columns`, `duplicate_rows`, `missing_cells`, `columns_detail` (see `columns`), `sample` (at most five rows of
  short text), `load` (see `loading`), and for text `encoding`, `bom`, `delimiter`, `quote`, `decimal`, `thousands`,
  `header_rows`, `preamble_lines`, `footer_lines`
- workbooks: `sheet` (the one described) and `sheets`: [{name, rows, columns, used_range, hidden, merged, error_cells}]
- databases: `tables`: [{name, rows, columns, kind}]; arrays: `arrays`: [{name, shape, dtype}]
- text: `lines`, `words`, `bytes`; images: `width`, `height` (upright), `mode`, `frames`, `statistics`
- `warnings`: what was odd, what was left out, what is not certain

A file that cannot be read gives `{file, error: {kind, message, hint}}` with the kinds of `faults.KINDS`.

Modules: `formats` chooses the reader; `source` opens and decompresses; `charset` (with `pages`), `dialect`, `layout`, `repair`,
`marks`, `plan`, `drawn`, `delimited`, `fixed` and `streamed` (with `measure`, `hashes`, `transcode`) read tables of text; `workbook`, `records`, `columnar`, `database`, `arrays`, `foreign`, `plaintext` and
`picture` the other kinds; `columns` and `notes` describe a table; `loading` writes the code. They import each other only downwards
in that order, numpy and pandas at the top, other libraries where they are needed.
"""

from .faults import Fault, one_line


def profile_file(path, options=None, progress=None):
    """The profile of the file at `path`.

    `options`: `name` (shown and used in the loading code; the path by default), `memory_bytes` (what this process
    may use), `scratch` (a folder for spilling). `progress` is called with {"phase", "done", "total"} in bytes or rows.
    """
    options = dict(options or {})
    name = options.get("name") or path
    try:
        from . import formats

        return formats.profile(path, name, options, progress or (lambda event: None))
    except Fault as fault:
        return {"file": name, "error": fault.as_dict()}
    except MemoryError:
        fault = Fault("memory", f"{name} needs more memory than the sandbox has", "Raise sandbox.memory, or give a part of the file.")
        return {"file": name, "error": fault.as_dict()}
    except RecursionError:
        fault = Fault("too_large", f"{name} is nested too deeply", "Flatten the data first.")
        return {"file": name, "error": fault.as_dict()}
    except Exception as error:  # the file is hostile input: no fault of a reader may escape
        fault = Fault("corrupt", f"{name} cannot be read: {type(error).__name__}: {one_line(error)}", "The file may be damaged.")
        return {"file": name, "error": fault.as_dict()}
