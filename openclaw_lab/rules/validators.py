"""A found text in, whether it is what its rule looks for out: checks that no pattern can make, by name.

The set is closed: the exported plugin has the same checks in JavaScript (`exports/plugin_js/validators.js`). Rules name
them; users cannot add any. A check sees what was found and nothing around it; only ASCII digits and letters count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from openclaw_lab.rules import credentials
from openclaw_lab.rules.credentials import digits, small
from openclaw_lab.rules.pattern import compile_js

# --- numbers with a check digit -----------------------------------------------------------------------------------


def luhn(text: str) -> bool:
    """Whether the digits of a text pass the check of bank card numbers (ISO/IEC 7812-1, annex B)."""
    values = [int(char) for char in digits(text)]
    doubled = [value * 2 - 9 if value > 4 else value * 2 for value in values[-2::-2]]
    return bool(values) and (sum(values[-1::-2]) + sum(doubled)) % 10 == 0


def bank_card(text: str) -> bool:
    """A card number: 13 to 19 digits that begin with 1 to 6, pass the Luhn check and are not one digit repeated."""
    number = digits(text)
    return 13 <= len(number) <= 19 and "1" <= number[0] <= "6" and len(set(number)) > 1 and luhn(number)


def cn_id(text: str) -> bool:
    """A Chinese citizen's number of 18 characters: region, date of birth, check character (GB 11643-1999)."""
    number = _plain(text)
    if not re.fullmatch("[0-9]{17}[0-9X]", number) or not (_region(number) and _date(number[6:14])):
        return False
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    total = sum(int(char) * weight for char, weight in zip(number, weights, strict=False))
    return "10X98765432"[total % 11] == number[17]


def cn_id_15(text: str) -> bool:
    """A Chinese citizen's number in its form before 1999: 15 digits, the date of birth without its century."""
    return bool(re.fullmatch("[0-9]{15}", text)) and _region(text) and _date(f"19{text[6:12]}")


def cpf(text: str) -> bool:
    """A Brazilian CPF: eleven digits, the last two are check digits (Receita Federal, mod 11)."""
    number = digits(text)
    return len(number) == 11 and len(set(number)) > 1 and all(_cpf_digit(number[:n]) == number[n] for n in (9, 10))


def iban(text: str) -> bool:
    """An account number as ISO 13616 has it: the length its country has, and 1 as remainder of 97 (ISO/IEC 7064)."""
    number = _plain(text)
    if not re.fullmatch("[A-Z]{2}[0-9]{2}[A-Z0-9]+", number) or len(number) != IBAN_LENGTHS.get(number[:2]):
        return False
    return int("".join(str(int(char, 36)) for char in number[4:] + number[:4])) % 97 == 1


def ssn(text: str) -> bool:
    """A US social security number: no area 000, 666 or 9xx, no group 00, no serial 0000 (SSA), none from an advert."""
    number = digits(text)
    if len(number) != 9 or number in ("078051120", "219099999", "111111111", "333333333"):
        return False
    return number[:3] not in ("000", "666") and number[0] != "9" and number[3:5] != "00" and number[5:] != "0000"


def _plain(text: str) -> str:
    """The text without blanks and dashes, its ASCII letters as capitals."""
    return re.sub("[a-z]+", lambda match: match.group().upper(), _without(text, " -"))


def _without(text: str, chars: str) -> str:
    return "".join(char for char in text if char not in chars)


def _region(number: str) -> bool:
    """Whether a number begins with a province of GB/T 2260."""
    return int(number[:2]) in _PROVINCES


def _date(text: str) -> bool:
    """Whether YYYYMMDD is a day of a life: 1850 to 2099, with leap years."""
    year, month, day = int(text[:4]), int(text[4:6]), int(text[6:8])
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return 1850 <= year < 2100 and 1 <= month <= 12 and 1 <= day <= days[month - 1]


def _cpf_digit(head: str) -> str:
    total = sum(int(char) * weight for char, weight in zip(head, range(len(head) + 1, 1, -1), strict=True))
    return str(total * 10 % 11 % 10)


