"""The encoding of text: byte order mark, UTF-8, UTF-16 without a mark, then legacy code pages.

Legacy encodings are decided by what the bytes would spell: multi-byte East Asian ones by the share of
their characters that lie in the everyday blocks of each standard, single-byte ones by how their high bytes sit
in words (inside Latin words, or forming whole words of another script).
"""

import codecs
import re
from collections import namedtuple

from . import pages

Charset = namedtuple("Charset", "name codec bom sure note")
Charset.__doc__ = "name as reported, codec for Python, bom: bool, sure: bool, note: str or ''."

BOMS = [
    (codecs.BOM_UTF8, "utf-8", "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32", "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "utf-16"),
]

# Names that a person knows, by Python codec.
LABELS = {"cp1252": "windows-1252", "cp1251": "windows-1251", "cp1250": "windows-1250", "cp1254": "windows-1254", "cp1253": "windows-1253",
          "cp1255": "windows-1255", "cp1256": "windows-1256", "cp1257": "windows-1257", "iso8859-2": "iso-8859-2", "iso8859-7": "iso-8859-7", "iso8859-5": "iso-8859-5",
          "cp932": "shift_jis", "cp949": "cp949"}

# Characters that fill much of any Chinese table: the most frequent ones, and those of usual column names.
COMMON_HANZI = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经"
    "么去法学如都同现当没动面起看定天分还进好小部其些主样理心本前开但因只从想实日者意无力它与长把机十民第公此已工使情明性知全三"
    "又关点正业外将两高间由问很最重并物手应向头文体政美相见被利什二等产或新己制身果加西月话合回特代内信表化老给世位次度门任常先"
    "海通教原东声提立及比员解水名真论处走义各入几口认条平系气题活更别打女变四总何电数安少报才结反受目太量再感建务做接必场件计管"
    "期市直资命山金指许统区保至队形社便空决治展马科司五基书非则听白却界达光放强即难且权思王完设式色路记南品住告类求据程北边张该"
    "交规万取格望术领共确传师观清今切院让识候带导争运姓龄价编号省县京城男李刘陈杨赵周收支额率单订商店客户")
SCRIPT_PAGES = ["cp1251", "koi8-r", "cp866", "iso8859-5", "iso8859-7", "cp1253", "cp1255", "cp1256", "tis-620", "mac_cyrillic"]
FREQUENT = {
    "cyrillic": set("оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъёіїєґ"),
    "greek": set("αοιετσνηυρπκμλςγδωχθφβξζψάέήίόύώ"),
    "hebrew": set("אבגדהוזחטיכךלמםנןסעפףצץקרשת"),
    "arabic": set("ابتثجحخدذرزسشصضطظعغفقكلمنهويىةأإآؤئء"),
    "thai": {chr(code) for code in range(0x0E01, 0x0E5B)},
}


