"""Plugins that misbehave: each is reported in one line, and the good one beside it does not notice."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from plugged import plugin, registering

from openclaw_lab.agent.agent import Agent
from openclaw_lab.agent.models import calls
from openclaw_lab.errors import PluginError
from openclaw_lab.messages import Message, ToolCall, Usage
from openclaw_lab.plugins.hooks import HookEvent
from openclaw_lab.plugins.limits import Limits
from openclaw_lab.plugins.loader import Plugins, load_plugins
from openclaw_lab.plugins.sdk import ToolContext, ToolResult, define_plugin_entry
from openclaw_lab.plugins.wire import EventsIn, EventsOut

QUICK = Limits(register=0.6, start=0.6, call=1.0)
GOOD = "[plugin:zz] loaded (tools: zz_hello)"
TOOL = "def t() -> str:\n    'A tool.'\n    return 't'\n"

# name, lines of register(api), lines before it, tools declared, what its line says
BAD: list[tuple[str, str, str, tuple[str, ...], str]] = [
    ("raises at import", "", "raise ValueError('坏了\\nsecond')", (), "ValueError: 坏了 second (plugin.py:3)"),
    ("does not compile", "", "def (", (), "plugin.py:3: invalid syntax"),
    ("imports what is not there", "", "import no_such", (), "ModuleNotFoundError: No module named 'no_such'"),
    ("asks as on the host", "api.registerTool(t)", "", (), "has no registerTool; did you mean register_tool?"),
    ("raises in register", "{}['密钥']", "", (), "KeyError: '密钥' (plugin.py:5)"),
    ("hangs in register", "time.sleep(60)", "", (), "plugin a: register: took longer than 0.6 s"),
    ("hangs at import", "", "time.sleep(60)", (), "plugin a: register: took longer than 0.6 s"),
    (
        "loops", "while time.monotonic() < began + 1: pass", "began = time.monotonic()", (),
        "plugin a: register: took longer than 0.6 s",
    ),
    ("exits in register", "sys.exit(3)", "", (), "found sys.exit(3); expected a plugin that returns"),
    ("exits at import", "", "sys.exit('再见')", (), "found sys.exit('再见'); expected a plugin that returns"),
    ("interrupts", "raise KeyboardInterrupt", "", (), "plugin a: register: found KeyboardInterrupt:"),
    (
        "registers a tool twice", "api.register_tool(t); api.register_tool(t)", TOOL, ("t",),
        "tool t: found a second registration; expected each tool once",
    ),
    (
        "registers a service twice", "api.register_service('s'); api.register_service('s')", "", (),
        "service s: found a second registration; expected each service once",
    ),
    ("registers what is no tool", "api.register_tool('t')", "", ("t",), "tool_of: found a str; expected a function"),
    (
        "registers a tool with a bad schema", "api.register_tool(Tool('t', 'd', {'type': 'array'}, print))", "", ("t",),
        "tool t: parameters: found type: found array; expected object",
    ),
    ("handles with no function", "api.on('agent_end', 5)", "", (), "hook 'agent_end': found a int; expected a"),
    ("serves with no function", "api.register_service('s', start=5)", "", (), "service s: found a int; expected"),
    (
        "start raises", "def start(): raise OSError('端口被占用')\napi.register_service('s', start=start)", "", (),
        "service s: start: OSError: 端口被占用 (plugin.py:5)",
    ),
    (
        "start hangs", "api.register_service('s', start=lambda: time.sleep(60))", "", (),
        "service s: start: took longer than 0.6 s",
    ),
    (
        "async start hangs", "api.register_service('s', start=start)", "async def start(): await asyncio.sleep(60)", (),
        "service s: start: took longer than 0.6 s",
    ),
    ("start exits", "api.register_service('s', start=lambda: sys.exit(1))", "", (), "s: start: found sys.exit(1)"),
]  # fmt: skip


def beside(tmp_path: Path, body: str, start: str = "", tools: tuple[str, ...] = (), **more: Any) -> Plugins:
    plugin(tmp_path, "a", registering(body, start), *tools, **more)
    plugin(tmp_path, "zz")
    return load_plugins(tmp_path, limits=QUICK)


def fired(plugins: Plugins, hook: Any = "before_prompt_build") -> list[tuple[str, str]]:
    return [(each.plugin, each.error) for each in plugins.bus.emit(HookEvent(hook, "s", 1, 1, 0, ()))]


@pytest.mark.parametrize(("body", "start", "tools", "said"), [row[1:] for row in BAD], ids=[r[0] for r in BAD])
def test_it_is_disabled_in_one_line(tmp_path: Path, body: str, start: str, tools: tuple[str, ...], said: str) -> None:
    plugins = beside(tmp_path, body, start, tools)
    bad, good = map(str, plugins.reports)
    assert bad.startswith("[plugin:a] disabled: ")
    assert said in bad
    assert "\n" not in bad
    assert good == GOOD
    assert list(plugins.tools) == ["zz_hello"]
    assert plugins.call("zz_hello", city="北京").text == "hello 北京"
    assert fired(plugins) == []
    assert plugins.stop() == ()


# Lines of register(api), how the call is made, and what is said of it: a plain hook or tool that is late later on.
LATE: list[tuple[str, str, str]] = [
    ("api.on('before_prompt_build', lambda event: time.sleep(60), timeout=0.3)", "hook", "took longer than 0.3 s"),
    ("api.on('before_prompt_build', wait, timeout=0.3)", "hook", "took longer than 0.3 s"),
    ("api.register_tool(t)", "tool", "tool t: took longer than 1 s"),
    ("api.register_tool(later)", "tool", "later: took longer than 1 s"),
    ("api.on('before_prompt_build', stuck, timeout=0.3)", "hook", "took longer than 0.3 s and blocks the event loop"),
    ("api.register_tool(block)", "tool", "tool block: took longer than 1 s and blocks the event loop"),
]
_SLOW = """
async def wait(event): await asyncio.sleep(60)
def t() -> str:
    '睡着。'
    time.sleep(60)
