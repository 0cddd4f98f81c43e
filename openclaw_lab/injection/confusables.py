"""Letters of other scripts that pass for Latin ones, and the Latin letter that a reader takes each for.

A small choice of the pairs in Unicode Technical Standard #39 (`confusables.txt`) that occur in disguised English, with
the small capitals. Full-width and mathematical letters are not here: compatibility normalisation (NFKC) undoes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

_CYRILLIC = ("АВЕКМНОРСТУХЅІЈԌԚԜЗаеорсухѕіјһԁԛԝгкмтвнпьӏ", "ABEKMHOPCTYXSIJGQW3aeopcyxsijhdqwrkmtbhnbl")
_GREEK = ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαβεικνορτυχϲϳωηγ", "ABEZHIKMNOPTYXabeikvoptuxcjwny")
_ARMENIAN = ("օոսհցյԼՕՍ", "onuhgjLOU")
_SMALL_CAPITALS = ("ᴀʙᴄᴅᴇꜰғɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢɡɑɩʟ", "abcdeffghijklmnoprstuvwyzgail")

LOOKALIKES: Mapping[int, str] = MappingProxyType(
    {ord(a): b for group in (_CYRILLIC, _GREEK, _ARMENIAN, _SMALL_CAPITALS) for a, b in zip(*group, strict=True)}
)
_ALL = "".join(map(chr, LOOKALIKES))
# A word that mixes them with Latin letters, a word of nothing else, or a small capital.
_MIXED = re.compile(
    f"[{_ALL}](?=[A-Za-z])|[{_ALL}](?<=[A-Za-z].)|[{_SMALL_CAPITALS[0]}]|[{_ALL}](?<![^\\W].)[{_ALL}]{{2,}}(?!\\w)"
)


def has_lookalikes(text: str) -> bool:
    """Whether a word of the text looks Latin and is not."""
    return _MIXED.search(text) is not None
