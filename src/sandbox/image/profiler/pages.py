"""Which single-byte code page Latin text is in: the one in which its high bytes are letters of one language, or usual signs."""

import re

# Accented letters of languages, by the family of code pages that has them.
WESTERN = ["éèêëàâîïôûùüçœæ", "äöüß", "áéíóúñüºª¿¡", "ãõáéíóúâêôàç", "àèéìòù", "åäöéøæ", "áéíóúýþðæö", "ëïéèöü"]
CENTRAL = ["ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áéíóöőúüű", "ăâîșțşţ", "čćđšž", "áäčďéíĺľňóôŕšťúýž", "äöüß"]
TURKISH = ["çğıöşüâî"]
BALTIC = ["āčēģīķļņšūž", "ąčęėįšųūž", "äöõüšž"]
# Likeliest first: of equal readings the first is taken. Western text of DOS and of old Macs is rarer than that of Windows.
PAGES = [("cp1252", WESTERN), ("cp1250", CENTRAL), ("iso8859-2", CENTRAL), ("cp1254", TURKISH), ("mac_roman", WESTERN), ("cp850", WESTERN),
         ("cp437", WESTERN), ("cp852", CENTRAL), ("cp1257", BALTIC), ("mac_latin2", CENTRAL), ("cp857", TURKISH)]
SIGNS = set("€£¥§©®°²³µ·«»‘’“”„–—…•±×½¼¾¿¡ºª\u00a0")
# A reading must be this much likelier than a more usual one to be taken instead.
MARGIN = 0.1


def likeliest(sample):
    """The codec of the likeliest reading of the bytes and its likeness between 0 and 1."""
    best, value = None, 0.0
    for codec, languages in PAGES:
        try:
            text = sample.decode(codec)
        except UnicodeDecodeError:
            continue
        likeness = _likeness(text, languages)
        if best is None or likeness > value + MARGIN:
            best, value = codec, likeness
    return best, value


def _likeness(text, languages):
    """The share of the special characters that are letters of one of the languages in their place, or usual signs."""
    high = [(match.group(), text[max(match.start() - 1, 0): match.start()], text[match.end(): match.end() + 1])
            for match in re.finditer(r"[^\x00-\x7f]", text[:100_000])]
    if not high:
        return 0.0
    best = 0.0
    for letters in languages:
        if "þ" in letters and not re.search("[áíóæ]", text, re.IGNORECASE):
            # Without the long vowels of Icelandic its consonants are those of Turkish.
            continue
        good = 0.0
        for char, before, after in high:
            inside = before.isalpha() and after.isalpha()
            if char.isalpha():
                # A capital after a small letter belongs to no word.
                good += char.lower() in letters and not (char.isupper() and before.islower())
            elif char in SIGNS:
                good += 0.9 if not inside or char in "’‘" else 0.0
        best = max(best, good / len(high))
    return best
