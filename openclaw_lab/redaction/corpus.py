"""A seeded corpus to measure with: chat in Chinese and English, tool calls, logs, code; a secret in one of forty.

Made of phrases, so that words, numbers, paths and addresses are as common as in transcripts; every secret is invented.
"""

from __future__ import annotations

import random
from collections.abc import Callable

_EN = """the build failed again because the lock file was stale so I removed it and ran the tests once more
can you look at the report from last week and tell me which of the three options costs less over two years
please keep the names of the columns as they are and add a note where a value was missing
it works on my machine but the container has an older version of the library and no network
summarise the thread in five points and say who has to answer until when
we agreed to ship on Thursday if the migration is reviewed and the backup was restored once
the function returns None when the list is empty which is why the caller breaks at the first row
thanks that was it the cache was the problem and not the query
how do I undo the last commit without losing my changes in the working tree
the customer wrote that the page stays white after the login on an old phone""".splitlines()
_ZH = """构建又失败了，因为锁文件过期，我删掉之后重新跑了一遍测试，这次全部通过
帮我看一下上周的报告，三个方案里哪一个两年下来最省钱，顺便写出理由
列名不要改，缺失的值旁边加一个备注，最后按日期排序再导出
在我的电脑上没有问题，但是容器里的库版本比较旧，而且没有网络
把这次讨论总结成五点，写清楚谁在什么时候之前回复
我们说好周四上线，前提是迁移脚本有人审过，备份也恢复过一次
列表为空的时候函数返回空值，所以调用的地方在第一行就出错了
谢谢，就是缓存的问题，跟查询没有关系，已经改好了
怎么撤销上一次提交，但是保留工作区里的修改？请一步一步说明
客户反馈在旧手机上登录之后页面一直是白的，刷新也没有用""".splitlines()
_WORDS = [
    "index",
    "loader",
    "parser",
    "session",
    "worker",
    "cache",
    "queue",
    "report",
    "export",
    "match",
    "config",
    "buffer",
    "signal",
    "token",
    "user",
]


def corpus(size: int = 5_000_000, seed: int = 7) -> list[str]:
    """Messages of so many bytes of UTF-8 together, the same for the same seed."""
    chance = random.Random(seed)
    makers: list[Callable[[random.Random], str]] = [_chat, _chat, _chat, _chat, _log, _code, _call, _answer]
    texts: list[str] = []
    while size > 0:
        text = chance.choice(makers)(chance)
        if chance.random() < 1 / 40:
            text = f"{text} {_secret(chance)}"
        texts.append(text)
        size -= len(text.encode())
    return texts


def _chat(chance: random.Random) -> str:
    lines = chance.choices(_ZH if chance.random() < 0.5 else _EN, k=chance.randint(1, 6))
    if chance.random() < 0.3:
        lines.append(chance.choice((
            f"see src/{_name(chance)}/{_name(chance)}.py line {chance.randint(1, 900)}",
            f"https://docs.example.org/{_name(chance)}/{_name(chance)}?page={chance.randint(1, 40)}",
            f"版本 {chance.randint(1, 9)}.{chance.randint(0, 30)}.{chance.randint(0, 9)}，{chance.randint(9, 999)} 行",
            f"at {chance.randint(8, 18)}:{chance.randint(10, 59)} on 2026-10-{chance.randint(10, 28)}",
        )))  # fmt: skip
    chance.shuffle(lines)
    return chance.choice((" ", ". ", "\n", "；")).join(lines)


def _name(chance: random.Random) -> str:
    return "_".join(chance.choices(_WORDS, k=chance.randint(1, 2)))


def _log(chance: random.Random) -> str:
    start = f"2026-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}T{chance.randint(0, 23):02}:"
    return "\n".join(
        f"{start}{chance.randint(0, 59):02}:{chance.randint(0, 59):02}Z {chance.choice(('INFO', 'WARN', 'ERROR'))} "
        f"{_name(chance)}: {chance.choice(_EN)[: chance.randint(20, 70)]} in {chance.randint(1, 9000)} ms"
        for _ in range(chance.randint(2, 8))
    )


def _code(chance: random.Random) -> str:
    return "\n".join([
        f"def {_name(chance)}({_name(chance)}, {_name(chance)}=None):",
        *(
            f"    {_name(chance)} = {_name(chance)}[{chance.randint(0, 9)}].{_name(chance)}({_name(chance)})"
            for _ in range(chance.randint(3, 12))
        ),
    ])  # fmt: skip


def _call(chance: random.Random) -> str:
    return (
        f'{{"command": "rg -n {_name(chance)} src/{_name(chance)} | head -{chance.randint(5, 50)}", '
        f'"timeout": {chance.randint(10, 600)}, "note": "{chance.choice(_ZH + _EN)}"}}'
    )


def _answer(chance: random.Random) -> str:
    return "\n".join(
        f"src/{_name(chance)}/{_name(chance)}.py:{chance.randint(1, 900)}:    {_name(chance)} = {_name(chance)}()"
        for _ in range(chance.randint(3, 15))
    )


def _secret(chance: random.Random) -> str:
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    key = "".join(chance.choices(letters, k=40))
    return chance.choice((
        f"{_name(chance)}@example.com", f"/Users/{_name(chance)}/work", f"/home/{_name(chance)}/repo",
        f"10.{chance.randint(0, 255)}.{chance.randint(0, 255)}.{chance.randint(1, 254)}",
        f"sk-{key}", f"Bearer {key}", f"555-{chance.randint(200, 999)}-{chance.randint(1000, 9999)}",
        f"+861390000{chance.randint(1000, 9999)}", f"电话 1390000{chance.randint(1000, 9999)}",
    ))  # fmt: skip