async def later() -> str:
    'Sleeps.'
    await asyncio.sleep(60)
async def stuck(event): time.sleep(6)
async def block() -> str:
    '卡住。'
    time.sleep(6)
"""


@pytest.mark.parametrize(("body", "how", "said"), LATE)
def test_what_hangs_later_is_left_behind(tmp_path: Path, body: str, how: str, said: str) -> None:
    name = "later" if "later" in body else "block" if "block" in body else "t"
    plugins = beside(tmp_path, body, _SLOW, (name,) if how == "tool" else ())
    begin = time.monotonic()
    answer = plugins.call(name).text if how == "tool" else fired(plugins)[0][1]
    assert said in answer
    assert time.monotonic() - begin < 4
    if "wait" not in body and "later" not in body:  # nothing can stop such a one, so nothing more is asked of it
        assert "[plugin:a] disabled: " in str(plugins)
        begin = time.monotonic()
        again = plugins.call(name).text if how == "tool" else fired(plugins)[0][1]
        assert "plugin a is disabled: " in again
        assert time.monotonic() - begin < 0.3
    assert str(plugins.reports[1]) == GOOD
    assert plugins.call("zz_hello", city="北京").text == "hello 北京"
    plugins.reload("a")
    assert "[plugin:a] loaded" in str(plugins)
    plugins.stop()


def test_calls_use_one_thread_again_and_may_call_each_other(tmp_path: Path) -> None:
    body = "api.register_tool(outer); api.register_tool(name)"
    start = """
    import contextvars
    who = contextvars.ContextVar('who', default='nobody')
    def name() -> str:
        'Who.'
        return threading.current_thread().name
    def outer() -> str:
        'Calls.'
        return name()
    """
    others = set(threading.enumerate())
    plugins = beside(tmp_path, body, start, ("outer", "name"))
    assert plugins.call("outer").text == plugins.call("name").text == "plugin-a-calls"
    assert [each.name for each in threading.enumerate() if each not in others] == ["plugin-a-calls"]
    plugins.stop()


def test_a_call_beside_others_is_not_late_for_them(tmp_path: Path) -> None:
    start = """
    def nap() -> str:
        'Naps.'
        time.sleep(0.7)
        return 'rested'
    """
    others = set(threading.enumerate())
    plugins = beside(
        tmp_path, "api.register_tool(nap); api.on('agent_end', lambda event: None, timeout=0.3)", start, ("nap",)
    )
    with ThreadPoolExecutor(4) as pool:
        naps = [pool.submit(plugins.call, "nap") for _ in range(4)]  # one after the other they would take 2.8 s
        time.sleep(0.2)
        assert fired(plugins, "agent_end") == [("a", "")]
        assert [each.result().text for each in naps] == ["rested"] * 4
    assert "disabled" not in str(plugins)
    plugins.stop()
    end = time.monotonic() + 5
    while set(threading.enumerate()) - others and time.monotonic() < end:
        time.sleep(0.02)
    assert set(threading.enumerate()) <= others


# What `api.on` is given, and what is said: nothing of such a plugin takes effect.
NONSENSE = [
    ("timeout='x'", "hook agent_end: timeout: found x; expected seconds, more than 0 and at most 600"),
    ("timeout=0", "timeout: found 0"),
    ("timeout=-1", "timeout: found -1"),
    ("timeout=float('nan')", "timeout: found nan"),
    ("timeout=float('inf')", "timeout: found inf"),
    ("timeout=601", "timeout: found 601"),
    ("timeout=True", "timeout: found True"),
    ("priority='高'", "hook agent_end: priority: found 高; expected a number"),
    ("priority=None", "priority: found None"),
    ("priority=float('nan')", "priority: found nan"),
]


@pytest.mark.parametrize(("given", "said"), NONSENSE)
def test_nonsense_to_a_hook_disables_the_plugin(tmp_path: Path, given: str, said: str) -> None:
    body = f"api.on('agent_end', lambda event: None)\napi.on('agent_end', lambda event: None, {given})"
    plugins = beside(tmp_path, body)
    assert said in str(plugins.reports[0])
    assert fired(plugins, "agent_end") == []
    assert str(plugins.reports[1]) == GOOD


# What a host's config says of a plugin's hooks, and how long its handler of agent_end may take then (None: a fault).
TIMES: list[tuple[dict[str, Any], str]] = [
    ({"timeoutMs": 200}, "took longer than 0.2 s"),
    ({"timeouts": {"agent_end": 200}}, "took longer than 0.2 s"),
    ({"timeoutMs": 9_000, "timeouts": {"agent_end": 200}}, "took longer than 0.2 s"),
    ({"timeoutMs": 200, "timeouts": {"agent_end": 9_000}}, ""),
    ({"timeouts": {"before_compaction": 200}}, "took longer than 0.5 s"),
    ({"timeoutMs": 0}, "hooks.timeoutMs: found 0; expected more than 0 and at most 600,000 ms"),
    ({"timeoutMs": "5"}, "hooks.timeoutMs: found a string; expected more than 0"),
    ({"timeouts": {"agent_end": True}}, "hooks.timeouts.agent_end: found True; expected more than 0"),
    ({"timeouts": 5}, "hooks.timeouts: found a number; expected an object"),
]


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize(("hooks", "said"), TIMES)
def test_the_hosts_config_says_how_long_a_hook_may_take(
    tmp_path: Path, hooks: dict[str, Any], said: str, alone: bool
) -> None:
    plugin(tmp_path, "a", registering("api.on('agent_end', lambda event: time.sleep(0.8), timeout=0.5)"))
    config = {"plugins": {"entries": {"a": {"hooks": hooks}}}}
    plugins = load_plugins(tmp_path, config=config, isolated=alone)
    answers = fired(plugins, "agent_end")
    assert said in (answers[0][1] if answers else str(plugins))
    assert bool(answers[0][1] if answers else True) is bool(said)
    plugins.stop()


# What a handler of before_tool_call answers, what becomes of the call, and what the tool was called with.
VERDICTS: list[tuple[str, str, bool, str]] = [
    ("return {'block': True, 'blockReason': '太危险'}", "plugin a refused the call: 太危险", True, ""),
    ("return {'block': True}", "plugin a refused the call", True, ""),
    ("return {'block': False}", "hello 北京", False, "北京"),
    ("return {'params': {'city': '上海'}}", "hello 上海", False, "上海"),
    ("return Verdict(arguments={'city': event.tool.arguments['city'] + '!'})", "hello 北京!", False, "北京!"),
    ("return None", "hello 北京", False, "北京"),
    ("raise ValueError('坏了')", "plugin a was to look at the call and failed: ", True, ""),
    ("return {'params': 5}", "expected block (true or false)", True, ""),
    ("return {'stop': True}", "found stop; expected block", True, ""),
    ("return 'no'", "was to look at the call and failed", True, ""),
    ("return {'requireApproval': {'title': 'x'}}", "nobody is here to approve a call", True, ""),
]


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize(("line", "said", "failed", "city"), VERDICTS)
def test_a_plugin_may_look_at_a_call_first(
    tmp_path: Path, line: str, said: str, failed: bool, city: str, alone: bool
) -> None:
    start = f"from openclaw_lab.plugins.hooks import Verdict\ndef look(event):\n    {line}\n"
    plugin(tmp_path, "a", registering("api.on('before_tool_call', look)", start))
    plugin(tmp_path, "zz")
    plugins = load_plugins(tmp_path, limits=QUICK, isolated=["a"] if alone else False)
    made = Agent([calls(("zz_hello", {"city": "北京"})), "done"], plugins=[plugins], host="openclaw-2026.9")
    turn = made.run("问候")
    result = turn.messages[2]
    assert said in result.text
    assert result.failed is failed
    assert turn.tool_calls[0].arguments == {"city": "北京"}  # what the model asked for stays on record
    if city:
        assert result.text == f"hello {city}"
    plugins.stop()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 1", "plugin.py: found no entry; expected entry = define_plugin_entry(…), or register(api)"),
        ("entry = 5", "plugin.py: found entry is a int; expected entry"),
        ("register = 5", "plugin.py: found no entry"),
    ],
)
def test_a_file_without_an_entry(tmp_path: Path, code: str, said: str) -> None:
    plugin(tmp_path, "a", code)
    assert said in str(load_plugins(tmp_path))


def test_an_async_register_that_hangs(tmp_path: Path) -> None:
    code = "import asyncio\nasync def register(api):\n    await asyncio.sleep(60)\n"
    plugin(tmp_path, "a", code)
    assert "took longer than 0.6 s" in str(load_plugins(tmp_path, limits=QUICK))


def test_what_a_hanging_plugin_registers_too_late_does_not_count(tmp_path: Path) -> None:
    plugins = beside(tmp_path, "time.sleep(1.0)\napi.register_tool(t)\napi.on('agent_end', print)", TOOL, ("t",))
    time.sleep(0.6)
    assert list(plugins.tools) == ["zz_hello"]
    assert fired(plugins, "agent_end") == []


def test_an_undeclared_tool_is_refused_and_the_rest_stays(tmp_path: Path) -> None:
    more = "def u() -> str:\n    'Another.'\n    return 'u'\n"
    plugins = beside(tmp_path, "api.register_tool(t)\napi.register_tool(u)", TOOL + more, ("t",))
    assert str(plugins.reports[0]) == (
        "[plugin:a] loaded (tools: t); tool u refused: the manifest's contracts.tools does not declare it"
    )
    assert list(plugins.tools) == ["t", "zz_hello"]


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    plugin(tmp_path, "b", registering("api.register_tool(t)", TOOL), "t")
    plugin(tmp_path, "c", registering("api.register_tool(tool_of(t, name='shell'))", TOOL), "shell")
    plugin(tmp_path, "a", registering("api.register_tool(t)", TOOL), "t")
    plugins = load_plugins(tmp_path, reserved=["shell"])
    assert [str(each) for each in plugins.reports] == [
        "[plugin:a] loaded (tools: t)",
        "[plugin:b] loaded (tools: none); tool t refused: the name is taken by plugin a",
        "[plugin:c] loaded (tools: none); tool shell refused: the name is taken by the host",
    ]
    assert plugins.tools["t"].plugin == "a"
    plugins.unload("b")
    assert plugins.tools["t"].plugin == "a"


def test_a_declared_tool_that_never_comes_is_said(tmp_path: Path) -> None:
    plugins = beside(tmp_path, "", "", ("t",))
    assert str(plugins.reports[0]) == "[plugin:a] loaded (tools: none); tool t is declared but not registered"


def test_a_second_plugin_of_the_same_id(tmp_path: Path) -> None:
    first = plugin(tmp_path / "x", "a")
    second = plugin(tmp_path / "y", "a")
    plugins = load_plugins(first, second)
    assert [each.status for each in plugins.reports] == ["loaded", "disabled"]
    assert plugins.reports[1].reason == f"{second}: the id a is taken by the plugin from {first}, which stays loaded"
    assert plugins.call("a_hello", city="x").text == "hello x"


def test_a_plugin_that_is_named_twice_is_loaded_once(tmp_path: Path) -> None:
    first = plugin(tmp_path, "a")
    assert str(load_plugins(first, first, tmp_path)) == "[plugin:a] loaded (tools: a_hello)"


@pytest.mark.parametrize("broken", ["x", "y"])
def test_of_two_plugins_of_one_id_each_has_its_line(tmp_path: Path, broken: str) -> None:
    for each in "xy":
        plugin(tmp_path / each, "a", *(["raise ValueError('坏了')"] if each == broken else []))
    lines = sorted(str(load_plugins(tmp_path / "x", tmp_path / "y")).splitlines())
    assert lines[1] == "[plugin:a] loaded (tools: a_hello)"
    assert lines[0].startswith("[plugin:a] disabled: ")
    assert ("坏了" if broken == "x" else "the id a is taken by the plugin from") in lines[0]


def test_an_entry_that_was_written_anew_is_the_one_that_is_loaded_again() -> None:
    old, new = (define_plugin_entry(id="n", register=lambda api, each=each: api.note(each)) for each in ("旧", "新"))  # type: ignore[misc]
    plugins = load_plugins(old)
    plugins.load(new)
    assert "the id n is taken" in str(plugins)
    plugins.unload("n")
    plugins.load(new)
    assert str(plugins) == "[plugin:n] loaded (tools: none); 新"
    plugins.reload()
    assert str(plugins) == "[plugin:n] loaded (tools: none); 新"


def test_an_entry_with_another_id(tmp_path: Path) -> None:
    plugin(tmp_path, "a").joinpath("plugin.py").write_text(
        "from openclaw_lab.plugins.sdk import *\nentry = define_plugin_entry(id='b', register=print)\n",
        encoding="utf-8",
    )
    assert load_plugins(tmp_path).reports[0].reason.endswith("found the id 'b'; expected 'a', as in the manifest")


def test_a_wrong_config_disables_one_plugin_only(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"port": {"type": "integer"}}}
    plugin(tmp_path, "a", configSchema=schema)
    plugin(tmp_path, "zz")
    plugins = load_plugins(tmp_path, config={"plugins": {"entries": {"a": {"config": {"port": "八千"}}}}})
    assert [str(each) for each in plugins.reports] == [
        "[plugin:a] disabled: config: plugins.entries.a.config.port: found a string; expected integer", GOOD,
    ]  # fmt: skip


HANDLERS = [
    ("raise ValueError('坏了')", "ValueError: 坏了"),
    ("sys.exit(1)", "SystemExit: 1"),
    ("return 5", "HookError: a on before_prompt_build: found 5; expected an Injection of text, or None"),
    ("return Injection(5, 'x')", "expected an Injection of text"),
]


@pytest.mark.parametrize(("line", "said"), HANDLERS)
def test_a_handler_at_fault_is_skipped(tmp_path: Path, line: str, said: str) -> None:
    body = f"def handler(event):\n    {line}\napi.on('before_prompt_build', handler)"
    good = "api.on('before_prompt_build', lambda event: '提醒')"
    plugins = beside(tmp_path, body)
    plugin(tmp_path, "b", registering(good))
    plugins.load(tmp_path / "b")
    (bad, error), (other, none) = fired(plugins)
    assert (bad, other, none) == ("a", "b", "")
    assert said in error
    assert "\n" not in error


def test_a_handler_that_takes_too_long_is_left_behind(tmp_path: Path) -> None:
    body = """
        async def slow(event):
            await asyncio.sleep(60)
        def stuck(event):
            time.sleep(60)
        api.on('before_prompt_build', slow, timeout=0.1)
        api.on('before_prompt_build', stuck, timeout=0.1)
    """
    began = time.monotonic()
    errors = [error for _, error in fired(beside(tmp_path, body))]
    assert errors == ["HookError: a on before_prompt_build: took longer than 0.1 s"] * 2
    assert time.monotonic() - began < 3


TOOLS = [
    ("raise ValueError('坏了')", "t: ValueError: 坏了"),
    ("sys.exit(1)", "t: SystemExit: 1"),
    ("raise RecursionError", "t: RecursionError"),
    ("raise ValueError('line\\nbreak ' + 'x' * 9999)", "t: ValueError: line break xxx"),
]


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize(("line", "said"), TOOLS)
def test_a_tool_at_fault_is_a_failed_result(tmp_path: Path, kind: str, line: str, said: str) -> None:
    plugins = beside(tmp_path, f"{kind} t() -> str:\n    'A tool.'\n    {line}\napi.register_tool(t)", "", ("t",))
    answer = plugins.call("t")
    assert answer.failed
    assert answer.text.startswith(said) or "sys.exit" in answer.text
    assert "\n" not in answer.text
    assert len(answer.text) < 600
    assert plugins.call("zz_hello", city="x") == ToolResult("hello x")


def test_a_tool_that_gives_what_is_no_answer(tmp_path: Path) -> None:
    made = "Tool('t', 'd', {'type': 'object'}, lambda arguments, context: 5)"
    plugins = beside(tmp_path, f"api.register_tool({made})", "", ("t",))
    assert plugins.call("t").text == "t: found a int; expected text or a ToolResult"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("api.register_service('s', stop=lambda: time.sleep(60))", "service s: stop: took longer than"),
        (
            "async def stop(): await asyncio.sleep(60)\napi.register_service('s', stop=stop)",
            "service s: stop: took longer",
        ),
        (
            "def stop(): raise ValueError('坏了')\napi.register_service('s', stop=stop)",
            "ValueError: 坏了 (plugin.py:5)",
        ),
        ("api.register_service('s', stop=lambda: sys.exit(0))", "service s: stop: found sys.exit(0)"),
    ],
)
def test_a_service_that_does_not_stop_holds_up_nobody(tmp_path: Path, body: str, said: str) -> None:
    stopped = tmp_path / "stopped"
    good = f"api.register_service('good', stop=lambda: open({str(stopped)!r}, 'w').close())"
    plugin(tmp_path, "a", registering(good))
    plugin(tmp_path, "b", registering(body))
    plugins = load_plugins(tmp_path)
    began = time.monotonic()
    (line,) = plugins.stop(deadline=0.6)
    assert time.monotonic() - began < 3
    assert line.startswith("[plugin:b] ")
    assert said in line
    assert stopped.exists()


def test_a_task_that_cannot_be_cancelled_is_left_behind(tmp_path: Path) -> None:
    body = """
        async def stubborn():
            while True:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    pass
        async def start():
            api.task = asyncio.create_task(stubborn())
        api.register_service('s', start=start)
    """
    plugins = beside(tmp_path, body)
    assert plugins.stop(0.3) == ("[plugin:a] a task that does not end was left behind",)


def test_all_of_them_at_once_also_in_a_running_loop(tmp_path: Path) -> None:
    for number, (_, body, start, tools, _) in enumerate(BAD):
        plugin(tmp_path, f"p{number:02}", registering(body, start), *tools)
    plugin(tmp_path, "zz")

    async def cell() -> tuple[Plugins, str]:
        plugins = load_plugins(tmp_path, limits=QUICK)
        return plugins, (await plugins.acall("zz_hello", city="北京")).text

    plugins, answer = asyncio.run(cell())
    assert answer == "hello 北京"
    bad = [each for each in plugins.reports if each.status == "disabled"]
    assert len(bad) >= 15
    assert str(plugins.reports[-1]) == GOOD
    assert plugins.stop() == ()


def test_a_note_of_the_plugin_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "openclaw_lab.plugin.a"):
        beside(tmp_path, "api.register_tool(t)", TOOL)
    assert caplog.records[0].name == "openclaw_lab.plugin.a"
    assert "refused" in caplog.messages[0]


# --- in a process of its own --------------------------------------------------------------------------------------

pytestmark = pytest.mark.skipif(os.name != "posix", reason="isolation takes a POSIX system")
SLOW = Limits(register=10, start=10, call=1.0)


def isolated(tmp_path: Path, body: str, start: str = "", tools: tuple[str, ...] = (), limits: Limits = SLOW) -> Plugins:
    plugin(tmp_path, "a", registering(body, start), *tools)
    return load_plugins(tmp_path, isolated=["a"], limits=limits)


def marked() -> list[str]:
    """Processes of isolated plugins, and what they started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if b"OPENCLAW_LAB_PLUGIN=" in path.read_bytes():
                found.append((path.parent / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def test_an_isolated_plugin_works(tmp_path: Path) -> None:
    body = """
        async def t(city: str, context: ToolContext) -> dict[str, object]:
            '查天气。'
            print('noise on the screen')
            if context.on_delta:
                context.on_delta('一')
                context.on_delta('二')
            return {'city': city, 'session': context.session_id, 'home': os.environ.get('HOME'), 'pid': os.getpid(),
                    'names': sorted(os.environ), 'token': api.environment['TOKEN'], 'stdin': sys.stdin.read()}
        api.register_tool(t)
        running = []
        api.register_service('s', start=lambda: running.append(1), stop=running.clear)
        def running_services() -> int:
            'How many run.'
            return len(running)
        api.register_tool(running_services)
    """
    plugin(tmp_path, "a", registering(body), "t", "running_services")
    plugins = load_plugins(tmp_path, isolated=True, environment={"TOKEN": "hunter2"})
    assert str(plugins.reports[0]) == ("[plugin:a] loaded (tools: t, running_services; services: s)")
    pieces: list[str] = []
    said = json.loads(plugins.call("t", city="北京", context=ToolContext("s1", on_delta=pieces.append)).text)
    assert pieces == ["一", "二"]
    assert said["names"] == ["HOME", "LANG", "OPENCLAW_LAB_PLUGIN", "PATH", "TMPDIR"]
    assert (said["city"], said["session"], said["token"], said["stdin"]) == ("北京", "s1", "hunter2", "")
    assert said["pid"] != os.getpid()
    assert plugins.call("running_services").text == "1"
    assert plugins.call("t", city=5).text == "t: city: found a number; expected string"
    home = Path(said["home"])
    assert home.is_dir()
    assert plugins.unload("a") == ()
    assert not home.exists()
    assert marked() == []


def test_the_hooks_of_an_isolated_plugin(tmp_path: Path) -> None:
    body = """
        def remind(event):
            print('noise')
            if event.run == 3:
                raise ValueError('坏了')
            if event.run == 4:
                time.sleep(60)
            return f"{event.session_id} {event.at} {[each.text for each in event.messages]} {os.getpid()}"
        api.on('before_prompt_build', remind)
        api.on('agent_end', lambda event: 5)
    """
    history = [Message("user", f"第 {number} 句", (), None) for number in range(9)]
    plugins = isolated(tmp_path, body)

    def fire(
        run: int, at: int, session: str = "s", hook: Any = "before_prompt_build", visible: bool = True
    ) -> list[str]:
        fired = plugins.bus.emit(HookEvent(hook, session, run, 1, at, history, visible))
        return [each.injection.text if each.injection else each.error for each in fired]

    (first,) = fire(1, 1)
    assert first.startswith("s 1 ['第 0 句'] ")
    assert first.split()[-1] != str(os.getpid())
    (second,) = fire(2, 3)
    assert second.startswith("s 3 ['第 0 句', '第 1 句', '第 2 句'] ")
    assert fire(2, 2, "s2")[0].startswith("s2 2 ['第 0 句', '第 1 句'] ")
    assert fire(2, 5, visible=False)[0].startswith("s 5 [] ")
    assert fire(3, 5) == ["HookError: ValueError: 坏了"]
    assert fire(2, 2)[0].startswith("s 2 ['第 0 句', '第 1 句'] ")  # taken back
    assert fire(5, 5, hook="agent_end") == ["HookError: hook agent_end: found a int; expected no answer"]
    assert fire(2, 3)[0].split()[-1] == first.split()[-1]  # the same process still
    assert fire(4, 4) == ["HookError: hook before_prompt_build: took longer than 1 s; its process was killed"]
    assert fire(2, 4)[0].startswith("s 4 ['第 0 句', '第 1 句', '第 2 句', '第 3 句'] ")
    plugins.unload("a")
    assert fire(1, 1) == []
    assert marked() == []


def test_an_event_is_the_same_at_the_other_end() -> None:
    blocks = ({"type": "text", "text": "看"}, {"type": "image", "data": "x"})
    messages = (
        Message("user", "你好", timestamp=1.5),
        Message("assistant", blocks, (ToolCall("c", "t", {"a": 1}),), usage=Usage(1, 2, 3, 4), stop_reason="toolUse"),
        Message("tool", "结果", (), "c", "t", True),
    )  # fmt: skip
    out, into = EventsOut(), EventsIn()
    for at in (1, 3, 2):
        event = HookEvent("agent_end", "s", 1, 2, at, messages)
        read = into.read(json.loads(json.dumps(out.written(event))))
        assert read == event
        assert tuple(read.messages) == messages[:at]
    assert out.written(HookEvent("session_end", "s", 1, 2, 2, messages))["messages"] == []
    assert len(out.written(HookEvent("agent_end", "s", 1, 2, 2, messages))["messages"]) == 2


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("os._exit(3)", "register: its process ended (exit code 3)"),
        ("os.kill(os.getpid(), 11)", "register: its process ended (signal SIGSEGV)"),
        ("sys.exit(3)", "found sys.exit(3)"),
        ("raise ValueError('坏了')", "ValueError: 坏了 (plugin.py:5)"),
        (
            "for fd in range(3, 64):\n    try: os.write(fd, b'nonsense\\n')\n    except OSError: pass",
            "register: found an answer that cannot be read",
        ),
    ],
)
def test_an_isolated_plugin_that_kills_its_process(tmp_path: Path, body: str, said: str) -> None:
    plugin(tmp_path, "zz")
    plugins = isolated(tmp_path, body)
    assert said in str(plugins.reports[0])
    assert str(plugins.reports[-1]) == GOOD
    assert marked() == []