def decode_failure(data):
    """Where UTF-8 fails: (line, byte offset in file, bytes) of the first bad sequence, or None."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return line, error.start, data[error.start: error.end]
    return None


def detect(data, complete=True):
    """The `Charset` of the bytes; `complete` says that they are the whole file, not its beginning."""
    for mark, name, codec in BOMS:
        if data.startswith(mark):
            return Charset(name, codec, True, True, "")
    wide = utf16_without_mark(data)
    if wide:
        return Charset(wide, wide, False, True, f"no byte order mark; {wide[:6].upper()} by its pattern of zero bytes")
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(data, final=complete)
        return Charset("utf-8", "utf-8", False, True, "")
    except UnicodeDecodeError:
        pass
    mostly = _mostly_utf8(data)
    if mostly:
        return mostly
    return _legacy(data)


def utf16_without_mark(data):
    """`utf-16-le` or `utf-16-be` when every other byte is zero, as in Latin text of that encoding; else None."""
    head = data[:4096]
    if len(head) < 6 or b"\0" not in head:
        return None
    fourth = [head[place::4].count(0) / (len(head) / 4) for place in range(4)]
    if min(fourth[1:]) > 0.9 and fourth[0] < 0.1:
        return "utf-32-le"
    if min(fourth[:3]) > 0.9 and fourth[3] < 0.1:
        return "utf-32-be"
    even, odd = head[0::2].count(0), head[1::2].count(0)
    half = len(head) / 2
    if odd > 0.6 * half and even < 0.1 * half:
        return "utf-16-le"
    if even > 0.6 * half and odd < 0.1 * half:
        return "utf-16-be"
    return None


def _mostly_utf8(data):
    """UTF-8 with a few damaged places: most multi-byte sequences are valid."""
    good = len(re.findall(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}", data))
    high = sum(data.count(bytes([value])) for value in range(0xC0, 0xF8)) if len(data) < 1 << 22 else good
    if good < 3 or good < 0.9 * max(high, 1):
        return None
    line, offset, bad = decode_failure(data)
    note = f"invalid UTF-8 bytes {bad[:4].hex(' ')} at line {line} (byte {offset}); they are replaced when read"
    return Charset("utf-8", "utf-8", False, False, note)


def _legacy(data):
    lines = [line for line in data.split(b"\n") if any(byte > 127 for byte in line)]
    sample = b"\n".join(lines)[:200_000]
    scored = sorted(((score, codec) for codec, score in _multibyte_scores(sample)), reverse=True)
    if scored and scored[0][0] >= 0.6:
        codec = scored[0][1]
        sure = scored[0][0] > 0.8 and len(sample) > 40
        return Charset(LABELS.get(codec, codec), codec, False, sure, f"encoding recognised as {LABELS.get(codec, codec)} by its characters")
    codec = _single_byte(sample)
    name = LABELS.get(codec, codec)
    return Charset(name, codec, False, False, f"not UTF-8; read as {name}, which was guessed from {len(lines)} line(s) with special characters")


def _multibyte_scores(sample):
    """Share of high characters that are everyday ones, for each East Asian codec that decodes the sample."""
    high = sum(1 for byte in sample if byte > 127)
    for codec in ("gb18030", "big5", "cp932", "euc_jp", "cp949"):
        try:
            text = sample.decode(codec)
        except UnicodeDecodeError as error:
            # Only a character cut in two at the end of a sample is no objection.
            if error.end < len(sample) or "incomplete" not in error.reason or len(sample) < 1000:
                continue
            text = sample[: error.start].decode(codec, "ignore")
        wide = [char for char in text if ord(char) > 127]
        if not wide:
            continue
        score = sum(_everyday(codec, char) for char in wide) / len(wide)
        # A pair of bytes for one character: fewer bytes for each means that single high bytes were letters.
        if codec not in ("cp932", "big5") and high < 1.6 * len(wide):
            score -= 0.5
        # Big5 draws half of its second bytes from the upper half; signs before letters (20°C) never do.
        if codec == "big5" and not re.search(rb"[\xa1-\xfe][\xa1-\xfe]", sample):
            score -= 0.6
        score *= _separation(codec, text)
        if codec == "gb18030" and _all_hangul_rows(sample) and sum(char in COMMON_HANZI for char in wide) < 0.35 * len(wide):
            score *= 0.9
        yield codec, score


def _all_hangul_rows(sample):
    """Whether every pair of high bytes lies in the rows that Korean syllables fill; Chinese text goes beyond them."""
    pairs = re.findall(rb"[\x81-\xfe][\x41-\xfe]", sample)
    return all(0xB0 <= pair[0] <= 0xC8 and pair[1] >= 0xA1 for pair in pairs)


def _everyday(codec, char):
    point = ord(char)
    if 0x3001 <= point <= 0x3011 or 0xFF01 <= point <= 0xFF5E or char in "“”‘’…—·℃、。":
        return 0.8
    if codec in ("cp932", "euc_jp"):
        if 0x3041 <= point <= 0x3096 or 0x30A1 <= point <= 0x30FC:
            return 1.0
        if 0xFF61 <= point <= 0xFF9F:
            return 0.1
        return 0.85 if _level_one(char, "euc_jp", 0xB0, 0xCF) else 0.1
    if codec == "cp949":
        return 1.0 if _level_one(char, "euc_kr", 0xB0, 0xC8) else 0.1
    if codec == "big5":
        return 0.95 if _level_one(char, "big5", 0xA4, 0xC6) else 0.15
    return 1.0 if _level_one(char, "gb2312", 0xB0, 0xD7) else 0.15


def _level_one(char, codec, first, last):
    try:
        raw = char.encode(codec)
    except UnicodeEncodeError:
        return False
    return len(raw) == 2 and first <= raw[0] <= last


def _separation(codec, text):
    """Lower when wide characters sit inside Latin words, as mistaken accented letters do."""
    mixed = len(re.findall(r"[a-z][^\x00-\x7f][a-z]", text))
    wide = sum(1 for char in text if ord(char) > 127)
    return 1.0 - min(0.9, 1.5 * mixed / max(wide, 1))


def _single_byte(sample):
    """The single-byte code page whose letters form the likeliest words."""
    runs = re.findall(rb"[A-Za-z\x80-\xff]+", sample)
    mixed = sum(1 for run in runs if any(b > 127 for b in run) and any(b < 128 for b in run))
    whole = sum(1 for run in runs if all(b > 127 for b in run) and len(run) > 2)
    if whole > mixed:
        high = [byte for byte in sample if byte > 127]
        # Hebrew has no capitals, so it stays in one block of bytes, where Cyrillic has its vowels at five places.
        vowels = sum(1 for byte in high if byte in b"\xe0\xe5\xe8\xee\xf3")
        if all(0xE0 <= byte <= 0xFA for byte in high) and vowels < 0.3 * len(high):
            return "cp1255"
        best = max(SCRIPT_PAGES, key=lambda codec: _script_score(sample, codec))
        if _script_score(sample, best) > 0.55:
            return best
    codec, likeness = pages.likeliest(sample)
    if codec and likeness > 0.5:
        return codec
    try:
        sample.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def _script_score(sample, codec):
    try:
        text = sample.decode(codec)
    except UnicodeDecodeError:
        return 0.0
    high = [char for char in text if ord(char) > 127]
    if not high:
        return 0.0
    best = max(sum(1 for c in high if c.lower() in letters) / len(high) for letters in FREQUENT.values())
    words = re.findall(r"[^\W\d_]{2,}", text)
    # Upper case belongs at the front of a word or fills it.
    odd = sum(1 for word in words if not (word.islower() or word.istitle() or word.isupper() or word.lower() == word.upper()))
    common = sum(1 for c in high if c.lower() in "оеаинтсрαοιετσνηוליהתالينمو")
    return best - odd / max(len(words), 1) + 0.3 * common / len(high)
