"""A found text in, whether it is what its rule looks for out: checks that no pattern can make, by name.

The set is closed: the exported plugin has the same checks in JavaScript. Rules name them; users cannot add any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType


def luhn(text: str) -> bool:
    """Whether the digits of a text pass the check of bank card numbers (ISO/IEC 7812-1, annex B)."""
    digits = [ord(char) - 48 for char in text if "0" <= char <= "9"]
    doubled = [digit * 2 - 9 if digit > 4 else digit * 2 for digit in digits[-2::-2]]
    return bool(digits) and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


VALIDATORS: Mapping[str, Callable[[str], bool]] = MappingProxyType({"luhn": luhn})
