"""The plan of loading a delimited text: the call of `pandas.read_csv` for a dialect and a layout, tried until the
table has the shape that the records say, and the remarks on what was odd."""

import csv
import io
import re
from collections import Counter

from . import cells, columns, marks
from . import dialect as dialects
from .faults import Fault, one_line
from .loading import PATH, Code, Load, call, literal

# Sixteen significant digits and more, with a decimal point.
LONG_FRACTION = re.compile(r"[+-]?(?=[\d.]{17,})\d*\.\d+(?:[eE][+-]?\d+)?")


TOTAL = re.compile(r"(?:grand[ -]?|sub[ -]?)?totals?\b|sum\s*:?$|summe\b|gesamt\b|insgesamt\b|somme\b|итого|всего|合计|总计|小计|合計|總計|小計|計$|합계|소계", re.IGNORECASE)


class Plan:
    """The loading call of a delimited text and what it must give."""

    def __init__(self, source, original, text, dialect, layout, rows, found, replacements, zeros, mark=None):
        self.source = source
        self.original = original
        self.text = text
        self.dialect = dialect
        self.layout = layout
        self.rows = rows
        self.found = found
        self.replacements = replacements
        self.zeros = zeros
        self.mark = mark
        dropped = set(layout.dropped)
        self.body = [rows[index] for index in range(layout.first, layout.end) if rows[index] and index not in dropped]
        # Byte order marks inside, where files were joined.
        self.marked = "\ufeff" in original
        self.width = self._table_width()
        self.decimal, self.thousands = marks.find(self.body, self.width, self.dialect.delimiter)
        self.protected = self._protected()

    def _table_width(self):
        """Columns of the table: the usual width, more where rows hold more, fewer where the header does so."""
        layout = self.layout
        self.cut = self.extra_empty = False
        if self.dialect.delimiter is None:
            return 1
        if layout.names is not None and layout.width == len(layout.names) and self._empty_extra():
            self.extra_empty = True
            return layout.width
        width = max(layout.width, max(map(len, self.body), default=0))
        if width > layout.width:
            long = [row for row in self.body if cells.span(row) > layout.width]
            if width - layout.width > max(3, layout.width) and len(long) <= 0.1 * len(self.body):
                self.cut = True
                return layout.width
        return width

    def _empty_extra(self):
        width = self.layout.width
        return any(len(row) > width for row in self.body) and all(cells.span(row) <= width for row in self.body)

    def _protected(self):
        """Names of the columns that the thousands mark would turn into wrong numbers: dates with dots, lists with commas."""
        if not self.thousands:
            return []
        names = None if self.layout.names is None else unique(list(self.layout.names)[: self.width] + [""] * (self.width - len(self.layout.names)))
        grouped = marks.grouped(self.thousands)
        out = []
        for column in range(min(self.width, 300)):
            marked = [row[column].strip() for row in self.body if column < len(row) and self.thousands in row[column]]
            odd = [value for value in marked if not grouped.fullmatch(value)]
            if any(cells.NUMBER.fullmatch(value.replace(self.thousands, "").replace(self.decimal, ".")) for value in odd):
                out.append(column if names is None else names[column])
        return out

    def _long_fractions(self):
        """Whether some fractions have more digits than the fast parser of pandas reads exactly."""
        for row in self.body[:200]:
            for cell in row[:100]:
                if len(cell) > 16 and LONG_FRACTION.fullmatch(cell.strip()):
                    return True
        return False

    def raw_column(self, position):
        """The cells of a column as text."""
        return [row[position] for row in self.body if position < len(row)]

    def options(self, by_line):
        """Keyword arguments of `pandas.read_csv`. `by_line`: places counted in physical lines, else in records."""
        dialect, layout = self.dialect, self.layout
        options = {}
        if dialect.delimiter is None:
            if "," in self.text:
                options["sep"] = "\x1f"
        elif dialect.delimiter != ",":
            options["sep"] = dialect.delimiter
        if dialect.quote and dialect.quote != '"':
            options["quotechar"] = dialect.quote
        if not dialect.quote and '"' in self.text:
            options["quoting"] = 3
        if dialect.escape:
            options["escapechar"] = dialect.escape
        if dialect.skip_space:
            options["skipinitialspace"] = True
        if dialect.comment:
            options["comment"] = dialect.comment
        if self.decimal != ".":
            options["decimal"] = self.decimal
        if self.thousands:
            options["thousands"] = self.thousands
            if not self.thousands.isascii():
                # The other parser knows marks of one byte only.
                options["engine"] = "python"
        if self.protected:
            options["dtype"] = Code("{" + ", ".join(f"{literal(name)}: str" for name in self.protected) + "}")
        if self._long_fractions():
            options["float_precision"] = "round_trip"
        self._header_options(options, by_line)
        if layout.footer and layout.end < len(self.rows):
            options["nrows"] = len(self.body)
        if self.cut:
            options["engine"] = "python"
            options["on_bad_lines"] = Code(f"lambda row: row[:{self.width}]")
        return options

    def _header_options(self, options, by_line):
        layout = self.layout
        places = self.places() if by_line else None
        where = (lambda index: places[index]) if by_line else (lambda index: index)
        names = layout.names
        simple = len(layout.header) <= 1 and not layout.dropped
        if names is None:
            options["header"] = None
            widths = {len(row) for row in self.body}
            if widths and (len(widths) > 1 or self.body and len(self.body[0]) != self.width):
                options["names"] = Code(f"range({self.width})")
            if layout.preamble:
                options["skiprows"] = where(layout.preamble)
        elif simple and (len(names) >= self.width or not self.body):
            if layout.preamble:
                options["skiprows"] = where(layout.header[0])
            if self.extra_empty or (self.cut and any(len(row) > len(names) for row in self.body)):
                options["index_col"] = False
        else:
            full = list(names) + [""] * (self.width - len(names))
            options["header"] = None
            options["names"] = unique(full)
            skip = list(range(where(layout.header[-1] + 1) if layout.header[-1] + 1 < len(self.rows) else where(layout.header[-1]) + 1))
            options["skiprows"] = len(skip)
            if layout.dropped:
                options["skiprows"] = Code(_ranges(skip, [where(index) for index in layout.dropped]))
            if self.extra_empty:
                options["index_col"] = False
            return
        if layout.dropped:
            skip = list(range(options.pop("skiprows", 0)))
            options["skiprows"] = Code(_ranges(skip, [where(index) for index in layout.dropped]))

    def places(self):
        """The physical line at which each record begins."""
        if self.dialect.delimiter in (None, dialects.WHITESPACE) and self.dialect.quote is None or self.dialect.delimiter == dialects.WHITESPACE:
            return list(range(len(self.rows) + 1))
        reader = csv.reader(io.StringIO(self.text, newline="\n"), **dialects.csv_options(self.dialect))
        places = [0]
        try:
            for row in reader:
                if self.dialect.comment and dialects.without_comment(row, self.dialect.comment) is None:
                    places[-1] = reader.line_num
                    continue
                places.append(reader.line_num)
        except csv.Error:
            pass
        return places + [places[-1]] * max(0, len(self.rows) + 1 - len(places))

    def load(self, warnings):
        """Run the likeliest call, then its variants, until the table has the expected shape: (frame, Load)."""
        expected = (len(self.body), self.width)
        tried, best, problem = set(), None, None
        for by_line in (True, False):
            options = self.options(by_line)
            for variant in self._variants(options):
                load = self.expression(variant)
                if load.expression in tried:
                    continue
                tried.add(load.expression)
                try:
                    frame = self._run(load)
                except (ValueError, TypeError, KeyError, IndexError, OverflowError, csv.Error, UnicodeError) as error:
                    problem = error
                    continue
                if frame.shape == expected and self._agrees(frame):
                    return frame, load
                if best is None or _distance(frame.shape, expected) < _distance(best[0].shape, expected):
                    best = (frame, load)
        if best is None:
            raise Fault("syntax", f"{self.source.name} cannot be read as a table: {one_line(problem)}", "Open it in an editor and look at the named line.")
        warnings.append(f"counted {expected[0]} records of {expected[1]} cells, but pandas loads {best[0].shape[0]} × {best[0].shape[1]}; the profile is of what is loaded")
        return best

    def _agrees(self, frame):
        """Whether first and last row of the frame hold what the first and last record say."""
        if not self.body:
            return True
        same = total = 0
        for index in {0, len(self.body) - 1}:
            row = self.body[index]
            for column in range(min(self.width, len(row), 60)):
                own, loaded = row[column].strip(), frame.iat[index, column]
                if isinstance(loaded, str):
                    total += 1
                    same += loaded.strip() == own or loaded.replace("\r\n", "\n").strip() == own
                elif loaded != loaded:
                    total += 1
                    same += own in cells.NA_MARKERS
                else:
                    total += 1
                    same += own not in cells.NA_MARKERS
        return same >= 0.8 * total

    def _variants(self, options):
        yield options
        if options.get("engine") is None:
            yield {key: value for key, value in {**options, "engine": "python"}.items() if key != "float_precision"}
        if "sep" in options and options["sep"] == "\x1f":
            yield {**options, "engine": "python", "quoting": 3}

    def expression(self, options):
        """The `Load` with these options of `pandas.read_csv`."""
        found, source = self.found, self.source
        reading = {}
        codec = found.codec if found.codec != "utf-8" else None
        lossy = not found.sure and "replaced when read" in found.note
        text_needed = self.replacements or self.zeros or self.marked or self.mark or (source.compression == "zip" and source.others)
        if not text_needed:
            if codec:
                reading["encoding"] = codec
            if lossy:
                reading["encoding_errors"] = "replace"
            if source.compression == "zstd":
                # pandas needs a package of its own for this compression; pyarrow is always there.
                opened = f'pa.input_stream({PATH}, compression="zstd")'
                return Load(call("pd.read_csv", opened, {**_head(options), **reading, **_tail(options)}), ["pyarrow as pa"])
            if source.compression and not _inferred(source):
                reading["compression"] = source.compression
            return Load(call("pd.read_csv", PATH, {**_head(options), **reading, **_tail(options)}))
        imports = ["io"]
        arguments = f"encoding={literal(found.codec)}" + (', errors="replace"' if lossy else "") + ', newline=""'
        if source.compression == "zip":
            imports.append("zipfile")
            raw = f"zipfile.ZipFile({PATH}).read({literal(source.member)}).decode({literal(found.codec)})"
        elif source.compression == "zstd":
            imports.append("pyarrow as pa")
            raw = f'pa.input_stream({PATH}, compression="zstd").read().decode({literal(found.codec)})'
        elif source.compression in ("gzip", "bz2", "xz"):
            module = {"gzip": "gzip", "bz2": "bz2", "xz": "lzma"}[source.compression]
            imports.append(module)
            raw = f'{module}.open({PATH}, "rt", {arguments}).read()'
        else:
            raw = f"open({PATH}, {arguments}).read()"
        if self.zeros:
            raw += '.replace("\\0", "")'
        if self.marked:
            raw += '.replace("\\ufeff", "")'
        if self.mark:
            raw += f".replace({literal(self.mark)}, {literal(dialects.STAND_IN)})"
        for old, new in self._unique_replacements():
            raw += f".replace({literal(old)}, {literal(new)}, 1)"
        return Load(call("pd.read_csv", f"io.StringIO({raw})", options), imports)

    def _unique_replacements(self):
        """Old and new text of each mended line, with its line ends so that it stands for that line only."""
        out = []
        for number, old, new in self.replacements:
            if self.original.count(old) > 1 or len(old) < 3:
                old, new = "\n" + old, "\n" + new
            out.append((old, new))
        return out

    def _run(self, load):
        return load.run(self.source.path)

    def remarks(self):
        """Warnings on ragged rows, names and blank lines."""
        layout, out = self.layout, []
        counted = Counter(len(row) for row in self.body)
        places = None
        if self.dialect.delimiter is not None and len(counted) > 1:
            usual = layout.width
            short = [index for index, row in enumerate(self.body) if len(row) < usual]
            long = [index for index, row in enumerate(self.body) if cells.span(row) > usual]
            places = self.places()
            kept = [index for index in range(layout.first, layout.end) if self.rows[index] and index not in set(layout.dropped)]
            for what, which in (("fewer", short), ("more", long)):
                if which:
                    lines = ", ".join(str(places[kept[index]] + 1) for index in which[:5])
                    fate = {"fewer": "missing cells are filled as empty",
                            "more": "the surplus cells are cut off" if self.cut else "the surplus cells are in extra columns"}[what]
                    out.append(f"{len(which)} row(s) have {what} than {usual} cells (line {lines}{'…' if len(which) > 5 else ''}): {fate}")
        if layout.names:
            clean = [name.strip() for name in layout.names]
            blank = [str(index + 1) for index, name in enumerate(clean) if not name]
            if blank:
                out.append(f"column(s) without a name: {', '.join(blank[:10])}{'…' if len(blank) > 10 else ''}")
            twice = [name for name, count in Counter(name for name in clean if name).items() if count > 1]
            if twice:
                out.append(f"column name(s) used more than once, numbered when loaded: {', '.join(columns.clip(name, 40) for name in twice[:5])}")
            if self.body and len(layout.names) > max(len(row) for row in self.body):
                out.append(f"the header names {len(layout.names)} columns, the rows have at most {max(len(row) for row in self.body)} cells")
            if len(layout.header) > 1:
                out.append(f"{len(layout.header)} header rows are joined into one name for each column")
        elif self.body:
            shown = ", ".join(columns.clip(cell, 20) for cell in self.body[0][:3])
            out.append(f"no header row was recognised: the first row ({shown}) counts as data and columns are numbered from 0")
        out += self._summaries()
        broken = sum(1 for row in self.body if any("\n" in cell for cell in row))
        if broken:
            out.append(f"{broken} row(s) have line breaks inside quoted cells")
        if self.dialect.skip_space:
            out.append("blanks after the delimiter are dropped")
        ends = [name for name, count in (("CRLF", self.original.count("\r\n")), ("LF", len(re.findall(r"(?<!\r)\n", self.original))),
                                         ("CR", len(re.findall(r"\r(?!\n)", self.original)))) if count]
        if len(ends) > 1 and not broken:
            out.append(f"mixed line ends: {' and '.join(ends)}")
        if layout.preamble:
            out.append(f"{layout.preamble} line(s) before the table are skipped")
        blank_lines = sum(1 for index in range(layout.first, min(layout.end, len(self.rows))) if not self.rows[index])
        if blank_lines:
            out.append(f"{blank_lines} blank line(s) are skipped")
        if self.dialect.comment:
            out.append(f"text after {self.dialect.comment} is read as comment")
        if re.search(r'(?m)(?:^|,) *"[^"\n]*"[^",\n ]', self.text[:200_000]) and self.dialect.delimiter == "," and not self.dialect.escape:
            out.append("quotes inside quoted cells are not doubled; check the text of such cells")
        return out


    def _summaries(self):
        """Warnings on rows that are no data like the others: units below the header, totals."""
        out = []
        if self.layout.names and len(self.body) > 2:
            first, rest = self.body[0], self.body[1:200]
            numeric = [column for column in range(min(self.width, len(first)))
                       if sum(1 for row in rest if column < len(row) and cells.kind(row[column]) == "number") >= 0.9 * len(rest)]
            labels = [first[column].strip() for column in numeric if first[column].strip() and cells.kind(first[column]) not in cells.VALUE_KINDS]
            if numeric and len(labels) >= max(1, 0.5 * len(numeric)) and all(len(label) <= 12 and label not in cells.NA_MARKERS for label in labels):
                out.append(f"the first row below the header looks like units or a second header ({columns.clip(', '.join(labels[:5]), 60)}); it counts as a row")
        totals = [row for row in self.body if TOTAL.match(next((cell.strip() for cell in row if cell.strip()), ""))]
        if totals and len(totals) <= 0.5 * len(self.body):
            label = next(cell.strip() for cell in totals[-1] if cell.strip())
            out.append(f"{len(totals)} row(s) look like totals of others (such as {columns.clip(label, 30)!r}); they count as rows: leave them out of sums")
        return out


