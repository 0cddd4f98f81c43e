"""A harmless text in, whether it invites a false alarm out: it quotes attacks, speaks of prompts, or uses their words.

The kinds are those of the bundled data; where nobody gave a kind, the words decide.
"""

from __future__ import annotations

import re

from openclaw_lab.experiments.dataset import Sample

TRAP_KINDS = frozenset({"benign_trigger", "benign_quote", "benign_prompt"})
TRIGGER_WORDS = (
    "ignore", "disregard", "forget", "override", "overwrite", "bypass", "jailbreak", "pretend", "reveal", "leak",
    "exfiltrate", "password", "api key", "secret", "credential", "credentials", "confidential", "system prompt",
    "prompt", "prompts", "instruction", "instructions", "injection", "hidden", "unrestricted", "developer mode",
    "忽略", "无视", "不要理会", "忘记", "忘掉", "覆盖", "绕过", "越狱", "假装", "扮演", "泄露", "透露", "密码", "密钥",
    "机密", "凭证", "系统提示", "提示词", "指令", "注入", "隐藏", "不受限制", "开发者模式",
)  # fmt: skip
_TRIGGER = re.compile(
    "|".join(
        rf"\b{re.escape(word)}\b" if word.isascii() else re.escape(word)
        for word in sorted(TRIGGER_WORDS, key=len, reverse=True)
    ),
    re.IGNORECASE,
)


def is_trap(sample: Sample) -> bool:
    """Whether a sample is harmless and looks like an attack, by its kind or by a trigger word in it."""
    return sample.label == 0 and (sample.kind in TRAP_KINDS or _TRIGGER.search(sample.input) is not None)
