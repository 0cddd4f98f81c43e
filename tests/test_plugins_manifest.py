"""Manifests and configs: what is read, and every fault in one line that names the place and shows no value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plugged import manifest

from openclaw_lab.errors import PluginError
from openclaw_lab.plugins.folders import bundled_plugins
from openclaw_lab.plugins.manifest import FILE, Manifest, manifest_problems, read_manifest
from openclaw_lab.plugins.relaxed_json import read_value
from openclaw_lab.plugins.schema import Checker, schema_fault, with_defaults
from openclaw_lab.plugins.settings import HostConfig, Mask, PluginConfig, host_config, plugin_config

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["appId"],
    "properties": {
        "appId": {"type": "string"},
        "appSecret": {"type": "string"},
        "mode": {"enum": ["fast", "slow"], "default": "fast"},
        "retry": {"type": "object", "properties": {"times": {"type": "integer", "default": 3, "minimum": 1}}},
        "城市": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    },
}


def folder(tmp_path: Path, content: str | bytes | dict[str, Any]) -> Path:
    data = json.dumps(content) if isinstance(content, dict) else content
    (tmp_path / FILE).write_bytes(data if isinstance(data, bytes) else data.encode())
    return tmp_path


# --- what is read -------------------------------------------------------------------------------------------------


def test_the_shape_of_openclaw(tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    text = """\ufeff// 飞书
    {
      id: 'feishu-tools', name: "飞书", /* shown */ version: '1.0.0',
      activation: { onStartup: true }, enabledByDefault: true,
      contracts: { tools: ["feishu_send_message",], }, skills: ["./skills"],
      configSchema: { type: 'object', properties: { appId: { type: "string" } } },
    }"""
    read = read_manifest(folder(tmp_path, text))
    assert (read.id, read.name, read.version) == ("feishu-tools", "飞书", "1.0.0")
    assert read.active
    assert read.tools == ("feishu_send_message",)
    assert read.skills == (tmp_path.resolve() / "skills",)
    assert read.config_schema["properties"] == {"appId": {"type": "string"}}
    assert read.notes == ()


def test_the_first_seed_documents_shape_with_notes_of_what_a_host_says(tmp_path: Path) -> None:
    fields = {"apiUrl": {"type": "string", "default": "http://127.0.0.1:9999", "description": "KnowHub Server 地址"}}
    values = {"name": "knowhub", "version": "0.1.0", "author": "howard", "main": "index.ts", "config": fields}
    read = read_manifest(folder(tmp_path, values))
    assert (read.id, read.tools, read.active) == ("knowhub", None, True)
    assert read.config_schema["properties"] == fields
    assert [note.partition(":")[0] for note in read.notes] == ["id", "config", "contracts.tools", "author, main"]
    assert plugin_config(read, HostConfig(), {}) == {"apiUrl": "http://127.0.0.1:9999"}


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"configSchema": None}, "configSchema: is missing: OpenClaw drops the plugin; an empty one is taken"),
        ({"contract": {}}, "contract: not read; did you mean contracts?"),
        ({"skills": ["./手册"]}, "skills: ./手册 is no folder"),
        ({"author": "张三"}, None),
    ],
)
def test_notes(tmp_path: Path, change: dict[str, Any], note: str | None) -> None:
    values = {name: value for name, value in {**manifest("a"), **change}.items() if value is not None}
    assert read_manifest(folder(tmp_path, values)).notes == ((note,) if note else ())


def test_the_bundled_manifests_need_no_note() -> None:
    assert set(bundled_plugins()) == {"knowhub", "weather", "feishu-tools"}
    assert [read_manifest(path).notes for path in bundled_plugins().values()] == [(), (), ()]


# --- what is wrong ------------------------------------------------------------------------------------------------

DEEP = "[" * 100_000 + "]" * 100_000
BROKEN: list[tuple[str, str | bytes | dict[str, Any], str]] = [
    ("empty", "", f"{FILE}:1: no JSON5 (nothing in it)"),
    ("not closed", '{\n"id": "a",\n', f"{FILE}:3: no JSON5 (expecting property name"),
    ("a word", "{\n id: nonsense }", f"{FILE}:2: no JSON5 (expecting value)"),
    ("two commas", '{"id": "a",,}', f"{FILE}:1: no JSON5"),
    ("a list", "[1]", "found a list; expected an object"),
    ("UTF-16", '{"id": "a"}'.encode("utf-16"), "found UTF-16 text at byte 0; expected UTF-8"),
    ("too deep", DEEP, "too many levels or digits"),
    ("a huge number", '{"id": ' + "9" * 5_000 + "}", "too many levels or digits"),
    ("twice", '{"id": "a", "id": "b"}', "found id given twice; expected each name once"),
    ("no id", {"configSchema": {"type": "object"}}, "id: is missing; expected the plugin's name"),
    ("a number as id", manifest("a", id=5), "id: found a number; expected a string"),
    ("an id with a path", manifest("../up"), "id: found '../up'; expected a name without spaces and signs"),
    ("an id with a break", manifest("a\nb"), "id: found 'a b'; expected a name"),
    ("a yes", manifest("a", activation={"onStartup": "yes"}), "activation.onStartup: found 'yes'; expected true"),
    ("a bare activation", manifest("a", activation=True), "activation: found a boolean; expected an object"),
    ("null", manifest("a", enabledByDefault=None), "enabledByDefault: found null; expected true or false"),
    (
        "tools as text",
        manifest("a", contracts={"tools": "weather_get"}),
        "contracts.tools: found 'weather_get'; expected a",
    ),
    ("a number as tool", manifest("a", contracts={"tools": ["t", 3]}), "contracts.tools[1]: found a number; expected"),
    ("an empty tool", manifest("a", contracts={"tools": [" "]}), "contracts.tools[0]: found ''; expected a string"),
    ("a Chinese tool name", manifest("a", "查询天气"), "contracts.tools: found '查询天气'; expected letters, digits"),
    ("a tool twice", manifest("a", "t", "t"), "contracts.tools: 't' is given twice"),
    ("skills outside", manifest("a", skills=["../b"]), "skills: found '../b'; expected a folder within"),
    ("skills elsewhere", manifest("a", skills=["/etc"]), "skills: found '/etc'; expected a folder within"),
    ("skills as object", manifest("a", skills={"./s": 1}), "skills: found an object; expected a list of strings"),
    ("a list as schema", manifest("a", configSchema=[]), "configSchema: found a list; expected a JSON Schema object"),
    ("no such type", manifest("a", configSchema={"type": "objekt"}), "configSchema: type: found objekt"),
    (
        "no such type within",
        manifest("a", configSchema={"type": "object", "properties": {"url": {"type": "text"}}}),
        "configSchema: properties.url.type: ",
    ),
    (
        "a bad pattern",
        manifest("a", configSchema={"type": "object", "properties": {"url": {"pattern": "("}}}),
        "configSchema: ",
    ),
    (
        "a schema elsewhere",
        manifest("a", configSchema={"type": "object", "$ref": "http://127.0.0.1:9/s"}),
        "configSchema: refers to another place, which is not read",
    ),
    (
        "a file as schema",
        manifest("a", configSchema={"type": "object", "$ref": "file:///etc/passwd"}),
        "configSchema: refers to another place, which is not read",
    ),
    ("a bad seed field", {"name": "知识库", "config": {"apiUrl": {"type": "网址"}}}, "config: properties.apiUrl.type"),
    (
        "several faults",
        {"id": 1, "name": 2, "contracts": 3},
        "id: found a number; expected a string; name: found a number; expected a string",
    ),
]


@pytest.mark.parametrize(("content", "said"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_broken_manifest_is_one_line(tmp_path: Path, content: Any, said: str) -> None:
    with pytest.raises(PluginError) as caught:
        read_manifest(folder(tmp_path, content))
    line = str(caught.value)
    assert said in line
    assert line.startswith(str(tmp_path / FILE))
    assert "\n" not in line
    assert len(line) < 600


def test_thirty_of_them() -> None:
    assert len(BROKEN) >= 30


def test_a_manifest_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=f"{FILE}: expected a plugin's manifest"):
        read_manifest(tmp_path)


def test_a_link_out_of_the_folder_is_no_skill_folder(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "skills").symlink_to(tmp_path / "out")
    with pytest.raises(PluginError, match=r"skills: found '\./skills'; expected a folder within"):
        read_manifest(folder(tmp_path / "in", manifest("a", skills=["./skills"])))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: 1, 'b': [.5, 5., 0xFF, +3, -.5e3,],}", {"a": 1, "b": [0.5, 5.0, 255, 3, -500.0]}),
        ("{ // 注释\n 中文: '值', /* x */ $a_1: null }", {"中文": "值", "$a_1": None}),
        (r"{a: '\x41\u0042\'\v', b: 'x" + "\\\n" + "y'}", {"a": "AB'\v", "b": "xy"}),
        ("{a: '//not', b: \"/*a comment*/\"}", {"a": "//not", "b": "/*a comment*/"}),
    ],
)
def test_json5(text: str, value: object) -> None:
    assert read_value(text, "here") == value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("id", "name", "activation", "enabledByDefault", "contracts", "skills", "configSchema", "config", "版本")


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_it_says_it_is_read_or_one_line(tmp_path: Path, values: dict[str, Any]) -> None:
    line = ""
    try:
        assert read_manifest(folder(tmp_path, values)).id
    except PluginError as error:
        line = str(error)
    assert "\n" not in line


@given(st.text(alphabet="{}[]:,'\"/*\n ab1.+-x\\\\", max_size=12))
@settings(max_examples=300, deadline=None)
def test_any_text_is_json5_or_one_line(text: str) -> None:
    line = "here"
    try:
        read_value(text, "here")
    except PluginError as error:
        line = str(error)
    assert line.startswith("here")
    assert "\n" not in line


# --- configs ------------------------------------------------------------------------------------------------------


def made(
    config: object, environment: dict[str, str] | None = None, own: str | None = None, at: Path | None = None
) -> Any:
    if at and own is not None:
        (at / "config.json").write_text(own, encoding="utf-8")
    read = Manifest("feishu", at, config_schema=SCHEMA)
    host = HostConfig({"entries": {"feishu": {"config": config}}}, "openclaw.json")
    return plugin_config(read, host, environment or {})


def test_defaults_are_filled_in_nested_objects_too() -> None:
    assert made({"appId": "a"}) == {"appId": "a", "mode": "fast", "retry": {"times": 3}}
    assert with_defaults(SCHEMA, {"retry": {}})["retry"] == {"times": 3}


def test_the_hosts_config_wins_over_the_plugins_own(tmp_path: Path) -> None:
    own = "{ appId: 'own', mode: 'slow' } // 自带配置"
    assert made({"appId": "host"}, own=own, at=tmp_path) == {"appId": "host", "mode": "slow", "retry": {"times": 3}}


def test_values_of_the_environment() -> None:
    assert made({"appId": "x-${APP_ID}"}, {"APP_ID": "7"})["appId"] == "x-7"
    with pytest.raises(PluginError, match=r"config.appId: found \$\{APP_ID\}; expected a value of the environment"):
        made({"appId": "${APP_ID}"})


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "plugins.entries.feishu.config.appId: is missing"),
        ({"appId": 5}, "config.appId: found a number; expected string"),
        ({"appId": "a", "appid": "hunter2"}, "config.appid: not in the schema; did you mean appId?"),
        ({"appId": "a", "mode": "hunter2"}, "config.mode: found a string; expected one of fast, slow"),
        ({"appId": "a", "retry": {"times": 0}}, "config.retry.times: found a number; expected at least 1"),
        ({"appId": "a", "retry": {"times": "hunter2"}}, "config.retry.times: found a string; expected integer"),
        ({"appId": "a", "城市": ["北京", 5]}, "config.城市[1]: found a number; expected string"),
        ({"appId": "a", "城市": ["北京", "上海", "hunter2"]}, "config.城市: found a list; expected at most 2 items"),
        (["hunter2"], "openclaw.json: plugins.entries.feishu.config: found a list; expected an object"),
        ({"appId": None, "mode": "hunter2"}, "appId: found null; expected string; plugins.entries.feishu.config.mode"),
    ],
)  # fmt: skip
def test_a_wrong_config_names_the_path_and_shows_no_value(config: object, said: str) -> None:
    with pytest.raises(PluginError) as caught:
        made(config)
    assert said in str(caught.value)
    assert str(caught.value).startswith("openclaw.json" if config else "plugin feishu")
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wrong_config_file_of_the_plugin_is_named(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"config\.json: plugins\.entries\.feishu\.config\.mode: found a string"):
        made({"appId": "a"}, own='{"mode": "hunter2"}', at=tmp_path)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"plugins": []}, "plugins"),
        ({"plugins": {"entries": 3}}, "entries: found a number"),
        (7, "config: found a int"),
    ],
)
def test_a_host_config_of_another_shape(config: Any, said: str) -> None:
    with pytest.raises(PluginError, match=said):
        host_config(config)


def test_a_host_config_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "openclaw.json"
    path.write_text("{ plugins: { entries: { a: { enabled: false } } } }", encoding="utf-8")
    host = host_config(path)
    assert host.refusal(Manifest("a", on_startup=True)) == f"plugins.entries.a.enabled is false in {path}"
    assert host.refusal(Manifest("b", on_startup=True)) == ""


@pytest.mark.parametrize(
    ("plugins", "active", "said"),
    [
        ({}, True, ""),
        ({}, False, "neither enabledByDefault nor activation.onStartup"),
        ({"entries": {"a": {"enabled": True}}}, False, ""),
        ({"enabled": False}, True, "plugins.enabled is false"),
        ({"deny": ["a"]}, True, "plugins.deny names it"),
        ({"allow": ["b"]}, True, "plugins.allow does not name it"),
        ({"allow": ["a"]}, True, ""),
    ],
)
def test_who_is_wanted(plugins: dict[str, Any], active: bool, said: str) -> None:
    refusal = HostConfig(plugins).refusal(Manifest("a", enabled_by_default=active))
    assert refusal.startswith(said)
    assert bool(refusal) == bool(said)


def test_a_name_that_can_never_be_set_is_an_error_and_not_a_default() -> None:
    config = PluginConfig({"appId": "a"}, Manifest("x", config_schema=SCHEMA))
    assert config.get("appSecret", "none") == "none"
    with pytest.raises(
        PluginError, match=r"plugin_config\['timeout'\]: expected a name of the manifest's configSchema"
    ):
        config.get("timeout")
    assert "a" not in repr(config).replace("appId", "").replace("PluginConfig", "")


def test_problems_of_a_manifest_against_what_the_code_reads() -> None:
    found = manifest_problems(Manifest("x", config_schema=SCHEMA), ["appId", "timeout"])
    assert found == (
        "x: configSchema.properties.timeout: is missing, but the code reads it and other names are refused",
    )
    assert manifest_problems(Manifest("x", config_schema={"type": "object"}), ["timeout"]) == ()


def test_secrets_are_masked() -> None:
    schema = {"properties": {"pin": {"type": "string", "writeOnly": True}}}
    config = {"pin": "1234-5678", "appSecret": "hunter2", "nested": [{"token": "tok-1"}], "url": "http://a", "key": "k"}
    mask = Mask(config, schema, {"API_TOKEN": "env-secret", "HOME": "/home/u"})
    text = "1234-5678 hunter2 tok-1 env-secret http://a /home/u k"
    assert mask(text) == "*** *** *** *** http://a /home/u k"


def test_a_value_that_is_no_json_is_a_fault_and_no_crash() -> None:
    assert Checker(SCHEMA)({"appId": object()})[0].startswith("value: found what is no JSON")
    assert schema_fault({"type": "object", "properties": {"a": {"minimum": "x"}}})