def _distance(shape, expected):
    return abs(shape[0] - expected[0]) + 5 * abs(shape[1] - expected[1])


def _inferred(source):
    """Whether pandas infers the compression from the name."""
    return source.name.lower().endswith({"gzip": ".gz", "bz2": ".bz2", "xz": ".xz", "zstd": ".zst", "zip": ".zip"}[source.compression])


FIRST_OPTIONS = ("sep", "quotechar", "quoting", "escapechar")


def _head(options):
    return {key: options[key] for key in FIRST_OPTIONS if key in options}


def _tail(options):
    return {key: value for key, value in options.items() if key not in FIRST_OPTIONS}


def _ranges(first, more):
    """Source for the list of records to skip: a leading run and single ones."""
    rest = literal(sorted(set(more)))
    return rest if not first else f"[*range({len(first)}), {rest[1:]}"


def unique(names):
    """Names as pandas makes them: blank ones numbered, repeated ones counted."""
    seen, out = Counter(), []
    taken = set(names)
    for index, name in enumerate(names):
        name = name if name.strip() else f"Unnamed: {index}"
        fresh = name
        while seen[name] and fresh in taken | set(out):
            fresh = f"{name}.{seen[name]}"
            seen[name] += 1
        if not seen[name]:
            seen[name] = 1
        out.append(fresh)
    return out