def test_an_isolated_plugin_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    body = """
        import subprocess
        def t(seconds: int) -> str:
            'Sleep.'
            subprocess.Popen(['sleep', '61'], start_new_session=True)  # out of the process group
            subprocess.Popen(['sleep', '62'])
            time.sleep(seconds)
            return 'slept'
        api.register_tool(t)
    """
    plugins = isolated(tmp_path, body, "", ("t",))
    assert plugins.call("t", seconds=0).text == "slept"
    assert len(marked()) == 3
    answer = plugins.call("t", seconds=60)
    assert answer == ToolResult("t: tool t: took longer than 1 s; its process was killed", failed=True)
    assert marked() == []
    assert plugins.call("t", seconds=0).text == "slept"  # in a new process
    plugins.stop()
    assert marked() == []


def test_an_isolated_tool_that_exits_is_a_failed_result(tmp_path: Path) -> None:
    body = "def t() -> str:\n    'x'\n    os._exit(0)\napi.register_tool(t)"
    plugins = isolated(tmp_path, body, "", ("t",))
    assert plugins.call("t").text == "t: tool t: its process ended (exit code 0)"
    assert marked() == []


def test_it_dies_with_the_one_who_loaded_it(tmp_path: Path) -> None:
    plugin(tmp_path, "a", registering("def t() -> str:\n    'x'\n    time.sleep(60)\napi.register_tool(t)"), "t")
    program = f"from openclaw_lab.plugins.loader import *\nload_plugins({str(tmp_path)!r}, isolated=True).call('t')"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    parent = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "TMPDIR": str(temporary)})
    end = time.monotonic() + 20
    while not marked() and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.5)
    assert len(marked()) == 1
    assert len(list(temporary.iterdir())) == 1
    parent.kill()
    parent.wait()
    while marked() and time.monotonic() < end:
        time.sleep(0.05)
    assert marked() == []
    assert not list(temporary.iterdir())


