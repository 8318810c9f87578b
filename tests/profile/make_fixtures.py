"""Writes the data files of tests/fixtures/profile, each for one kind of fault or one format.

    python tests/profile/make_fixtures.py

The files are in the repository; run this after changing one here. Everything in them is made up.
"""

import bz2
import gzip
import io
import json
import lzma
import sqlite3
import sys
import tarfile
import zipfile
from datetime import date, datetime
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pyreadstat
from PIL import Image

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "profile"

PLAIN = "id,city,amount\n1,Oslo,10.5\n2,Bergen,\n3,Oslo,7.25\n4,Tromsø,3\n"
STOCK = "article;count;price\nlamp;12;3,50\nchair;7;24,90\ntable;3;120,00\ndesk;1;89,95\n"
GERMAN = "Größe;Straße;Preis\n1;Königsallee;2,5\n2;Mühlenweg;3,75\n3;Schloßplatz;4,25\n"
CHINESE = "城市,人口,日期\n北京,2189,2024-01-05\n上海,2487,2024-02-06\n广州,1868,2024-03-07\n成都,2094,2024-04-08\n"
ORDERS = [("2024-01-02", "A-1001", "Anna Berg", 3, "49.90"), ("2024-01-03", "A-1002", "Olaf Dahl", 1, "19.00"),
          ("2024-01-05", "A-1003", "Mia Lund", 2, "25.50"), ("2024-01-08", "B-2001", "Jon Vik", 7, "99.95"),
          ("2024-01-09", "B-2002", "Eva Moen", 4, "12.25"), ("2024-01-10", "B-2003", "Per Aas", 5, "33.10"),
          ("2024-01-12", "C-3001", "Lise Foss", 6, "71.00"), ("2024-01-15", "C-3002", "Nils Hagen", 8, "15.75"),
          ("2024-01-16", "C-3003", "Ida Strand", 9, "64.40"), ("2024-01-18", "D-4001", "Tor Bakke", 2, "8.80"),
          ("2024-01-19", "D-4002", "Siri Holm", 3, "27.30"), ("2024-01-22", "D-4003", "Odd Nes", 1, "45.60")]


def orders(change=lambda number, line: line, mark=","):
    """The orders as lines, each passed through `change(number, line)`; the header is number 0."""
    lines = [mark.join(["day", "code", "customer", "items", "total"])]
    lines += [mark.join([day, code, customer, str(items), total]) for day, code, customer, items, total in ORDERS]
    return "\n".join(change(number, line) for number, line in enumerate(lines)) + "\n"