_PROVINCES = frozenset(
    [*range(11, 16), *range(21, 24), *range(31, 38), *range(41, 47), *range(50, 55), *range(61, 66), 71, 81, 82, 83]
)
# The IBAN registry (SWIFT, release 97): characters of a number, by country.
_IBAN = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 "
    "EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 "
    "KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 "
    "PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 "
    "UA29 VA22 VG24 XK20 YE30 "
)
IBAN_LENGTHS: Mapping[str, int] = MappingProxyType({item[:2]: int(item[2:]) for item in _IBAN.split()})

# --- addresses of machines, plates ----------------------------------------------------------------------------------


def ipv4(text: str) -> bool:
    """An IPv4 address, perhaps with the length of a prefix, or two as a range: four numbers to 255, no noughts ahead.

    What is the same on every machine is nobody's: networks 0 and 127 (RFC 1122), a netmask, a cloud's metadata service.
    Nor are the roots of object identifiers (ITU-T X.660) that have four numbers: of the internet, X.500, curves.
    """
    return all(_ipv4(each) for each in text.split("/")[0].split("-"))


def _ipv4(text: str) -> bool:
    parts = text.split(".")
    if len(parts) != 4 or not all(re.fullmatch("0|[1-9][0-9]{0,2}", part) and int(part) < 256 for part in parts):
        return False
    if _OID.search(text):
        return False
    return parts[0] not in ("0", "127") and not (parts[0] == "255" and parts[3] in _MASK_ENDS) and text not in _METADATA


_OID = re.compile(r"^(?:1\.3\.6\.1|1\.3\.14\.3|1\.3\.101\.11[0-9]|1\.3\.132\.0|2\.5\.(?:4|8|29)\.[0-9]+)$")
_MASK_ENDS = ("0", "128", "192", "224", "240", "248", "252", "254")
_METADATA = ("169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16")


def ipv6(text: str) -> bool:
    """An IPv6 address (RFC 4291) that cannot be code, a time or a hardware address.

    A compressed one needs a digit, and where it has one or two groups a first one that networks in use begin with.
    Loopback is the same on every machine.
    """
    groups = _ipv6_groups(text.split("/")[0].split("%")[0])
    if groups is None:
        return False
    left, right = groups
    if _LOOPBACK.search(text):
        return False
    if not left and not right:
        return "/" in text
    if right is None:
        return len(left) == 8 and any(len(group) > 2 for group in left)
    if len(left) + len(right) > 7 or not re.search("[0-9]", text):
        return False
    known = not left or re.fullmatch("[23][0-9a-f]{3}|f[cdef][0-9a-f]{2}|64", small(left[0])) is not None
    if not right:
        return known and (len(left) > 1 or "/" in text)
    return known or len(left) + len(right) > 2


_LOOPBACK = re.compile(r"^(?:::|(?:0{1,4}:){7})0{0,3}1(?:[/%]|$)")


def _ipv6_groups(text: str) -> tuple[list[str], list[str] | None] | None:
    """The groups before and after `::` (None without one), a dotted tail as two groups; None for what is no address."""
    halves = text.split("::")
    if len(halves) > 2:
        return None
    lists = [half.split(":") if half else [] for half in halves]
    if lists[-1] and "." in lists[-1][-1]:
        if not re.fullmatch(r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}", lists[-1][-1]) or any(
            int(part) > 255 for part in lists[-1][-1].split(".")
        ):
            return None
        lists[-1][-1:] = ["7f00", "0001"]
    if not all(re.fullmatch("[0-9a-fA-F]{1,4}", group) for half in lists for group in half):
        return None
    return lists[0], lists[1] if len(lists) > 1 else None


def mac(text: str) -> bool:
    """A hardware address (IEEE 802): neither broadcast nor nought, and in groups with dashes or dots not all digits."""
    number = small(_without(text, ":-."))
    if not re.fullmatch("[0-9a-f]{12}", number) or len(set(number)) == 1:
        return False
    return ":" in text or bool(re.search("[a-f]", number)) or number[:2] == "00"


def plate(text: str) -> bool:
    """A Chinese number plate as GA 36-2018 numbers them: at most two letters, never I or O; new energy has six places.

    A letter alone may not tell a plate from a word in capitals behind one of the provinces' signs.
    """
    rest = _PLATE_START.sub("", text)
    if len(rest) == 5 and rest[4] in "挂学警港澳试超":
        return len(digits(rest)) >= 2
    if len(rest) == 5:
        return bool(re.fullmatch("[A-HJ-NP-Z0-9]{5}", rest)) and len(digits(rest)) >= 3
    return bool(re.fullmatch("[A-HJK][A-HJ-NP-Z0-9][0-9]{4}|[0-9]{5}[A-HJK]", rest))


