"""A key of an object in, the name of the secret that its value is out: `{"password": "x"}` is told by its key alone.

A key that names a number (a phone, a card, an identity) tells it of values that look like one, in quotes or not.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from openclaw_lab.redaction.spans import Found
from openclaw_lab.rules.relaxed import escaped
from openclaw_lab.rules.sieve import Sieve, Sought

# what a key ends with, in lower case and without `_`, `-`, `.` and blanks -> the name that stands for its value
_SECRETS = (
    (("password", "passwd", "passphrase", "pwd", "密码", "口令"), "PASSWORD"),
    (("apikey", "accesskey", "secretkey", "privatekey", "accountkey", "masterkey", "encryptionkey", "signingkey",
      "accesskeyid", "密钥", "私钥"), "API_KEY"),
    (("token", "authorization", "cookie", "sessionid", "令牌"), "TOKEN"),
    (("secret", "credential", "credentials", "pincode"), "SECRET"),
)  # fmt: skip
# The same for numbers: only whole words at the end of a key count, for `tel` is no hotel, and `pan` is no span.
_NUMBERS = (
    (("ssn", "ssns", "socialsecurity", "socialsecuritynumber", "socialsecurityno", "社会保障号", "社保号"), "SSN"),
    (("idcard", "idcards", "idcardno", "idcardnum", "idcardnumber", "idnumber", "idno", "identitycard",
      "identitycardnumber", "identitynumber", "identityno", "nationalid", "nationalidnumber", "citizenid",
      "sfz", "sfzh", "sfzhm", "cpf", "aadhaar", "aadhaarnumber", "身份证", "身份证号", "身份证号码", "身份证件号",
      "身份证件号码", "公民身份号码", "证件号", "证件号码"), "ID_NUMBER"),
    (("creditcard", "creditcards", "creditcardnumber", "creditcardno", "cc", "ccnumber", "信用卡", "信用卡号"),
     "CREDIT_CARD"),
    (("card", "cardno", "cardnum", "cardnumber", "cardnumbers", "bankcard", "bankcards", "bankcardno", "bankcardnum",
      "bankcardnumber", "debitcard", "debitcardnumber", "pan", "卡号", "银行卡", "银行卡号", "银行卡号码"),
     "BANK_CARD"),
    (("passport", "passportno", "passportnum", "passportnumber", "护照", "护照号", "护照号码"), "PASSPORT"),
    (("phone", "phones", "phoneno", "phonenum", "phonenumber", "phonenumbers", "telephone", "telephones",
      "telephoneno", "telephonenumber", "tel", "telno", "telnumber", "mobile", "mobiles", "mobileno", "mobilenum",
      "mobilenumber", "mobilephone", "mobilephones", "mobilephonenumber", "cellphone", "cellphonenumber", "cellnumber",
      "homephone", "workphone", "userphone", "fax", "faxno", "faxnumber", "msisdn", "whatsapp", "contactnumber",
      "contactno", "手机", "手机号", "手机号码", "电话", "电话号", "电话号码", "座机", "传真", "联系方式"), "PHONE"),
    (("pin", "pinnumber", "cardpin"), "PIN"),
    (("cvv", "cvv2", "cvc", "cvc2", "securitycode"), "CVV"),
    (("ip", "clientip", "remoteip", "remoteaddr", "remotehost", "visitorip", "ipaddr", "ipaddress", "rhost", "peer",
      "src", "dst"), "IP"),
)  # fmt: skip
# name -> the digits that a value must have at least; a secret written as a number needs some too, as `"token": 17` is
# the place of one. A number under TOKEN stays: it counts tokens.
_DIGITS: Mapping[str, int] = {
    "SSN": 4, "ID_NUMBER": 8, "CREDIT_CARD": 8, "BANK_CARD": 8, "PASSPORT": 6, "PHONE": 7, "PIN": 4, "CVV": 3,
    "PASSWORD": 1, "API_KEY": 6, "SECRET": 6,
}  # fmt: skip
_NUMBER_NAMES = frozenset(name for _, name in _NUMBERS)
NAMES = frozenset(name for _, name in _SECRETS) | _NUMBER_NAMES
# Places in a list, and kinds of token: no secrets.
_PLAIN = ("pagetoken", "nexttoken", "continuationtoken", "stoptoken", "eostoken", "bostoken", "padtoken", "unktoken")
# What is numbered, and the word for its number: `order_id`, `invoiceNo`.
_THINGS = ("order", "invoice", "tracking", "ticket", "transaction", "trade", "serial", "batch")
_COUNTED = ("id", "no", "sn", "num", "number")
_VERSIONS = ("version", "firmware", "oid")
_VERSIONS_ZH = ("版本", "版本号", "固件")
_THINGS_ZH = ("单号", "编号", "流水号", "序列号", "交易号", "批次号", "发票号", "学号")
_JOINTS = re.compile(r"[_\-. ]+")
_WORD_ENDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-. ]+|(?<=[\x00-\x7f])(?=[\u4e00-\u9fff])")
_HAN = re.compile("[\u4e00-\u9fff]")
_SCHEME = re.compile(r"\b(?:Bearer|Basic|Digest|Token)\b", re.IGNORECASE | re.ASCII)
_SAYS = re.compile(r"[0-9A-Za-z\x80-\U0010ffff]")
# What a table with empty cells makes of a whole number too: `13812345678.0`, `1.3812345678E10`.
_WHOLE = re.compile(r"-?[0-9]+(?:\.0*|\.[0-9]+(?=[eE]))?(?:[eE]\+?[0-9]{1,5})?")
_LOOPBACK = re.compile(r"127(?:\.[0-9]{1,3}){3}|::1")
_MASK = re.compile(r"[*•xX]{3}")
_LONGEST = 40  # characters of a value that is taken for a number

_JOINT = r"[_\-. ]{0,}"
_ENDS = "|".join(
    _JOINT.join(escaped(char, ignore_case=True) for char in end) for ends, _ in (*_SECRETS, *_NUMBERS) for end in ends
)
_KEYS = Sieve([Sought((), functools.partial(str, rf'(?:{_ENDS})[0-9_\-. ]{{0,}}"[ \t\r\n]{{0,}}:'))])


@functools.lru_cache(maxsize=4096)
def secret_name(key: str) -> str:
    """PASSWORD, API_KEY, TOKEN or SECRET, or what number a value is; empty for a key that names neither."""
    plain = _JOINTS.sub("", key[-64:]).lower()
    if plain.endswith(_PLAIN):
        return ""
    return next((name for ends, name in _SECRETS if plain.endswith(ends)), "") or _number_name(key[-64:])


def _number_name(key: str) -> str:
    words = [word.lower() for word in _WORD_ENDS.split(key.rstrip("0123456789_-. ")) if word]
    if words[-2:] == ["i", "phone"]:
        return ""
    said = {"".join(words[at:]) for at in range(len(words))}
    last = words[-1] if words else ""
    for ends, name in _NUMBERS:
        if any(end in said or (_HAN.match(end) and last.endswith(end)) for end in ends):
            return name
    return ""


@functools.lru_cache(maxsize=4096)
def taken_for(key: str) -> str:
    """The type that a key's value is taken for in vain: a `phone` is the number of an order, an `ip` a version."""
    words = [word.lower() for word in _WORD_ENDS.split(key[-64:]) if word]
    said, last = "".join(words[-2:]), words[-1] if words else ""
    if last in _VERSIONS or last.endswith(_VERSIONS_ZH):
        return "ip"
    return "phone" if last.endswith(_THINGS_ZH) or (said.startswith(_THINGS) and said.endswith(_COUNTED)) else ""


