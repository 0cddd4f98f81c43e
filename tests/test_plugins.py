"""Plugins that behave: loaded, called, reloaded and unloaded, from plain code and inside a running event loop."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from plugged import plugin, registering

from openclaw_lab.agent.agent import Agent
from openclaw_lab.agent.models import calls
from openclaw_lab.errors import PluginError
from openclaw_lab.plugins.hooks import HookEvent
from openclaw_lab.plugins.loader import load_plugins
from openclaw_lab.plugins.sdk import (
    Injection,
    PluginApi,
    PluginEntry,
    Service,
    Tool,
    ToolContext,
    ToolResult,
    define_plugin_entry,
    tool_of,
)  # fmt: skip
from openclaw_lab.plugins.status import plugin_status


def event(hook: Any = "before_prompt_build") -> HookEvent:
    return HookEvent(hook, "s", 1, 1, 0, ())


def greet(name: str) -> str:
    """向某人问好。Greet somebody."""
    return f"你好，{name}"


def entry(id: str = "greeter", register: Any = None, **more: Any) -> PluginEntry:
    return define_plugin_entry(id=id, register=register or (lambda api: api.register_tool(greet)), **more)


# --- folders ------------------------------------------------------------------------------------------------------


def test_a_folder_of_plugins(tmp_path: Path) -> None:
    plugin(tmp_path, "b")
    plugin(tmp_path, "a")
    (tmp_path / "no-plugin").mkdir()
    plugin(tmp_path, ".hidden")
    plugins = load_plugins(tmp_path)
    assert list(plugins.tools) == ["a_hello", "b_hello"]
    assert plugins.call("a_hello", city="北京") == ToolResult("hello 北京")
    assert str(plugins) == "[plugin:a] loaded (tools: a_hello)\n[plugin:b] loaded (tools: b_hello)"
    assert plugins.tools["a_hello"].plugin == "a"


def test_a_folder_that_is_a_plugin_and_a_manifest_itself(tmp_path: Path) -> None:
    folder = plugin(tmp_path, "a")
    assert list(load_plugins(folder).tools) == ["a_hello"]
    assert list(load_plugins(str(folder / "openclaw.plugin.json")).tools) == ["a_hello"]


def test_bundled_ones_by_name() -> None:
    assert set(load_plugins("weather", "feishu-tools").manifests) == {"weather", "feishu-tools"}


def test_a_source_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"wether: expected a plugin's folder, .*did you mean weather"):
        load_plugins("wether")
    (tmp_path / "x.py").touch()
    with pytest.raises(PluginError, match="found a file"):
        load_plugins(tmp_path / "x.py")
    with pytest.raises(PluginError, match="found a int; expected a folder, an entry or a function"):
        load_plugins(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ((), "found no plugin; expected openclaw.plugin.json in it, or in folders in it"),
        (("读我.txt",), "found no plugin; expected openclaw.plugin.json"),
        (("plugin.py",), "found plugin.py and no plugin"),
        (("天气/plugin.json",), "found 天气/plugin.json and no plugin"),
    ],
)
def test_a_folder_without_a_plugin_is_told(tmp_path: Path, files: tuple[str, ...], said: str) -> None:
    folder = tmp_path / "插件"
    for each in files:
        (folder / each).parent.mkdir(parents=True, exist_ok=True)
        (folder / each).touch()
    folder.mkdir(exist_ok=True)
    for reports in (
        load_plugins(folder).reports,
        plugin_status([folder], run=False),
        Agent(plugins=[folder]).plugin_reports,
    ):
        assert [str(each) for each in reports] == [
            f"[plugin:插件] disabled: {folder}: {reports[0].reason.partition(': ')[2]}"
        ]
        assert said in str(reports[0])
        assert reports[0].fault
    plugins = load_plugins(folder)
    plugin(folder, "新", "def register(api): pass")
    plugins.reload()
    assert str(plugins) == "[plugin:新] loaded (tools: none)"


@pytest.mark.parametrize("alone", [False, True])
def test_a_plugin_may_be_chinese_but_for_its_tools(tmp_path: Path, alone: bool) -> None:
    code = """
        from openclaw_lab.plugins.sdk import *
        def look_up(城市: str) -> str:
            "查询天气。"
            return f"{城市}：晴"
        def register(api):
            api.register_tool(look_up)
            api.register_service("缓存", start=lambda: None)
            api.on("before_prompt_build", lambda event: "请记得保存。")
    """
    folder = plugin(
        tmp_path / "插件 目录", "天气查询", code, "look_up", name="天气", description="查询天气", version="一"
    )
    plugins = load_plugins(folder.parent, isolated=alone)
    assert str(plugins) == "[plugin:天气查询] loaded (tools: look_up; services: 缓存)"
    agent = Agent([calls(("look_up", {"城市": "北京"})), "好"], plugins=[plugins], id="会话", agent_id="主")
    turn = agent.run("天气怎么样？")
    assert turn.messages[2].text == "北京：晴"
    assert [each.injection.text for each in turn.injections if each.injection] == ["请记得保存。"]
    plugins.stop()


# A host's config, and what is said of it: as an error where it starts with "config: ", else in the plugin's line.
CONFIGS: list[tuple[dict[str, Any], str]] = [
    ({"plugins": {"entires": {}}}, "config: plugins.entires: expected a name that a host takes; did you mean entries?"),
    ({"plugins": {"denny": []}}, "config: plugins.denny: expected a name that a host takes; did you mean deny?"),
    ({"plugin": {}}, "config: plugin: expected plugins, as in openclaw.json"),
    ({"entries": {"天气": {}}}, "config: entries: expected plugins, as in openclaw.json; plugins: {entries: "),
    ({"plugins": 5}, "config: plugins: found a number; expected an object"),
    ({"plugins": {"enabled": 0}}, "disabled: config: plugins.enabled: found a number; expected true or false"),
    (
        {"plugins": {"entries": {"天气": {"enabled": "false"}}}},
        "disabled: config: plugins.entries.天气.enabled: found a string; expected true or false",
    ),
    (
        {"plugins": {"entries": {"天气": {"confg": {}}}}},
        "config: plugins.entries.天气.confg: not read, OpenClaw does not start; did you mean config?",
    ),
    ({"天气": {"key": 1}}, "config: 天气: not read; settings belong into plugins.entries.天气.config"),
    ({"plugins": {"installs": {}, "entries": {"别的": {}}}}, "[plugin:天气] loaded (tools: none)"),
    ({"agents": {}, "gateway": {}}, "[plugin:天气] loaded (tools: none)"),
]


@pytest.mark.parametrize(("config", "said"), CONFIGS, ids=[row[1][:40] for row in CONFIGS])
def test_what_of_a_config_is_not_read_is_told(tmp_path: Path, config: dict[str, Any], said: str) -> None:
    plugin(tmp_path, "天气", "def register(api): pass")
    if said.startswith("config: ") and "not read" not in said:
        with pytest.raises(PluginError) as caught:
            load_plugins(tmp_path, config=config)
        assert str(caught.value).startswith(said)
    else:
        text = str(load_plugins(tmp_path, config=config))
        assert said in text
        assert len(text.splitlines()) == 1


def test_what_is_not_active_is_not_run(tmp_path: Path) -> None:
    code = registering("", start="open(__file__ + '.ran', 'w').close()")
    plugin(tmp_path, "a", code, activation={"onStartup": False})
    plugin(tmp_path, "b", code)
    plugins = load_plugins(tmp_path, config={"plugins": {"entries": {"b": {"enabled": False}}}})
    assert [str(each) for each in plugins.reports] == [
        "[plugin:a] disabled: neither enabledByDefault nor activation.onStartup; set plugins.entries.a.enabled to true",
        "[plugin:b] disabled: plugins.entries.b.enabled is false in config",
    ]
    assert not any(each.fault for each in plugins.reports)
    assert not list(tmp_path.rglob("*.ran"))
    assert (
        load_plugins(tmp_path, config={"plugins": {"entries": {"a": {"enabled": True}}}}).reports[0].status == "loaded"
    )


def test_files_beside_it_are_its_own(tmp_path: Path) -> None:
    for name in ("a", "b"):
        folder = plugin(
            tmp_path,
            name,
            registering(f"api.register_tool(tool_of(hi, name='{name}_hi'))", "from .words import hi"),
            f"{name}_hi",
        )
        (folder / "words.py").write_text(
            f"def hi() -> str:\n    'Say hi.'\n    return 'hi from {name}'\n", encoding="utf-8"
        )
    plugins = load_plugins(tmp_path)
    assert [plugins.call(f"{name}_hi").text for name in "ab"] == ["hi from a", "hi from b"]
    assert not list(tmp_path.rglob("*.pyc"))


def test_settings_reach_the_plugin(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"unit": {"type": "string", "default": "°C"}, "city": {"type": "string"}}}
    code = registering("""
        def show() -> str:
            'Show the settings.'
            city, unit = api.plugin_config["city"], api.plugin_config["unit"]
            return f"{city} {unit} {api.environment['NAME']} {api.folder.name}"
        api.register_tool(show)
    """)
    folder = plugin(tmp_path, "a", code, "show", configSchema=schema)
    config = tmp_path / "openclaw.json"
    config.write_text("{plugins: {entries: {a: {config: {city: '${CITY}'}}}}}", encoding="utf-8")
    plugins = load_plugins(folder, config=config, environment={"CITY": "北京", "NAME": "张三"})
    assert plugins.call("show").text == "北京 °C 张三 a"
    report = load_plugins(folder, config=config).reports[0]
    assert report.reason == (
        "plugins.entries.a.config.city: found ${CITY}; expected a value of the environment; set CITY"
    )


def test_skill_folders_are_given_on(tmp_path: Path) -> None:
    folder = plugin(tmp_path, "a", skills=["./skills"])
    (folder / "skills").mkdir()
    plugins = load_plugins(tmp_path)
    assert plugins.skills == ((folder / "skills").resolve(),)
    plugins.unload("a")
    assert plugins.skills == ()


# --- from a notebook cell -----------------------------------------------------------------------------------------


def test_an_entry_or_a_function() -> None:
    plugins = load_plugins(entry())
    assert plugins.call("greet", name="张三").text == "你好，张三"

    def shouter(api: PluginApi) -> None:
        api.register_tool(lambda text: text.upper() if text else "", name="x", description="d")

    assert load_plugins(shouter).reports[0].reason == (
        "tool x: parameter text: found no annotation; expected str, int, float, bool, list[…], dict[str, …], "
        "Literal[…], `… | None`, or Any"
    )


def test_loading_again_replaces_and_does_not_add_up() -> None:
    calls: list[str] = []

    def register(api: PluginApi) -> None:
        api.register_tool(greet)
        api.on("agent_end", lambda event: calls.append("end"))
        api.register_service("s", start=lambda: calls.append("start"), stop=lambda: calls.append("stop"))

    plugins = load_plugins(entry(register=register))
    for _ in range(3):
        plugins.reload()
    plugins.bus.emit(event("agent_end"))
    assert calls == ["start", *["stop", "start"] * 3, "end"]
    plugins.reload("greeter")
    assert calls[-2:] == ["stop", "start"]
    assert plugins.unload("greeter") == ()
    plugins.bus.emit(event("agent_end"))
    assert calls[-1] == "stop"
    assert not plugins.tools
    assert not plugins.reports


def test_reload_reads_code_manifest_and_config_anew(tmp_path: Path) -> None:
    folder = plugin(
        tmp_path,
        "a",
        registering("def t() -> str:\n    'x'\n    return word\napi.register_tool(t)", "from .w import word"),
        "t",
    )
    (folder / "w.py").write_text("word = ''", encoding="utf-8")
    plugins = load_plugins(folder)
    for word in ("one", "two"):  # of the same length, within a second: a .pyc would be taken for the same
        (folder / "w.py").write_text(f"word = '{word}'", encoding="utf-8")
        plugins.reload()
        assert plugins.call("t").text == word
    plugin(tmp_path, "b")
    plugin(tmp_path, "a", registering("raise ValueError('坏了')"), "t")
    (report,) = plugins.reload()
    assert str(report) == "[plugin:a] disabled: ValueError: 坏了 (plugin.py:5)"
    assert not plugins.tools
    plugin(tmp_path, "a")
    plugins.reload("a")
    assert list(plugins.tools) == ["a_hello"]
    with pytest.raises(PluginError, match="plugin zzz: expected a plugin that is loaded; known: a"):
        plugins.reload("zzz")


def test_reload_finds_new_plugins_and_misses_lost_ones(tmp_path: Path) -> None:
    plugin(tmp_path / "x", "a")
    plugin(tmp_path / "y", "b")
    plugins = load_plugins(tmp_path / "x", tmp_path / "y")
    plugin(tmp_path / "x", "c")
    shutil.rmtree(tmp_path / "y")
    reports = plugins.reload()
    assert [each.status for each in reports] == ["loaded", "loaded", "disabled"]
    assert reports == plugins.reports
    assert reports[2].reason.startswith(f"{tmp_path / 'y'}: expected a plugin's folder")
    plugin(tmp_path / "y", "b")
    assert [each.status for each in plugins.reload()] == ["loaded"] * 3


def test_modules_of_an_unloaded_plugin_are_gone(tmp_path: Path) -> None:
    import sys

    before = set(sys.modules)
    folder = plugin(tmp_path, "a", registering("", "from . import w"))
    (folder / "w.py").touch()
    plugins = load_plugins(folder)
    assert len(set(sys.modules) - before) == 2
    plugins.unload("a")
    assert set(sys.modules) == before


# --- tools --------------------------------------------------------------------------------------------------------


def test_a_function_becomes_a_tool() -> None:
    def forecast(
        city: Annotated[str, "城市"],
        days: int = 3,
        unit: Literal["C", "F"] = "C",
        tags: list[str] | None = None,
        more: dict[str, float] | None = None,
        context: ToolContext = ToolContext(),  # noqa: B008
    ) -> dict[str, Any]:
        """查询天气预报。

        Args:
            days: how many days
            tags (list): what for
        """
        return {"城市": city, "days": days, "session": context.session_id}

    tool = tool_of(forecast)
    assert (tool.name, tool.description) == ("forecast", "查询天气预报。")
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "城市"},
            "days": {"type": "integer", "description": "how many days", "default": 3},
            "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
            "tags": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                "description": "what for",
            },
            "more": {"anyOf": [{"type": "object", "additionalProperties": {"type": "number"}}, {"type": "null"}]},
        },
        "required": ["city"],
        "additionalProperties": False,
    }  # fmt: skip
    assert tool.run({"city": "北京"}, ToolContext("s1")) == '{"城市": "北京", "days": 3, "session": "s1"}'


def _bare(x) -> str:  # type: ignore[no-untyped-def]
    """Doc."""
    return str(x)


def _many(*x: int) -> str:
    """Doc."""
    return str(x)


def _odd(x: set[int]) -> str:
    """Doc."""
    return str(x)


def _undocumented(x: int) -> str:
    return str(x)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (_bare, "tool _bare: parameter x: found no annotation"),
        (_many, r"parameter x: found \*x: 'int'; expected a parameter that can be given by name"),
        (_odd, "parameter x: found the annotation set"),
        (_undocumented, "found no docstring; expected one, since a model chooses a tool by it"),
        (5, "tool_of: found a int; expected a function"),
        (lambda: "", "tool_of: found <lambda>; expected a function with a name"),
    ],
)
def test_a_function_that_is_no_tool(function: Any, said: str) -> None:
    with pytest.raises(PluginError, match=said):
        tool_of(function)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "greet: name: is missing"),
        ({"name": 5}, "greet: name: found a number; expected string"),
        ({"name": "a", "nmae": 1}, "greet: nmae: not in the schema; did you mean name?"),
    ],
)
def test_wrong_arguments_are_an_answer(arguments: dict[str, Any], said: str) -> None:
    assert load_plugins(entry()).call("greet", **arguments) == ToolResult(said, failed=True)


def test_a_tool_that_does_not_exist() -> None:
    with pytest.raises(PluginError, match="tool greeet: expected a loaded tool; did you mean greet"):
        load_plugins(entry()).call("greeet")


# --- a running event loop -----------------------------------------------------------------------------------------


async def slowly(name: str) -> str:
    """Greet somebody after a while."""
    await asyncio.sleep(0.01)
    return f"你好，{name}"


def test_inside_a_running_event_loop_plain_and_async() -> None:
    states: list[str] = []

    async def start() -> None:
        states.append(threading.current_thread().name)

    async def reminder(fired: HookEvent) -> str:
        await asyncio.sleep(0)
        return f"提醒 {fired.run}"

    async def register(api: PluginApi) -> None:
        await asyncio.sleep(0)
        api.register_tool(slowly)
        api.register_service(Service("s", start=start, stop=start))
        api.on("before_prompt_build", reminder)

    async def cell() -> list[str]:
        with load_plugins(entry(register=register)) as plugins:
            first = plugins.call("slowly", name="一").text
            both = await asyncio.gather(plugins.acall("slowly", name="二"), plugins.acall("slowly", name="三"))
            given = plugins.tools["slowly"].run({"name": "四"}, ToolContext())
            (fired,) = plugins.bus.emit(event())
            assert fired.injection == Injection("提醒 1", "greeter")
            assert not isinstance(given, str | ToolResult)
            return [first, *(each.text for each in both), str(await given)]

    assert asyncio.run(cell()) == ["你好，一", "你好，二", "你好，三", "你好，四"]
    assert states == ["plugin-greeter", "plugin-greeter"]


WHO = contextvars.ContextVar("WHO", default="nobody")


def plain_who() -> str:
    """Who asks."""
    return WHO.get()


async def later_who() -> str:
    """Who asks, later."""
    await asyncio.sleep(0)
    return WHO.get()


async def agent_who() -> str:
    """Who asks, of an agent within."""
    return Agent([calls(("later_who", {})), "好"], tools=[later_who]).run("谁？").messages[2].text


@pytest.mark.parametrize("within", [False, True], ids=["plain", "in a running loop"])
def test_context_variables_reach_hooks_and_tools(within: bool) -> None:
    async def later(event: HookEvent) -> str:
        return WHO.get()

    def register(api: PluginApi) -> None:
        api.register_tool(plain_who)
        api.register_tool(later_who)
        api.on("before_prompt_build", lambda event: WHO.get())
        api.on("before_prompt_build", later)

    plugins = load_plugins(entry(register=register))

    def asked() -> list[str]:
        WHO.set("我")
        script = [calls(("plain_who", {}), ("later_who", {}), ("agent_who", {})), "好"]
        turn = Agent(script, plugins=[plugins], tools=[agent_who]).run("谁？")
        said = [each.text for each in turn.messages if each.role == "tool"]
        said += [each.injection.text for each in turn.injections if each.injection]
        return said + [plugins.call(name).text for name in ("plain_who", "later_who")]

    async def in_a_loop() -> list[str]:
        return asked()

    found = asyncio.run(in_a_loop()) if within else contextvars.copy_context().run(asked)
    assert found == ["我"] * 7
    plugins.stop()


def test_async_tools_share_the_loop_of_their_services() -> None:
    def register(api: PluginApi) -> None:
        made: list[asyncio.Queue[str]] = []

        async def start() -> None:
            made.append(asyncio.Queue())
            made[0].put_nowait("from the service")

        async def take() -> str:
            """Take one."""
            return await made[0].get()

        api.register_service("queue", start=start)
        api.register_tool(take)

    with load_plugins(entry(register=register)) as plugins:
        assert plugins.call("take").text == "from the service"


# --- hooks --------------------------------------------------------------------------------------------------------


def test_handlers_answer_with_text_an_injection_or_a_hosts_object() -> None:
    answers: list[Any] = ["一", Injection("二", "x"), {"prependContext": "三"}, "", None]

    def register(api: PluginApi) -> None:
        for number, answer in enumerate(answers):
            api.on("before_prompt_build", lambda event, answer=answer: answer, priority=-number)

    fired = load_plugins(entry(register=register)).bus.emit(event())
    texts = [each.injection.text if each.injection else None for each in fired]
    assert texts == ["一", "二", "三", None, None]
    assert not [each.error for each in fired if each.error]


def test_an_unknown_hook_is_a_note_as_on_the_host() -> None:
    plugins = load_plugins(entry(register=lambda api: api.on("agent_ende", lambda event: None)))
    assert plugins.reports[0].status == "loaded"
    assert "hook 'agent_ende' ignored: the lab fires no such hook; did you mean agent_end?" in str(plugins)


# --- services -----------------------------------------------------------------------------------------------------


def service_plugin(id: str, said: list[str], **more: Callable[[], Any]) -> PluginEntry:
    def register(api: PluginApi) -> None:
        for number in (1, 2):
            start, stop = (lambda word=word: said.append(word) for word in (f"+{id}{number}", f"-{id}{number}"))
            api.register_service(f"{id}{number}", start=start, stop=stop)

    return define_plugin_entry(id=id, register=register)


def test_services_start_in_order_once_and_stop_in_reverse() -> None:
    said: list[str] = []
    plugins = load_plugins(service_plugin("a", said))
    assert said == ["+a1", "+a2"]
    plugins.load(service_plugin("b", said))
    assert said == ["+a1", "+a2", "+b1", "+b2"]
    assert plugins.services == {"a": ("a1", "a2"), "b": ("b1", "b2")}
    plugins.start()
    assert plugins.stop() == ()
    assert plugins.stop() == ()
    assert said[4:] == ["-b2", "-b1", "-a2", "-a1"]
    plugins.start()
    assert said[8:] == ["+a1", "+a2", "+b1", "+b2"]
    plugins.unload("a")
    assert said[12:] == ["-a2", "-a1"]
    plugins.stop()


def test_services_do_not_start_unless_asked() -> None:
    said: list[str] = []
    plugins = load_plugins(service_plugin("a", said), start=False)
    assert said == []
    with plugins:
        assert said == ["+a1", "+a2"]
    assert said[2:] == ["-a2", "-a1"]


def test_services_do_not_outlive_the_last_reference() -> None:
    said: list[str] = []
    plugins = load_plugins(service_plugin("a", said))
    del plugins
    gc.collect()
    assert said == ["+a1", "+a2", "-a2", "-a1"]


def test_an_async_timer_ends_with_its_plugin_even_when_it_is_forgotten() -> None:
    ticks: list[float] = []

    async def tick() -> None:
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.01)

    tasks: list[asyncio.Task[None]] = []

    async def start() -> None:
        tasks.append(asyncio.get_running_loop().create_task(tick()))

    plugins = load_plugins(entry(register=lambda api: api.register_service("clock", start=start)))
    end = time.monotonic() + 20
    while len(ticks) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    assert plugins.stop() == ()
    count = len(ticks)
    time.sleep(0.05)
    assert len(ticks) == count
    assert tasks[0].cancelled()


# --- logging and status -------------------------------------------------------------------------------------------


def test_secrets_are_hidden_in_what_a_plugin_logs_and_answers(caplog: pytest.LogCaptureFixture) -> None:
    schema = {"type": "object", "properties": {"appSecret": {"type": "string"}}}

    def register(api: PluginApi) -> None:
        def leak() -> str:
            """Leak."""
            raise ValueError(f"bad {api.plugin_config['appSecret']}")

        api.register_tool(leak)
        api.logger.warning("密钥 %s", api.plugin_config["appSecret"])

    config = {"plugins": {"entries": {"greeter": {"config": {"appSecret": "hunter2-hunter2"}}}}}
    with caplog.at_level(logging.INFO):
        plugins = load_plugins(entry(register=register, config_schema=schema), config=config)
        answer = plugins.call("leak")
    assert caplog.messages == ["密钥 ***"]
    assert answer.text == "leak: ValueError: bad ***"
    assert "hunter2" not in repr(plugins) + str(plugins) + caplog.text


def test_status_without_running_code(tmp_path: Path) -> None:
    plugin(tmp_path, "a", "raise SystemExit('never run')", "t")
    plugin(tmp_path, "b").joinpath("openclaw.plugin.json").write_text("{", encoding="utf-8")
    plugin(tmp_path, "c").joinpath("plugin.py").unlink()
    (tmp_path / "c" / "index.ts").touch()
    lines = [str(each) for each in plugin_status([tmp_path], run=False)]
    assert lines[0] == "[plugin:a] ready (tools: t)"
    assert lines[1].startswith(f"[plugin:b] disabled: {tmp_path / 'b' / 'openclaw.plugin.json'}:1: no JSON5")
    assert lines[2].endswith("plugin.py: expected the plugin's Python code")
    run = [str(each) for each in plugin_status([tmp_path])]
    assert (
        run[0] == "[plugin:a] disabled: plugin a: register: found sys.exit('never run'); expected a plugin that returns"
    )
    assert "found only index.ts, which an OpenClaw host runs and the lab does not" in run[2]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from openclaw_lab.cli import main

    assert main(["plugins"]) == 0
    out = capsys.readouterr().out
    assert "[plugin:weather] loaded (tools: weather_get)\n" in out
    assert len(out.splitlines()) == 3
    plugin(tmp_path, "a", "raise ValueError('坏')")
    assert main(["plugins", str(tmp_path)]) == 1
    assert capsys.readouterr().out == "[plugin:a] disabled: ValueError: 坏 (plugin.py:1)\n"
    assert main(["plugins", str(tmp_path), "--no-code"]) == 0
    assert main(["plugins", str(tmp_path / "none")]) == 2
    assert "expected a plugin's folder" in capsys.readouterr().err


def test_loading_is_cheap() -> None:
    """A turn must not pay for the guard around a tool."""
    tool = load_plugins(entry()).tools["greet"]
    context = ToolContext()
    tool.run({"name": "a"}, context)
    began = time.process_time()
    for _ in range(1_000):
        tool.run({"name": "a"}, context)
    assert (time.process_time() - began) / 1_000 < 100e-6


def test_a_tool_given_as_a_value() -> None:
    made = Tool("t", "d", {"type": "object", "properties": {}}, lambda arguments, context: ToolResult("值"))
    assert load_plugins(entry(register=lambda api: api.register_tool(made))).call("t").text == "值"
