"""Names of columns and values of labels that data sets use, in English and Chinese: what each most likely stands for.

Guesses only: they are shown to a person (`preview`), and nothing is read by them unless that person says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

_TEXTS = """text prompt content question input message sentence user_input instruction query request utterance full_text
 source_text generated_text unmasked_text body 文本 内容 提示词 提示 输入 问题 消息 句子 正文 用户输入 指令 原文 语句"""
_MARKS = """label is_attack is_injection is_prompt_injection injection prompt_injection is_jailbreak jailbreak attack
 is_malicious malicious is_unsafe unsafe is_harmful harmful target class verdict category type classification y gold
 标签 标注 类别 分类 是否攻击 是否注入 是否越狱 是否恶意 攻击 注入 恶意 结果"""
_SAFE = "is_safe safe is_benign benign is_harmless harmless is_legit legit 是否安全 安全 是否正常 正常 是否无害"
_SPANS = """spans entities privacy_mask pii_spans span_labels annotations labels label ner pii secrets
 实体 标注 敏感信息 标签 隐私"""
# By format, by field: the names of columns that may hold it, the most likely first.
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "redaction": {"text": _TEXTS, "spans": _SPANS},
    "injection": {"text": _TEXTS, "label": f"{_MARKS} {_SAFE}"},
    "retrieval": {
        "query": "query question text input 查询 问题 问句",
        "relevant": """relevant relevant_ids positive_ids positives doc_ids document_ids relevant_docs gold_ids answers
         相关 相关文档 答案""",
    },
    "skills": {
        "message": "message query prompt text input question utterance 消息 用户消息 输入 文本 问题",
        "skills": "skills skill expected_skills tools tool expected_tools intents intent 技能 工具 意图",
    },
    "extraction": {
        "messages": "messages conversation conversations dialogue dialog turns chat history 对话 消息 会话",
        "memories": "memories memory facts preferences persona 记忆 事实 偏好",
    },
}
# What any row may have besides.
COMMON: Mapping[str, str] = {
    "id": "id uid uuid _id row_id index idx 编号 序号",
    "lang": "lang language locale 语言 语种",
    "kind": "kind attack_type subcategory sub_category technique 类型 攻击类型 子类",
    "group": "group template_id conversation_id source_id 分组 组 模板",
}
_ATTACKS = """1 1.0 true yes y t injection prompt_injection injected attack attacked jailbreak malicious unsafe harmful
 adversarial inject poisoned bad positive 攻击 注入 提示词注入 提示注入 恶意 越狱 有害 不安全 是 异常 违规 攻击样本"""
_HARMLESS = """0 0.0 false no n f benign safe normal legit legitimate harmless clean ham none good negative regular
 not_injection no_injection non_injection not_jailbreak no_attack 正常 安全 无害 良性 否 合法 普通 无 非攻击 非注入"""
_SIGNS = re.compile(r"[\s_\-.]+")


def plain(name: object) -> str:
    """A name without its case and punctuation."""
    return _SIGNS.sub("_", str(name).strip().casefold()).strip("_")


def _set(words: str) -> frozenset[str]:
    return frozenset(plain(each) for each in words.split())


_ATTACK_WORDS, _HARMLESS_WORDS, _SAFE_NAMES = _set(_ATTACKS), _set(_HARMLESS), _set(_SAFE)


def candidates(words: str, columns: Iterable[str]) -> list[str]:
    """The columns that a list of names knows, the most likely first."""
    known = {plain(each): number for number, each in reversed(list(enumerate(words.split())))}
    return sorted((each for each in columns if plain(each) in known), key=lambda each: known[plain(each)])


def verdict_of(value: object, column: str = "") -> int | None:
    """1 for a word that means an attack, 0 for a harmless one, None for what could be either.

    In a column that says what is safe (`is_safe`, 是否安全) a bare yes means harmless.
    """
    word = plain(value)
    found = 1 if word in _ATTACK_WORDS else 0 if word in _HARMLESS_WORDS else None
    if found is not None and plain(column) in _SAFE_NAMES and word in _BARE:
        return 1 - found
    return found


# Words that say yes or no to what the column is called.
_BARE = _set("1 1.0 true yes y t 是 0 0.0 false no n f 否")


def looks_like_spans(value: Any) -> bool:
    """Whether a value is a list of marked places, as it stands or as text."""
    if isinstance(value, str):
        return value.strip().startswith("[")
    return isinstance(value, list | tuple)
