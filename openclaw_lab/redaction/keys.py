"""A key of an object in, the name of the secret that its value is out: `{"password": "x"}` is told by its key alone."""

from __future__ import annotations

import functools
import re

# what a key ends with, in lower case and without `_`, `-`, `.` and blanks -> the name that stands for its value
_SECRETS = (
    (("password", "passwd", "passphrase", "pwd", "密码", "口令"), "PASSWORD"),
    (("apikey", "accesskey", "secretkey", "privatekey", "accountkey", "masterkey", "encryptionkey", "signingkey",
      "accesskeyid", "密钥", "私钥"), "API_KEY"),
    (("token", "authorization", "cookie", "sessionid", "令牌"), "TOKEN"),
    (("secret", "credential", "credentials", "pincode"), "SECRET"),
)  # fmt: skip
NAMES = frozenset(name for _, name in _SECRETS)
# Places in a list, and kinds of token: no secrets.
_PLAIN = ("pagetoken", "nexttoken", "continuationtoken", "stoptoken", "eostoken", "bostoken", "padtoken", "unktoken")
_JOINTS = re.compile(r"[_\-. ]+")
_SCHEME = re.compile(r"\b(?:Bearer|Basic|Digest|Token)\b", re.IGNORECASE | re.ASCII)
_SAYS = re.compile(r"[0-9A-Za-z\x80-\U0010ffff]")


@functools.lru_cache(maxsize=4096)
def secret_name(key: str) -> str:
    """PASSWORD, API_KEY, TOKEN or SECRET; empty for a key that names no secret."""
    plain = _JOINTS.sub("", key[-64:]).lower()
    if plain.endswith(_PLAIN):
        return ""
    return next((name for ends, name in _SECRETS if plain.endswith(ends)), "")


def says_something(rest: str) -> bool:
    """Whether what is left of a secret's value, without placeholders, holds more than the name of a scheme."""
    return bool(_SAYS.search(_SCHEME.sub("", rest)))