def texts():
    """Delimited and plain text by name."""
    letters = ",".join(chr(97 + index % 26) for index in range(138))
    yield "plain.csv", PLAIN
    yield "semicolon_decimal_comma.csv", STOCK
    yield "tab.tsv", PLAIN.replace(",", "\t")
    yield "pipe.txt", PLAIN.replace(",", "|")
    yield "columns_of_blanks.txt", "time     level   flow\n00:00    1.5     20\n01:00    1.75    22\n02:00    1.625   19\n"
    yield "single_quotes.csv", "'name','note'\n'Ann','likes tea, coffee'\n'Bob','none, really'\n'Cleo','milk'\n"
    yield "backslash_escape.csv", 'part,label\n1,"3\\" nail, long"\n2,"5\\" bolt, short"\n3,"washer, flat"\n'
    yield "thousands.csv", 'region,sales\nNorth,"1,204"\nSouth,"12,310"\nEast,"998"\nWest,"1,002,450"\n'
    yield "dots_as_thousands.csv", "Datum;Wert;Anteil\n01.02.2024;1.234,56;12,5\n02.02.2024;234,10;7,25\n03.02.2024;1.000.000,00;3,0\n"
    yield "two_bars.csv", "id||name||note\n1||Ann||tall\n2||Bob||\n"
    yield "notes_below.csv", "day,n,m,k\n" + "".join(f"2024-01-0{n},{n},{n}.5,{n * n}\n" for n in range(1, 8)) + "provisional figures,,,\n"
    yield "other_table_below.csv", "day,n,m\n2024-01-01,1,2\n2024-01-02,3,4\n2024-01-03,5,6\n2024-01-04,7,8\n\nname,size,kind,place,code\na,1,x,y,z\nb,2,x,y,z\n"
    yield "preamble.csv", "Sales report,,\nprinted 2024-02-01,,\n,,\nmonth,units,value\nJan,10,2.5\nFeb,12,3.5\nMar,9,1.5\n"
    yield "title_of_two_cells.csv", "Recorded as,Sample 7\nwave,level\n400,98.1\n401,98.2\n402,98.4\n403,98.3\n404,98.9\n405,99.0\n"
    yield "two_header_rows.csv", "station,,depth,\nname,code,top,bottom\nLake,7,0.5,3.5\nFjord,9,1.5,8.25\nRiver,4,0.25,1.75\n"
    yield "header_again.csv", "code,count\ncode,count\nA,1\nB,2\nC,3\n"
    yield "no_header.csv", "2024-01-01,3.5,ok\n2024-01-02,4.5,ok\n2024-01-03,5.5,bad\n"
    yield "years_as_header.csv", "country,1952,1957,1962\nNorway,10.5,11.5,13.5\nSweden,8.5,9.9,12.3\nDenmark,9.7,11.1,13.6\n"
    yield "footer.csv", "city,pop,area\nOslo,709,454\nBergen,291,465\nStavanger,149,262\nSource: made up for a test\n"
    yield "comments.csv", "# made by a logger\n# two channels\na;b\n1;3\n# pause\n6;7\n"
    yield "wide_letters.csv", f"id,{letters}\n" + "".join(f"hhch_{row},{letters}\n" for row in range(6))
    yield "extra_delimiter_at_end.csv", "A,B,C,D\n1,2,3,4,\n5,6,7,8,\n9,10,11,12,\n"
    yield "equal_first_column.csv", "key,value\nsame,1\nsame,2\n"
    yield "one_empty_of_150.csv", "number,word\n" + "".join(f"{row},{'' if row == 77 else f'w{row}'}\n" for row in range(150))
    yield "missing_markers.csv", "text,kind\nNA,a\nN/A,b\nnull,c\nNULL,d\nNaN,e\nNone,f\n,g\n-,h\nIN,i\ninfinite,j\n"
    yield "wide_integers.csv", "id,name\n1643819529060935244,a\n1643819529060935245,b\n1643819529060935246,c\n"
    yield "date_with_one_number.csv", "name,Date,height\n" + "bob,2024/12/12,163\n" * 9 + "1,1,1\n"
    yield "header_and_blank_lines.csv", "bar\n\n\n"
    yield "country_codes.csv", 'country_code\n"IN"\n"IN"\n'
    yield "leading_zeros.csv", "zip,town\n00501,Holtsville\n02134,Allston\n90210,Beverly Hills\n"
    yield "zeros_as_text.csv", "code\n007\nA12\n010\n"
    yield "mixed_dates.csv", "day\n2024-01-05\n05/02/2024\n2024-03-01\n2024-03-02\n"
    yield "mostly_numbers.csv", "level\n1.5\n2.5\n3.5\nbroken\n4.5\n5.5\n"
    yield "ragged.csv", "a,b,c\n1,2,3\n4,5\n6,7,8,9\n10,11,12\n"
    yield "same_names.csv", "id,value,value,\n1,2,3,4\n5,6,7,8\n"
    yield "duplicate_rows.csv", "a,b\n1,x\n2,y\n1,x\n1,x\n"
    yield "blank_rows.csv", "id,name,age\n1,Jo,30\n,,\n2,Al,26\n"
    yield "open_quote.csv", 'a,b\n1,"never closed\n2,x\n3,y\n'
    yield "line_breaks_in_cells.csv", 'col,n\n"two\nlines",1\n"three\nmore\nlines",2\nplain,3\n'
    yield "mixed_line_ends.csv", "a,b\r\n1,2\n3,4\r\n5,6\n"
    yield "old_mac_line_ends.csv", "a,b\r1,2\r3,4\r"
    yield "one_column.csv", "length\n3\n4\n5\n"
    yield "one_value.csv", "32"
    yield "header_only.csv", "id,name\n"
    yield "blank_lines_first.csv", "\n\n\na,b\n1,2\n3,4\n"
    yield "missing_delimiter.csv", orders(lambda n, line: line.replace("2024-01-09,", "2024-01-09") if n == 5 else line)
    yield "surplus_delimiter.csv", orders(lambda n, line: line.replace("Mia Lund,", "Mia Lund,,") if n == 3 else line)
    yield "stray_quote.csv", orders(lambda n, line: line.replace("C-3001", '"C-3001') if n == 7 else line)
    yield "line_of_other_delimiter.csv", orders(lambda n, line: line.replace(",", " ") if n == 4 else line)
    yield "other_table_with_same_names.csv", orders() + "day,code,customer,items\n2024-02-01,E-1,Ann,1\n2024-02-02,E-2,Bob,2\n"
    yield "stacked_tables.csv", "kind,count\npear,3\nplum,4\n,\nkind,count\nfig,9\n"
    yield "table_twice.csv", orders() + orders()
    yield "fixed_width.txt", "ID   Name            City        Amount\n001  Anna Berg       New York      10.50\n002  Olaf Dahl       Oslo           3.25\n003  Mia van Lund    Los Angeles  120.00\n004  Jon Vik         Bergen         7.75\n"
    yield "two_colons.dat", "1::Night Train (1995)::Drama|Comedy\n2::Harbour (1996)::Drama\n3::The Long Road (1997)::Travel\n"
    yield "control_character.csv", "a\x01b\x01c\n1\x01x\x012\n3\x01y\x014\n5\x01z\x016\n"
    yield "tabs.xls", "id\tname\tamount\n1\tAnn\t2.5\n2\tBob\t3.5\n3\tCy\t4.5\n"
    yield "page.xls", "<html><body><table><tr><th>id</th><th>name</th></tr><tr><td>1</td><td>Ann</td></tr><tr><td>2</td><td>Bob</td></tr></table></body></html>"
    yield "page_of_an_error.csv", "<!DOCTYPE html>\n<html><head><title>403 Forbidden</title></head>\n<body><p>You may not, sorry.</p></body></html>\n"
    yield "spreadsheet_2003.xls", '<?xml version="1.0"?><Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"><Worksheet/></Workbook>'
    yield "records_in.csv", json.dumps([{"id": number, "name": f"n{number}"} for number in range(4)])
    yield "blanks_as_thousands.csv", "item;amount\nlamp;1\u202f234,50\nchair;12\u202f345,00\ndesk;999,25\n"
    yield "apostrophes_as_thousands.csv", "item,amount\nlamp,1'234.50\nchair,12'000.00\ndesk,999.00\n"
    yield "lakh.csv", 'item,amount\nlamp,"1,23,456.00"\nchair,"12,34,567.50"\ndesk,"999.00"\n'
    yield "amounts.csv", "item,share,price,result\na,12.5%,$1234.50,(1234)\nb,7%,$12.00,56\nc,100%,$3.10,(7)\n"
    yield "marks_for_missing.csv", "t,q\n12.5,3\n-999,4\n13.5,-\n-999,5\n11.0,6\n14,7\n"
    yield "units.csv", "time,level,flow\ns,m,m3/s\n0,1.5,20\n1,1.6,21\n2,1.7,22\n"
    yield "totals.csv", "region,city,n\nN,a,1\nN,b,2\nSubtotal,,3\nS,c,4\nS,d,5\nSubtotal,,9\nGrand total,,12\n"
    yield "records.jsonl", '{"id": 1, "ok": true}\n{"id": 2, "ok": false}\n{"id": 3, "ok": true, "note": "late"}\n'
    yield "lists.jsonl", '["id", "name"]\n[1, "Ann"]\n[2, "Bob"]\n'
    yield "wide_integers.json", json.dumps([{"n": 10292320860000001}, {"n": 10292320860000003}])
    yield "under_a_key.json", json.dumps({"version": 2, "items": [{"id": 1, "tags": ["a"]}, {"id": 2, "tags": []}, {"id": 3, "tags": ["b"]}]})
    yield "columns.json", json.dumps({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    yield "by_key.json", json.dumps({"ann": {"age": 3, "size": 95}, "bob": {"age": 5, "size": 110}})
    yield "one_record.json", json.dumps({"name": "Ann", "age": 3})
    yield "values.json", "[1, 2, 3]"
    yield "broken.json", '{"a": 1,\n "b": [1, 2,,3]}\n'
    yield "broken.jsonl", '{"a": 1}\n{"a": 2\n{"a": 3}\n'
    yield "notes.txt", "Dear Ann,\n\nthe sensor broke, it seems. We will, of course, replace it.\n\nYours, Bob\n"
    yield "service.log", "2024-01-01 10:00:01 INFO start\n2024-01-01 10:00:02 WARN disk at 91 %, cleaning\n2024-01-01 10:00:09 INFO done\n"
    yield "readme.md", "# Title\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"


def encoded():
    """Text in other encodings by name."""
    yield "gb18030.csv", CHINESE.encode("gb18030")
    yield "utf16.csv", CHINESE.encode("utf-16")
    yield "utf16_without_mark.csv", PLAIN.encode("utf-16-le")
    yield "utf8_with_mark.csv", b"\xef\xbb\xbf" + CHINESE.encode()
    yield "latin1.csv", GERMAN.encode("latin-1")
    yield "shift_jis.csv", "名前,年齢\n山田太郎,30\n佐藤花子,28\n鈴木一郎,32\n".encode("cp932")
    yield "broken_utf8.csv", "name,city\nÅse,Ålesund\nØystein,Bodø\nKåre,Tromsø\n".encode().replace("Bodø".encode(), b"Bod\xff")
    yield "zero_bytes.csv", b"a,b\n1,x\n2,y\0z\n3,w\n"
    yield "utf32_without_mark.csv", PLAIN.encode("utf-32-le")
    yield "marks_inside.csv", b"\xef\xbb\xbfa,b\n1,2\n\xef\xbb\xbfa,b\n3,4\n"
    yield "archive.tar.gz", gzip.compress(tar("a.csv", PLAIN.encode()), mtime=0)
    yield "letter.docx", zipped("word/document.xml", b"<document/>")
    yield "truncated.csv.gz", gzip.compress((PLAIN * 200).encode(), mtime=0)[:-60]
    yield "plain.csv.gz", gzip.compress(PLAIN.encode(), mtime=0)
    yield "plain.csv.bz2", bz2.compress(PLAIN.encode())
    yield "plain.csv.xz", lzma.compress(PLAIN.encode())
    yield "not_really.csv.gz", b"no gzip here"
    yield "empty.csv", b""
    yield "pickle.pkl", b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00]\x94(K\x01K\x02K\x03e."
    yield "document.pdf", b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n"
    yield "broken.parquet", b"PAR1" + bytes(range(64)) + b"\x10\0\0\0PAR1"
    yield "broken.png", b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR\0\0"
    yield "not_a_workbook.xlsx", b"hello, this is text"


def tar(name, content):
    """A tar archive of one file."""
    out, info = io.BytesIO(), tarfile.TarInfo(name)
    info.size = len(content)
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def zipped(name, content):
    """A zip archive of one file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def foreign():
    """Files of other programs."""
    frame = pd.DataFrame({"id": [1, 2, 3], "name": ["Ann", "Bob", "Cy"], "score": [1.5, None, 3.5]})
    frame.to_stata(FOLDER / "people.dta", write_index=False, time_stamp=datetime(2024, 1, 1))
    pyreadstat.write_sav(frame, str(FOLDER / "people.sav"))
    pyreadstat.write_xport(frame, str(FOLDER / "people.xpt"))
    frame.to_orc(FOLDER / "people.orc", index=False)
    polars.from_pandas(frame).write_avro(FOLDER / "people.avro")


def workbooks():
    """Workbooks with several sheets, titles, merged headers, dates, errors."""
    book = openpyxl.Workbook()
    first = book.active
    first.title = "Summary"
    for row in [["region", "total"], ["North", 3], ["South", 4.5]]:
        first.append(row)
    data = book.create_sheet("Data")
    data.append(["day", "value"])
    for number in range(1, 41):
        data.append([datetime(2024, 1, 1 + number % 28), number])
    secret = book.create_sheet("Secret")
    secret.sheet_state = "hidden"
    secret.append(["k"])
    secret.append([1])
    book.create_sheet("Empty")
    book.save(FOLDER / "sheets.xlsx")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Report"
    sheet["A1"] = "Progress of the works"
    for place, label in {"A4": "Site", "B4": "Current", "D4": "Total", "B5": "Phase 1", "C5": "Phase 2", "D5": "all"}.items():
        sheet[place] = label
    sheet.merge_cells("B4:C4")
    for number, row in enumerate([["Quay", 3, 4, 7], ["Bridge", 1, 2, 3], ["Tunnel", 5, 8, 13]]):
        for column, value in enumerate(row):
            sheet.cell(row=6 + number, column=1 + column, value=value)
    book.save(FOLDER / "merged_header.xlsx")
    book = openpyxl.Workbook()
    for row in [["Report of the week"], [], ["day", "n", "m", "k"], ["2024-01-01", 1, 2, 3], [], ["2024-01-03", 7, 8, 9],
                ["2024-01-04", 7, 8, 9], ["2024-01-05", 7, 8, 9], ["2024-01-06", 1, 1, 1], ["2024-01-07", 2, 2, 2], ["provisional figures"]]:
        book.active.append(row)
    book.save(FOLDER / "report.xlsx")
    book = openpyxl.Workbook()
    sheet = book.active
    for row in [["a", "b"], [1, "=1/0"], [2, "=A2"]]:
        sheet.append(row)
    book.save(FOLDER / "formulas.xlsx")


def columnar():
    """Parquet, Feather, arrays and a database."""
    pq.write_table(pa.table({"when": pa.array([None] * 15, pa.timestamp("us")), "ok": [True, False, True] * 5}), FOLDER / "all_null.parquet")
    lists = pa.table({"id": list(range(20)), "series": [[float(n) for n in range(50)]] * 20})
    pq.write_table(lists, FOLDER / "lists.parq")
    frame = pd.DataFrame({"city": ["Oslo", None, "Bodø"], "n": pd.array([1, None, 3], dtype="Int64"), "day": [date(2024, 1, 1)] * 3})
    pq.write_table(pa.Table.from_pandas(frame), FOLDER / "named_without_suffix")
    pa.feather.write_feather(frame, FOLDER / "cities.feather")
    with pa.ipc.new_stream(str(FOLDER / "stream.arrow"), pa.table({"a": [1, 2, 3]}).schema) as writer:
        writer.write_table(pa.table({"a": [1, 2, 3]}))
    np.save(FOLDER / "matrix.npy", np.arange(12.0).reshape(4, 3))
    np.save(FOLDER / "cube.npy", np.arange(24).reshape(2, 3, 4))
    np.save(FOLDER / "objects.npy", np.array([{"a": 1}, None], dtype=object), allow_pickle=True)
    np.savez(FOLDER / "several.npz", level=np.array([1.5, 2.5]), image=np.zeros((2, 2, 3)))
    path = FOLDER / "shop.sqlite"
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as connection:
        connection.executescript("CREATE TABLE item (id INTEGER, name TEXT, price REAL); CREATE TABLE empty (x); "
                                 "INSERT INTO item VALUES (1, 'pen', 1.5), (2, 'ink', NULL), (3, 'pen', 2.5);"
                                 "CREATE VIEW dear AS SELECT * FROM item WHERE price > 2;")
    connection.close()


def archives():
    """Zip and Zstandard archives, and images."""
    for name, content in (("plain.csv.zst", PLAIN), ("records.jsonl.zst", '{"id": 1}\n{"id": 2}\n')):
        with pa.output_stream(str(FOLDER / name), compression="zstd") as stream:
            stream.write(content.encode())
    with zipfile.ZipFile(FOLDER / "plain.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("data/plain.csv"), PLAIN)
    with zipfile.ZipFile(FOLDER / "two_tables.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("a.csv"), PLAIN)
        archive.writestr(zipfile.ZipInfo("b.csv"), STOCK)
    picture = Image.new("RGB", (40, 20), (200, 30, 10))
    exif = picture.getexif()
    exif[274] = 6
    picture.save(FOLDER / "turned.jpg", exif=exif)
    picture.convert("P").save(FOLDER / "palette.gif")
    picture.save(FOLDER / "picture.webp")


def main():
    """Write every fixture."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, content in texts():
        (FOLDER / name).write_bytes(content.encode())
    for name, content in encoded():
        (FOLDER / name).write_bytes(content)
    workbooks()
    columnar()
    archives()
    foreign()
    print(f"{len(list(FOLDER.iterdir()))} files in {FOLDER}", file=sys.stderr)


if __name__ == "__main__":
    main()