def names_secret(text: str) -> bool:
    """Whether any key of a JSON text without escapes could name a secret."""
    return bool(_KEYS.of(text.encode("utf-8", "surrogatepass")))


def says_something(rest: str, name: str = "") -> bool:
    """Whether what is left of a secret's value, without placeholders, holds more than the name of a scheme.

    Under the name of a number it holds one: digits enough, not more letters than digits, and no mask. Under that of a
    peer it is loopback, which rules keep elsewhere.
    """
    if name not in _NUMBER_NAMES:
        return bool(_SAYS.search(_SCHEME.sub("", rest)))
    if name == "IP" or _MASK.search(rest):
        return name == "IP" and _LOOPBACK.fullmatch(rest) is not None
    count = sum(char.isdigit() for char in rest)
    return count >= _DIGITS[name] and len(rest) <= _LONGEST and 2 * count >= sum(char.isalnum() for char in rest)


def by_key(name: str, text: str, quote: str = "") -> Found:
    """A whole value as a find; `quote` stands around the placeholder of what had none."""
    kind = name.lower() if name in _NUMBER_NAMES else "key"
    return Found(0, len(text), kind, "secret-key", f"{quote}[{name}]{quote}")


def number_name(key: str, number: str) -> str:
    """The name of the secret that a number, as JSON writes it, is under a key; empty where it is an ordinary one."""
    name = secret_name(key)
    if name not in _DIGITS or (name != "PASSWORD" and not _WHOLE.fullmatch(number)):
        return ""
    return name if _size(number) >= _DIGITS[name] else ""


def _size(number: str) -> int:
    """Digits of a whole number before its point."""
    whole, _, power = number.lower().partition("e")
    return len(whole.partition(".")[0].lstrip("-")) + int(power or 0)
