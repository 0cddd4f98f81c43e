"""The rules that find moments worth remembering: text by text, call by call, and against a person's labels."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from talks import call, called, result, said, sessions, steady, talk, tried, user

import openclaw_lab as lab
from openclaw_lab.agent.host import host_profile
from openclaw_lab.agent.replay import hook_events
from openclaw_lab.experiments.tasks.agreement import rule_agreement
from openclaw_lab.messages import Message, Session, ToolCall
from openclaw_lab.plugins.builtin.knowhub.plugin import StepReader
from openclaw_lab.reminders.opportunities import failed, find_opportunities

# --- failures -----------------------------------------------------------------------------------------------------

FAILURES = [
    "Traceback (most recent call last):\n  File x", "ValueError: bad value", "requests.exceptions.ConnectionError: no",
    "error TS2304: cannot find name", "error[E0382]: borrow of moved value", "ERROR 1045 (28000): Access denied",
    "npm ERR! code E401", "pip error: no matching distribution", "exit code 1", "exited with status 127",
    "bash: foo: command not found", "cat: x: No such file or directory", "Permission denied (publickey)",
    "operation timed out", "Connection refused", "Cannot find module 'x'", "could not resolve host",
    "unable to lock", "is not recognized as a command", "fatal: not a git repository", "panic: index out of range",
    "Segmentation fault (core dumped)", "CrashLoopBackOff", '{"error": "quota"}', '{"ok": false}',
    '{"success": false, "output": ""}', '{"code": 500}', '{"status": "failed"}', '{"status": 404}',
    "HTTP 404 Not Found", "HTTP/1.1 502 Bad Gateway", "404", "1 failed, 3 passed", "FAILED tests/test_x.py",
    "3 errors",
    "编译失败", "请求超时", "权限不足", "拒绝访问", "错误：找不到文件", "异常: 空指针", "无法连接服务器",
    "不支持 TLS 1.0",
    "提交失败: Bad Gateway", "一切正常\n但有 1 个报错",
]  # fmt: skip
NO_FAILURES = [
    "", "ok", "12 passed in 0.1s", "0 errors", "Found 0 errors in 3 files", "errors: 0", "No errors found",
    "0 failed, 12 passed", "exit code: 0", "exited with code 0", '{"error": null}', '{"ok": true}', '{"code": 0}',
    '{"code": 200}', '{"status": 200}', '{"status": "ok"}', "HTTP 200 OK", "the error handler is in src/error.py",
    "src/errors/index.ts", "found 3 vulnerabilities", "没有报错", "没有错误，全部通过", "测试全部通过，没有失败",
    "无异常",
    "无错误", "暂无错误：一切正常", "支持 TLS 1.3", "✅ 知识已保存 (ID: knowledge-1)", "已连接", "20404",
    # Source code that was read says what may fail, not what did.
    "def handle_error(self):", "class NetworkError(Exception):", "    except ValueError:", "} catch (Error e) {",
    "app.py:12:    except KeyError:", "12\tclass ParseError(Exception):", "from x import TimeoutError, y: Error",
    "function onError(error) {",
]  # fmt: skip
# What the rules are known to get wrong; a change of the rules that mends one must move it.
KNOWN_FALSE_FAILURES = [
    "the docs say: Error: boom is harmless",
    "raise ValueError('x')",
    "找不到更好的办法，但成功了",
]
KNOWN_MISSED_FAILURES = ["Aborted", "killed", "does not exist", "invalid argument", "连接被重置", "段错误"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        *((text, True) for text in [*FAILURES, *KNOWN_FALSE_FAILURES]),
        *((text, False) for text in [*NO_FAILURES, *KNOWN_MISSED_FAILURES]),
    ],
)
def test_whether_a_result_failed(text: str, wanted: bool) -> None:
    assert failed(Message("tool", text)) is wanted
    assert failed(Message("tool", ({"type": "text", "text": text},))) is wanted


@pytest.mark.parametrize(
    ("text", "said_by_host", "wanted"),
    [
        ("Error: boom", False, False),
        ("ok", True, True),
        ("失败", False, False),
        ("失败", None, True),
        ("", None, False),
    ],
)
def test_what_the_host_says_counts_first(text: str, said_by_host: bool | None, wanted: bool) -> None:
    assert failed(Message("tool", text, failed=said_by_host)) is wanted


def test_only_the_ends_of_a_long_result_are_read() -> None:
    filler = "all is well\n" * 2000
    assert failed(Message("tool", f"{filler}Error: at the end"))
    assert failed(Message("tool", f"Error: at the start\n{filler}"))
    assert not failed(Message("tool", f"{filler}Error: in the middle\n{filler}"))


@pytest.mark.parametrize("piece", ["1", "a.", "不对", "error ", "12:", " ", "\n", "}", "no ", "http", "失"])
def test_long_texts_take_no_time(piece: str) -> None:
    text = piece * (4000 // len(piece))
    started = time.process_time()
    failed(Message("tool", text))
    find_opportunities(talk(user(), said(), user(text[:2000])))
    assert time.process_time() - started < 2


# --- feedback -----------------------------------------------------------------------------------------------------

FEEDBACK = [
    # corrections
    "No, use pnpm, not npm", "Stop. Use the staging server instead", "that's wrong", "that's not what I asked",
    "Actually, we use tabs here", "not what I wanted", "不对，应该用 pnpm", "搞错了", "错了", "不是这个", "应该是 8443",
    "我说的是测试环境",
    # lasting wishes
    "I prefer tabs", "always use UTC", "please use black", "don't touch the schema", "from now on answer in French",
    "remember that the port is 8443", "for the record, it's Kafka", "we never deploy on Fridays", "我喜欢用 uv",
    "我们公司都用飞书", "以后请用中文回答", "记住：用 UTC", "记得跑测试", "别再改 schema", "不要改数据库",
    "必须用 HTTPS",
    "只能周五发布", "下次先跑测试",
    # it worked
    "it worked", "that worked, thanks", "works now", "perfect", "可以了", "搞定了！", "成功了", "就是这样！", "完美",
]  # fmt: skip
NO_FEEDBACK = [
    "", "yes", "ok, go on", "show me the log", "what does it do?", "no problem", "No problem, thanks a lot",
    "No worries at all", "No idea what you mean by that", "wait, what?", "I don't know", "don't worry about it",
    "Let me know what they need", "继续", "谢谢", "好的", "可以", "对", "没问题", "不错", "不错，继续",
    "不对称加密怎么用",
    "不对齐怎么办", "以后再说吧", "别的呢", "不要紧", "可以了吗？", "解决了么", "不能用吗？", "没搞错吧", "这个对吗",
    "帮我写个脚本",
]  # fmt: skip
# Known to be wrong: questions and first wishes that look like rules; sarcasm, which these rules do not understand.
KNOWN_FALSE_FEEDBACK = [
    "do you always do this?",
    "Is that perfect?",
    "I want to see the log",
    "I need a script for this",
]
KNOWN_MISSED_FEEDBACK = [
    "Great job, really wonderful, it broke everything again", "你真棒，又搞砸了", "hmm, 8443 not 8080",
    "嗯……端口是 8443",
]  # fmt: skip


def kinds_of(session: Session) -> list[tuple[int, str]]:
    return [(each.index, each.kind) for each in find_opportunities(session)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        *((text, True) for text in [*FEEDBACK, *KNOWN_FALSE_FEEDBACK]),
        *((text, False) for text in [*NO_FEEDBACK, *KNOWN_MISSED_FEEDBACK]),
    ],
)
def test_whether_a_message_is_feedback(text: str, wanted: bool) -> None:
    assert kinds_of(talk(user("hi"), said("hello"), user(text))) == [(2, "feedback")] * wanted
    assert kinds_of(talk(user("hi"), said("hello"), user(text.upper()))) == [(2, "feedback")] * wanted
    # What opens the conversation is a task, whatever words it uses.
    assert kinds_of(talk(user(text), user(text), said("hello"))) == []


def test_a_pasted_log_is_no_feedback() -> None:
    assert kinds_of(talk(user(), said(), user("always use UTC\n" + "x" * 2000))) == []


# --- recoveries and new resources ---------------------------------------------------------------------------------


def shell(*steps: tuple[str, str]) -> Session:
    """A session of one run: commands with their outputs."""
    return talk(user(), *[tried(f"c{number}", *step) for number, step in enumerate(steps)])


RECOVERIES: list[tuple[str, tuple[tuple[str, str], ...], list[tuple[int, str]]]] = [
    ("a retry of the program", (("pnpm test", "exit code 1"), ("pnpm test -- --run", "12 passed")), [(4, "recovery")]),
    ("by path and sudo", (("sudo /usr/bin/make all", "失败"), ("make all", "ok")), [(4, "recovery")]),
    ("in a pipe", (("cd x && make | tail", "失败"), ("make", "ok")), [(4, "recovery")]),
    ("another program", (("make", "失败"), ("git log", "ok")), []),
    ("with variables", (("CI=1 make", "失败"), ("CI=0 make", "ok")), [(4, "recovery")]),
    ("no failure", (("make", "0 errors"), ("make", "ok")), []),
    ("fails twice", (("make", "失败"), ("make", "失败")), []),
    ("recovers once", (("make", "失败"), ("make", "ok"), ("make", "ok")), [(4, "recovery")]),
    ("again and again", (("make", "失败"), ("make", "ok"), ("make", "失败"), ("make", "ok")),
     [(4, "recovery"), (8, "recovery")]),
    ("looking around", (("cat x", "No such file"), ("cat y", "ok")), []),
    ("grep that finds nothing", (("grep x y", "exit code 1"), ("grep z y", "z")), []),
    ("grep within more", (("grep x y; make", "exit code 2"), ("grep x y", "x"), ("make", "ok")), [(6, "recovery")]),
    ("chinese path", (("make 文档", "错误：无规则"), ("make 文档", "完成")), [(4, "recovery")]),
    ("a new program", (("ffmpeg -i a b", "ok"),), [(2, "new_resource")]),
    ("known the second time", (("ffmpeg -i a b", "ok"), ("ffmpeg -i c d", "ok")), [(2, "new_resource")]),
    ("every day", (("git status", "ok"), ("ls", "a")), []),
    ("one that failed", (("ffmpeg -i a b", "失败"),), []),
    ("a recovery is no new resource too", (("ffmpeg -i a", "失败"), ("ffmpeg -i b", "ok")), [(4, "recovery")]),
    ("an empty command", (("", "ok"), ("   ", "ok"), ("&&||;", "ok")), []),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "found"), [row[1:] for row in RECOVERIES], ids=[row[0] for row in RECOVERIES])
def test_shell_commands(steps: tuple[tuple[str, str], ...], found: list[tuple[int, str]]) -> None:
    assert kinds_of(shell(*steps)) == found


TOOLS: list[tuple[str, list[Message], list[tuple[int, str]]]] = [
    ("a tool that works again", [called(call("1", "deploy")), result("1", "失败"), called(call("2", "deploy")),
                                 result("2")], [(4, "recovery")]),
    ("another tool", [called(call("1", "deploy")), result("1", "失败"), called(call("2")), result("2")], []),
    ("a site", [called(call("1", "web_fetch", url="https://Docs.example.com:8080/a")), result("1"),
                called(call("2", "web_fetch", url="https://docs.example.com/b")), result("2")], [(2, "new_resource")]),
    ("a Chinese site", [called(call("1", "fetch", url="http://例子.cn/页")), result("1")], [(2, "new_resource")]),
    ("a site in another tool's text", [called(call("1", "write", text="https://x.org")), result("1")], []),
    ("arguments that are no JSON", [called(ToolCall("1", "bash", "ffmpeg -i a")), result("1")], [(2, "new_resource")]),
    ("no arguments", [called(call("1", "bash")), result("1")], []),
    ("a result that nobody asked for", [result("9", "失败"), result("9", "ok")], []),
    ("parallel calls without ids, in order",
     [called(call(None, "a"), call(None, "b")), result(None, "失败"), result(None, "ok"),
      called(call(None, "b")), result(None, "ok"), called(call(None, "a")), result(None, "ok")], [(7, "recovery")]),
    ("parallel calls without ids, by name",
     [called(call(None, "a"), call(None, "b")), result(None, "失败", name="b"), result(None, "ok", name="a"),
      called(call(None, "a")), result(None, "ok"), called(call(None, "b")), result(None, "ok")], [(7, "recovery")]),
    ("an id used again in a later turn",
     [called(call("1", "a")), result("1", "失败"), called(call("1", "b")), result("1"), called(call("1", "a")),
      result("1")], [(6, "recovery")]),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "found"), [row[1:] for row in TOOLS], ids=[row[0] for row in TOOLS])
def test_tools(messages: list[Message], found: list[tuple[int, str]]) -> None:
    assert kinds_of(talk(user(), messages)) == found


# --- the end of a task --------------------------------------------------------------------------------------------

LEARNED = [user(), *tried("1", "ffmpeg -i a", "ok")]  # message 2 is a new resource
ENDS: list[tuple[str, list[Message], list[int]]] = [
    ("the closing answer", [*LEARNED, said("转好了。")], [3]),
    ("followed by the next task", [*LEARNED, said("Done."), user("next")], [3]),
    ("the last of two answers", [*LEARNED, said("wait"), said("Done.")], [4]),
    ("a question", [*LEARNED, said("要继续吗？")], []),
    ("a question, then an answer", [*LEARNED, said("Which one?"), user("the first"), said("Done.")], []),
    ("nothing said", [*LEARNED, said("  ")], []),
    ("aborted", [*LEARNED, said("Don", "aborted")], []),
    ("an error", [*LEARNED, said("Done.", "error")], []),
    ("stopped as it should", [*LEARNED, said("Done.", "stop")], [3]),
    ("a call without an answer", [*LEARNED, called(call("2"))], []),
    ("nothing learned", [user(), called(call("1")), result("1"), said("Done.")], []),
    ("no tool used", [user(), said("hi"), user("不对，应该是 8443"), said("好。")], []),
    ("learned before, tools now", [*LEARNED, said("Done."), user("next"), called(call("2")), result("2"),
     said("Done.")], [3]),
    ("learned from the user", [user(), said("?"), user("不对，应该是 8443"), called(call("1")), result("1"),
     said("好。")], [5]),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "places"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_the_end_of_a_task(messages: list[Message], places: list[int]) -> None:
    assert [index for index, kind in kinds_of(talk(messages)) if kind == "task_end"] == places


def test_a_reset_ends_the_task() -> None:
    messages = [*LEARNED, said("Done."), said("新的会话，您好。")]
    assert kinds_of(talk(messages)) == [(2, "new_resource"), (4, "task_end")]
    assert kinds_of(talk(messages, cuts={4: "reset"})) == [(2, "new_resource"), (3, "task_end")]
    assert kinds_of(talk(messages, cuts={4: "compaction"})) == [(2, "new_resource"), (4, "task_end")]


# --- what must always hold ----------------------------------------------------------------------------------------


@steady
@given(sessions())
def test_a_live_plugin_finds_what_the_recording_shows(session: Session) -> None:
    """The rules over a whole recording, and the events that a plugin gets on the way, are the same."""
    reader = StepReader()
    steps = [step for event in hook_events(session, host_profile("seed")) for step in reader.read(event)]
    steps += [step for message in session.messages[reader.tracker.seen :] for step in reader.tracker.see(message)]
    live = Counter(step.event for step in steps if step.kind == "event")
    assert live == Counter(each.kind for each in find_opportunities(session))


@steady
@given(sessions())
def test_places_are_in_order_and_of_the_right_role(session: Session) -> None:
    roles: dict[str, Any] = {"feedback": "user", "task_end": "assistant", "recovery": "tool", "new_resource": "tool"}
    found = find_opportunities(session)
    assert [each.index for each in found] == sorted({each.index for each in found})
    assert all(session.messages[each.index].role == roles[each.kind] for each in found)


# --- agreement with a person --------------------------------------------------------------------------------------

AGREEMENT = {
    "recovery": (0.52, 0.58),
    "new_resource": (0.43, 0.46),
    "feedback": (0.85, 0.43),
    "task_end": (0.39, 0.52),
    "all": (0.54, 0.48),
}


def test_agreement_on_the_bundled_sessions() -> None:
    """The recorded figures; whoever changes a rule sees here what that does."""
    frame = rule_agreement(lab.load_dataset("sessions/mini")).frame.set_index("kind")
    assert list(frame.index) == list(AGREEMENT)
    rows = frame.to_dict("index")
    for kind, wanted in AGREEMENT.items():
        for name, figure in zip(("precision", "recall"), wanted, strict=True):
            value, low, high = (rows[kind][f"{name}{end}"] for end in ("", "_low", "_high"))
            assert value == pytest.approx(figure, abs=0.02), (kind, name)
            assert low <= value <= high, (kind, name)


def test_agreement_by_hand() -> None:
    learned = [*LEARNED, said("转好了。")]  # the rules: 2 new_resource, 3 task_end
    held = [
        talk(learned, id="a", opportunities=[(2, "new_resource")]),
        talk(learned, id="b", opportunities=[(2, "recovery"), (3, "task_end")]),
        talk(user(), said(), id="c", opportunities=[]),
        talk(learned, id="d"),  # nobody labelled it
        talk(learned, id="e", opportunities=[(1, "feedback")], split="tune"),  # the rules were tuned on it
    ]
    table = rule_agreement(held)
    assert "3 labelled sessions" in table.title
    frame = table.frame.set_index("kind")
    figures = frame[["precision", "precision_n", "recall", "recall_n"]].fillna(-1).to_dict("index")
    assert {kind: tuple(row.values()) for kind, row in figures.items()} == {
        "recovery": (-1, 0, 0, 1),
        "new_resource": (0.5, 2, 1, 1),
        "feedback": (-1, 0, -1, 0),
        "task_end": (0.5, 2, 1, 1),
        "all": (0.5, 4, pytest.approx(2 / 3), 3),
    }


def test_agreement_without_labels() -> None:
    frame = rule_agreement([talk(user(), said())]).frame
    assert frame[["precision", "recall"]].isna().all(axis=None)
    assert (frame["recall_n"] == 0).all()