_PLATE_START = compile_js("^[\\u4e00-\\u9fff][A-Z][^A-Z0-9]?")

# --- phones ---------------------------------------------------------------------------------------------------------


def phone(text: str) -> bool:
    """A number that stands behind a word for phones: 7 to 15 digits (ITU-T E.164), no date, years or decimal."""
    number = digits(text)
    if not 7 <= len(number) <= 15 or len(set(number)) == 1 or _NO_PHONE.search(text):
        return False
    if "+" in text:
        return intl_phone(text)
    bare = len(re.findall("[0-9]+", text)) == 1
    return not bare or (len(number) >= 8 and re.fullmatch("(?:19|20)[0-9]{6}", number) is None)


def intl_phone(text: str) -> bool:
    """A number with a country code: a code in use, and as many digits behind it as that country has (ITU-T E.164)."""
    number = digits(re.split("[x#]", small(text).replace("(0)", ""))[0])
    for size in (1, 2, 3):
        low, high = CALLING_CODES.get(number[:size], (0, 0))
        if high:
            return low <= len(number) - size <= high and len(set(number)) > 2
    return False


def nanp(text: str) -> bool:
    """A North American number: ten digits, perhaps behind a 1; no area or exchange such as 911."""
    number = digits(re.split("[x#]", small(text))[0])
    number = number[1:] if len(number) == 11 and number[0] == "1" else number
    return len(number) == 10 and number[0] > "1" and number[3] > "0" and "11" not in (number[1:3], number[4:6])


def cn_mobile(text: str) -> bool:
    """A number that begins with a digit: its rule takes the numbers of orders with their labels, so that they stay."""
    return "0" <= text[:1] <= "9"


def email(text: str) -> bool:
    """An address: its rules take the login of a URL, from `://` on, so that it stays for the rule for its password."""
    return text[:1] != ":"


_NO_PHONE = compile_js(
    r"^[0-9]+\.[0-9]+$|^[0-9]{1,3}(?:\.[0-9]{1,3}){3}$|(?:19|20)[0-9]{2}[-/. ](?:0[1-9]|1[0-2]|[1-9])[-/. ][0-9]"
    r"|^(?:19|20)[0-9]{2} ?[-/] ?(?:19|20)[0-9]{2}$|^[0-9]{1,2}[-/.][0-9]{1,2}[-/.](?:19|20)[0-9]{2}"
)
# Digits of a national number, by country code (ITU-T E.164 assignments and national plans).
_SHORT_CODES = (
    "20 27 30 31 32 33 34 36 39 40 41 45 48 51 52 53 54 55 56 57 58 60 61 62 63 65 66 81 82 84 86 90 92 93 94 95 98"
)
_LONG_CODES = (
    *range(210, 300), *range(350, 390), *range(420, 424), *range(500, 510), *range(590, 600), *range(670, 693),
    *range(850, 857), 880, 886, *range(960, 980), *range(992, 999),
)  # fmt: skip
CALLING_CODES: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        **dict.fromkeys(map(str, _LONG_CODES), (5, 12)), **dict.fromkeys(_SHORT_CODES.split(), (8, 11)),
        "1": (10, 10), "7": (10, 10), "43": (6, 13), "44": (9, 11), "46": (7, 10), "47": (8, 8), "49": (6, 13),
        "64": (8, 10), "91": (10, 10),
    }
)  # fmt: skip

VALIDATORS: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {
        check.__name__: check
        for check in (
            bank_card, cn_id, cn_id_15, cn_mobile, cpf, email, iban, intl_phone, ipv4, ipv6, luhn, mac, nanp, phone,
            plate, ssn,
            credentials.artifactory, credentials.basic_auth, credentials.bearer, credentials.cookie, credentials.jwt,
            credentials.mixed_token, credentials.password, credentials.password_plain, credentials.secret,
            credentials.strong_password, credentials.url_password, credentials.url_secret,
        )
    }
)  # fmt: skip