def test_nothing_leaks(tmp_path: Path) -> None:
    body = """
        async def start(): await asyncio.sleep(0)
        api.register_service('s', start=start)
    """
    plugin(tmp_path, "a", registering(body))
    plugin(tmp_path, "b", registering(body))
    open_files = []
    for _ in range(4):
        plugins = load_plugins(tmp_path, isolated=["b"])
        plugins.reload()
        plugins.stop()
        assert not [each for each in threading.enumerate() if each.name in ("plugin-a", "plugin-b")]
        open_files.append(len(os.listdir("/proc/self/fd")))
    assert open_files[3] <= open_files[1]


def test_memory_is_limited(tmp_path: Path) -> None:
    body = "def t() -> str:\n    'x'\n    return str(len(bytearray(2_000_000_000)))\napi.register_tool(t)"
    plugins = isolated(tmp_path, body, "", ("t",), Limits(memory_mb=600))
    assert plugins.call("t").text.startswith("t: MemoryError")


def test_only_a_folder_can_be_isolated(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="isolated: found a; expected true, false, or a list of plugin ids"):
        load_plugins(isolated="a")
    (report,) = load_plugins(define_plugin_entry(id="a", register=print), isolated=True).reports
    assert report.reason == "plugin a: isolated: found an entry given as an object; expected a folder"


def test_a_misspelt_id_does_not_run_here_unnoticed(tmp_path: Path) -> None:
    plugin(tmp_path, "weather")
    with pytest.raises(PluginError, match="isolated: wether: expected a plugin's id; did you mean weather"):
        load_plugins(tmp_path, isolated=["wether"])
