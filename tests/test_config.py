"""LabConfig and its knobs: defaults, presets, JSON, what is refused with which words, and what never shows a secret."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_lab.config import MODE_INTERVALS, SECTIONS, LabConfig
from openclaw_lab.errors import ConfigError, DataError, LabError
from openclaw_lab.knobs import Knob, mask_secrets

KNOBS = LabConfig.knobs()
SECRET = "hunter2-s3cr3t"


def values_of(knob: Knob) -> st.SearchStrategy[Any]:
    """Every value that a knob takes."""
    if knob.name == "knowhub.api_url":
        return st.sampled_from(
            ["http://127.0.0.1:9999", "https://kb.example", "http://[::1]:80/p", "https://u:p@h?k=v"]
        )
    if knob.name == "skills.thresholds":
        return st.lists(st.sampled_from(["pdf=0.7", "a=b=1", "天气=0"]), unique=True).map(tuple)
    if knob.kind is bool:
        return st.booleans()
    if knob.kind is tuple:
        items = st.sampled_from(knob.choices) if knob.choices else st.from_regex(r"[a-z0-9-]{1,20}", fullmatch=True)
        return st.lists(items, unique=True).map(tuple)
    if knob.choices:
        return st.sampled_from(knob.choices)
    if knob.kind is str:
        return st.text(st.characters(exclude_categories=["Cs"]))
    assert knob.low is not None
    assert knob.high is not None
    if knob.kind is int:
        return st.integers(int(knob.low), int(knob.high))
    return st.floats(knob.low, knob.high)


changes = st.fixed_dictionaries({}, optional={name: values_of(knob) for name, knob in KNOBS.items()})


def line_of(error: pytest.ExceptionInfo[LabError]) -> str:
    """The message, which is one short line."""
    text = str(error.value)
    assert len(text.splitlines()) == 1
    assert len(text) < 1000
    return text


# --- knobs --------------------------------------------------------------------------------------------------------


def test_the_sections_are_those_of_the_design() -> None:
    assert list(SECTIONS) == ["reminders", "skills", "redaction", "injection", "knowhub", "extraction", "growth"]
    assert [each.name for each in dataclasses.fields(LabConfig)] == list(SECTIONS)


@pytest.mark.parametrize("knob", KNOBS.values(), ids=list(KNOBS))
def test_every_knob_describes_itself(knob: Knob) -> None:
    assert knob.check(knob.default) == knob.default
    assert len(knob.help) > 10
    assert "\n" not in knob.help
    assert knob.field == knob.name.split(".")[1]
    assert LabConfig().get(knob.name) == knob.default
    if knob.kind in (int, float):
        assert knob.low is not None
        assert knob.high is not None
        assert knob.low <= knob.default <= knob.high  # type: ignore[operator]
        assert knob.unit or "score" in knob.help or "similarity" in knob.help


def test_help_of_modes_and_intervals_agree() -> None:
    interval = KNOBS["reminders.interval"]
    assert all(interval.check(count) == count for count in MODE_INTERVALS.values())


# --- presets ------------------------------------------------------------------------------------------------------


def test_the_default_is_the_preset_tuned() -> None:
    assert LabConfig() == LabConfig.preset("tuned")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("reminders.host", "seed"),
        ("reminders.policy", "interval"),
        ("reminders.interval", 3),
        ("reminders.mode", "normal"),
        ("reminders.unit", "llm_call"),
        ("reminders.scope", "run"),
        ("reminders.start", "run"),
        ("reminders.language", "zh"),
        ("skills.matcher", "seed"),
        ("skills.min_hits", 2),
        ("redaction.preset", "seed"),
        ("injection.detector", "seed"),
        ("extraction.enabled", False),
        ("extraction.trigger", "agent_end"),
        ("knowhub.api_url", "http://127.0.0.1:9999"),
        ("growth.max_tokens", 500),
    ],
)
def test_the_preset_seed_is_the_seed_documents(name: str, expected: object) -> None:
    assert LabConfig.preset("seed").get(name) == expected


def test_differences_name_both_values() -> None:
    difference = LabConfig.preset("seed").differences(LabConfig())
    assert difference["skills.matcher"] == ("seed", "hybrid")
    assert "skills.min_hits" not in difference
    assert not LabConfig().differences(LabConfig())


@pytest.mark.parametrize("name", ["Seed", "", "best"])
def test_an_unknown_preset(name: str) -> None:
    with pytest.raises(ConfigError, match="seed or tuned"):
        LabConfig.preset(name)


# --- JSON, copies -------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(changes)
def test_json_round_trip(new: dict[str, Any]) -> None:
    try:
        config = LabConfig().with_(new)
    except ConfigError:  # the one rule between two settings
        new.pop("extraction.enabled")
        config = LabConfig().with_(new)
        assert not config.knowhub.private
    assert LabConfig.from_json(config.to_json()) == config
    assert LabConfig.from_dict(config.to_dict()) == config
    assert pickle.loads(pickle.dumps(config)) == config
    assert {name: config.get(name) for name in new} == new
    assert config.digest() == LabConfig.from_json(config.to_json()).digest()


@settings(deadline=None)
@given(st.sampled_from(list(KNOBS)), st.data())
def test_what_a_command_line_gives_as_text_is_the_same_value(name: str, data: st.DataObject) -> None:
    value = data.draw(values_of(KNOBS[name]))
    text = ",".join(value) if isinstance(value, tuple) else repr(value) if isinstance(value, float) else str(value)
    assert KNOBS[name].parse(text) == value


def test_a_file_round_trip(tmp_path: Path) -> None:
    config = LabConfig().with_({"reminders.reminder_text_zh": "请保存经验 🙂", "reminders.events": ["feedback"]})
    path = tmp_path / "a folder" / "配置.json"
    config.to_json(path)
    assert LabConfig.from_json(path) == LabConfig.from_json(str(path)) == config
    assert "请保存经验" in path.read_text("utf-8")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert LabConfig.from_json(path) == config
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_file_with_a_credential_is_its_owners(tmp_path: Path) -> None:
    for number, (address, private) in enumerate({"https://kb.example": False, "https://u:p@kb.example": True}.items()):
        path = tmp_path / f"{number}.json"
        LabConfig().with_({"knowhub.api_url": address}).to_json(path)
        assert (stat.S_IMODE(path.stat().st_mode) == 0o600) is private


def test_what_is_left_out_keeps_its_default() -> None:
    config = LabConfig.from_dict({"skills": {"min_hits": 4}, "reminders": {}})
    assert config == LabConfig().with_({"skills.min_hits": 4})
    assert LabConfig.from_json(" {}") == LabConfig()


def test_with_leaves_the_original_and_nothing_can_be_assigned() -> None:
    config = LabConfig()
    changed = config.with_({"reminders.interval": 7})
    assert (config.reminders.interval, changed.reminders.interval) == (3, 7)
    assert changed.with_({}) == changed
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.reminders.interval = 5  # type: ignore[misc]
    assert hash(config) == hash(LabConfig())


@pytest.mark.parametrize(
    ("mode", "policy", "interval"),
    [("off", "off", 3), ("minimal", "interval", 5), ("normal", "interval", 3), ("aggressive", "interval", 2)],
)
def test_the_seeds_modes(mode: str, policy: str, interval: int) -> None:
    config = LabConfig().with_({"reminders.mode": mode})
    assert (config.reminders.policy, config.reminders.interval) == (policy, interval)
    assert config.get("reminders.mode") == config.reminders.mode == mode


@pytest.mark.parametrize(
    "new", [{"reminders.policy": "event"}, {"reminders.policy": "interval", "reminders.interval": 4}]
)
def test_what_the_seed_has_no_word_for(new: dict[str, Any]) -> None:
    assert LabConfig().with_(new).reminders.mode == "custom"


def test_a_mode_and_another_interval_contradict() -> None:
    agree = {"reminders.mode": "minimal", "reminders.interval": 5}
    assert LabConfig().with_(agree).reminders.mode == "minimal"
    with pytest.raises(ConfigError, match=r"reminders\.interval"):
        LabConfig().with_({"reminders.mode": "minimal", "reminders.interval": 4})


# --- refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("skills.min_hit", "skills.min_hits"),
        ("skill.min_hits", "skills.min_hits"),
        ("min_hits", "skills.min_hits"),
        ("reminders.intervall", "reminders.interval"),
        ("reminders.modes", "reminders.mode"),
        ("knowhub.apiUrl", "knowhub.api_url"),
        ("injection.treshold", "injection.threshold"),
        ("extraction.enable", "extraction.enabled"),
        ("growth.max_token", "growth.max_tokens"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(name: str, suggested: str) -> None:
    with pytest.raises(ConfigError) as error:
        LabConfig().with_({name: 1})
    assert line_of(error).startswith(f"{name}: expected a known setting; did you mean {suggested}?")
    with pytest.raises(ConfigError, match=r"did you mean|known:"):
        LabConfig().get(name)


@pytest.mark.parametrize("name", ["", "xyzzy", "中文.设置", 5, None, ("a", "b")])
def test_a_name_near_nothing_lists_all(name: Any) -> None:
    with pytest.raises(ConfigError, match=r"known: .*growth\.max_results"):
        LabConfig().with_({name: 1})


def test_unknown_names_in_json() -> None:
    for values, expected in [
        ({"reminder": {}}, "reminder: expected a known setting; did you mean reminders?"),
        ({"skills": {"minhits": 3}}, "skills.minhits: expected a known setting; did you mean skills.min_hits?"),
    ]:
        with pytest.raises(ConfigError) as error:
            LabConfig.from_dict(values)
        assert line_of(error) == expected
    with pytest.raises(ConfigError, match="did you mean skills"):
        LabConfig().digest("skill")


BAD: list[tuple[str, object, str]] = [
    ("reminders.interval", 0, "found 0; expected an integer from 1 to 1000 units"),
    ("reminders.interval", 1001, "found 1001; expected an integer from 1 to 1000 units"),
    ("reminders.interval", 2.5, "found 2.5; expected an integer from 1 to 1000 units"),
    ("reminders.interval", "3", "found '3'; expected an integer from 1 to 1000 units"),
    ("reminders.interval", True, "found True; expected an integer from 1 to 1000 units"),
    ("reminders.interval", None, "found None; expected an integer from 1 to 1000 units"),
    ("reminders.interval", math.nan, "found nan; expected an integer from 1 to 1000 units"),
    ("reminders.interval", math.inf, "found inf; expected an integer from 1 to 1000 units"),
    ("reminders.interval", 10**30, "expected an integer from 1 to 1000 units"),
    ("injection.threshold", math.nan, "found nan; expected a number from 0 to 1"),
    ("injection.threshold", 1.0000001, "found 1.0000001; expected a number from 0 to 1"),
    ("injection.threshold", -0.1, "found -0.1; expected a number from 0 to 1"),
    ("injection.threshold", 10**400, "expected a number from 0 to 1"),
    ("injection.threshold", False, "found False; expected a number from 0 to 1"),
    ("injection.threshold", "0.5", "found '0.5'; expected a number from 0 to 1"),
    ("extraction.enabled", 1, "found 1; expected true or false"),
    ("extraction.enabled", "true", "found 'true'; expected true or false"),
    ("skills.matcher", "Seed", "found 'Seed'; expected one of seed, keyword, bm25, embedding, hybrid"),
    ("skills.matcher", ["seed"], "found ['seed']; expected one of seed, keyword, bm25, embedding, hybrid"),
    ("skills.matcher", {}, "found {}; expected one of seed, keyword, bm25, embedding, hybrid"),
    ("knowhub.submitted_by", 7, "found 7; expected a string"),
    ("knowhub.submitted_by", b"me", "found b'me'; expected a string"),
    ("knowhub.submitted_by", "half an emoji \ud83d", "expected a string of valid Unicode"),
    ("reminders.events", "feedback", "found 'feedback'; expected a list of recovery, new_resource, feedback, task_end"),
    ("reminders.events", ["feedbacks"], "found ('feedbacks',); expected a list of recovery"),
    ("reminders.events", [1], "expected a list of recovery"),
    ("reminders.events", {1, "feedback"}, "expected a list of recovery"),
    ("reminders.events", {"feedback": 1}, "expected a list of recovery"),
    ("reminders.mode", "often", "found often; expected one of off, minimal, normal, aggressive"),
    ("reminders.mode", ["off"], "expected one of off, minimal, normal, aggressive"),
    ("growth.max_tokens", [3], "found [3]; expected an integer from 0 to 100000 tokens"),
    ("knowhub.submitted_by", ["x"] * 100_000, "expected a string"),
]


@pytest.mark.parametrize(("name", "value", "expected"), BAD, ids=[f"{n}-{str(v)[:12]}" for n, v, _ in BAD])
def test_a_bad_value_is_one_line_that_names_the_setting(name: str, value: object, expected: str) -> None:
    with pytest.raises(ConfigError) as error:
        LabConfig().with_({name: value})
    assert line_of(error).startswith(f"{name}: found ")
    assert expected in line_of(error)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("reminders.interval", "many"),
        ("reminders.interval", ""),
        ("reminders.interval", "2.5"),
        ("reminders.interval", "nan"),
        ("injection.threshold", "1,5"),
        ("extraction.enabled", "yes"),
        ("skills.matcher", "bm-25"),
        ("reminders.events", "feedback,feedbak"),
    ],
)
def test_a_bad_text_from_a_command_line(name: str, text: str) -> None:
    with pytest.raises(ConfigError) as error:
        KNOBS[name].parse(text)
    assert line_of(error).startswith(f"{name}: found")


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("reminders.interval", np.int64(4), 4),
        ("reminders.interval", np.uint8(4), 4),
        ("reminders.interval", 4.0, 4),
        ("reminders.interval", np.float32(4), 4),
        ("reminders.interval", np.array(4), 4),
        ("injection.threshold", 1, 1.0),
        ("injection.threshold", np.int32(1), 1.0),
        ("injection.threshold", np.float64(0.25), 0.25),
        ("extraction.enabled", np.bool_(True), True),
        ("skills.matcher", np.str_("seed"), "seed"),
        ("reminders.events", ["feedback"], ("feedback",)),
        ("reminders.events", {"task_end", "feedback"}, ("feedback", "task_end")),
        ("reminders.events", [], ()),
    ],
)
def test_what_numpy_and_json_give_is_taken(name: str, value: object, kept: object) -> None:
    found = LabConfig().with_({name: value}).get(name)
    assert found == kept
    assert type(found) is type(kept)


@pytest.mark.parametrize("value", [np.array([3]), np.array([[1, 2]]), np.bool_(True), np.float64("nan")])
def test_numpy_values_that_are_no_integer(value: object) -> None:
    with pytest.raises(ConfigError, match=r"reminders\.interval"):
        LabConfig().with_({"reminders.interval": value})


# --- addresses and secrets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    ["", "kb.example", "ftp://kb.example", "http://", "https:///path", "http://h:port", "http://h:99999", "http://[::1",
     "http://a b", "http://h\n.example", "file:///etc/passwd", "javascript:alert(1)", "http://h:0"],
)  # fmt: skip
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ConfigError) as error:
        LabConfig().with_({"knowhub.api_url": address})
    assert "expected an http or https address" in line_of(error)


@pytest.mark.parametrize(
    ("address", "private"),
    [
        ("http://127.0.0.1:9999", True),
        ("http://localhost/x", True),
        ("http://[::1]:8080", True),
        ("HTTPS://KB.example", True),
        ("https://kb.example", True),
        ("http://kb.example", False),
        ("http://127.0.0.1.evil.example", False),
        ("http://localhost@evil.example", False),
        ("http://10.0.0.1", False),
        ("http://0.0.0.0", False),
        ("http://知识库.example", False),
    ],
)
def test_transcripts_do_not_travel_in_the_clear(address: str, private: bool) -> None:
    config = LabConfig().with_({"knowhub.api_url": address})
    assert config.knowhub.private is private
    for turned_on in (
        lambda: config.with_({"extraction.enabled": True}),
        lambda: LabConfig().with_({"knowhub.api_url": address, "extraction.enabled": True}),
        lambda: LabConfig.from_dict({"knowhub": {"api_url": address}, "extraction": {"enabled": True}}),
    ):
        if private:
            assert turned_on().extraction.enabled
            continue
        with pytest.raises(ConfigError) as error:
            turned_on()
        assert "use https, or turn extraction off" in line_of(error)


@pytest.mark.parametrize(
    ("address", "masked"),
    [
        ("http://h.example/bot123456:S3cretQ/send", "http://h.example/***/send"),
        ("https://h.example/v1/api/k9f3aa71c0d2", "https://h.example/v1/api/***"),
        ("http://127.0.0.1:9999", "http://127.0.0.1:9999"),
        ("https://kb.example/v1/search", "https://kb.example/v1/search"),
        ("https://me:pw@kb.example/v1", "https://***@kb.example/v1"),
        ("https://token@kb.example", "https://***@kb.example"),
        ("https://a@b@kb.example", "https://***@kb.example"),
        ("https://kb.example?key=abc&x=1", "https://kb.example?key=***&x=***"),
        ("https://kb.example?abc", "https://kb.example?***"),
        ("https://kb.example?key=abc=def", "https://kb.example?key=***"),
        ("https://kb.example#abc", "https://kb.example#***"),
        ("https://kb.example?key=", "https://kb.example?key=***"),
        ("me:pw@kb.example", "***@kb.example"),
    ],
)
def test_masked_addresses(address: str, masked: str) -> None:
    assert mask_secrets(address) == masked
    assert mask_secrets(masked) == masked


HOLDING = [
    f"https://me:{SECRET}@kb.example/v1",
    f"https://{SECRET}@kb.example",
    f"https://kb.example/v1?token={SECRET}",
    f"https://kb.example/v1?{SECRET}",
    f"https://kb.example/v1?a=b;token={SECRET}#x",
    f"https://kb.example/#{SECRET}",
]


@pytest.mark.parametrize("address", HOLDING)
def test_a_credential_is_never_shown(address: str) -> None:
    config = LabConfig().with_({"knowhub.api_url": address})
    other = LabConfig().with_({"knowhub.api_url": address.replace(SECRET, "another")})
    for shown in (repr(config), str(config), repr(config.knowhub), json.dumps(config.to_dict(masked=True))):
        assert SECRET not in shown
        assert "kb.example" in shown
    assert config.digest() == other.digest()
    assert config.digest("knowhub") == other.digest("knowhub")
    assert LabConfig.from_dict(config.to_dict(masked=True)).digest() == config.digest()
    assert SECRET in config.to_json()  # the file itself must work


REFUSED: list[object] = [
    *[{"knowhub": {"api_url": each.replace("https", "ftp")}} for each in HOLDING],
    *[{"knowhub": {"api_url": each.replace("https", "http")}, "extraction": {"enabled": True}} for each in HOLDING],
    {"knowhub": {"api_url": f"me:{SECRET}@kb.example"}},
    {"knowhub": {"api_url": f"https://me:{SECRET}/x@kb.example"}},
    {"knowhub": {"api_url": f"https://me:{SECRET} x@kb.example"}},
    {"knowhub": {"api_url": [f"https://{SECRET}@kb.example"]}},
    {"knowhub": {"api_url": SECRET.encode()}},
    {"knowhub": f"https://{SECRET}@kb.example"},
    {"knowhub": {f"https://{SECRET}@kb.example": 1}},
    {f"https://{SECRET}@kb.example": 1},
    [f"https://{SECRET}@kb.example"],
    {"knowhub": {"api_urll": f"https://{SECRET}@kb.example"}},
]


@pytest.mark.parametrize("values", REFUSED, ids=str)
def test_a_credential_is_in_no_error(values: object) -> None:
    with pytest.raises(ConfigError) as error:
        LabConfig.from_dict(values)
    assert SECRET not in line_of(error)
    assert SECRET not in str(error.value.found)


@pytest.mark.parametrize(
    "text",
    [
        f'{{"knowhub": {{"api_url": https://{SECRET}@kb.example}}}}',
        f'{{"knowhub": {{"api_url": "https://me:"{SECRET}@kb.example"}}}}',
        f"{{'knowhub': {{'api_url': '{SECRET}'}}}}",
    ],
)
def test_a_credential_is_in_no_error_of_bad_json(text: str) -> None:
    with pytest.raises(ConfigError) as error:
        LabConfig.from_json(text)
    assert SECRET not in line_of(error)


# --- files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"skills": {\n"min_hits": 3,\n}}', ":3: found column 1: "),
        ("", ":1: found column 1: Expecting value; expected JSON"),
        ("[]", ": configuration: found a list; expected an object with sections"),
        ('{"skills": 3}', ": skills: found a int; expected an object of settings by name"),
        ('{"skills": {"min_hits": NaN}}', ": skills.min_hits: found nan; expected an integer from 1 to 50 keywords"),
        ('{"skills": {"min_hits": 1e999}}', ": skills.min_hits: found inf"),
        ('{"skills": {"min_hit": 1}}', ": skills.min_hit: expected a known setting; did you mean skills.min_hits?"),
        ('{"skills": {"min_hits": ' + "9" * 5000 + "}}", "found JSON that cannot be read"),
        ("{" + '"a":{' * 100_000, "found JSON that cannot be read"),
        ('{"skills": {"min_hits": 3}} trailing', ":1: found column 29: Extra data"),
    ],
)
def test_a_bad_file_is_one_line_with_its_name(tmp_path: Path, content: str, expected: str) -> None:
    path = tmp_path / "lab-config.json"
    path.write_text(content, "utf-8")
    with pytest.raises(ConfigError) as error:
        LabConfig.from_json(path)
    assert line_of(error).startswith(f"{path}{expected}" if expected[0] == ":" else str(path))
    assert expected in line_of(error)


@pytest.mark.parametrize(
    ("content", "expected"),
    [(None, "expected an existing file"), ("{}".encode("utf-16"), "UTF-16"), ("{配}".encode("gbk"), "not UTF-8")],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None, expected: str) -> None:
    path = tmp_path / "lab-config.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError) as error:
        LabConfig.from_json(path)
    assert line_of(error).startswith(str(path))
    assert expected in line_of(error)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a folder; expected a file"):
        LabConfig.from_json(tmp_path)


def test_repr_shows_what_was_changed_only() -> None:
    assert "min_hits=5" in repr(LabConfig().with_({"skills.min_hits": 5}))
    assert "SkillConfig()" in repr(LabConfig())


def test_what_is_no_address_is_not_repeated() -> None:
    """A key that was put where the address belongs must not come back in the message."""
    for value in (SECRET, f"http://[{SECRET}", f"{SECRET}@example.org", f"ftp://{SECRET}.example"):
        with pytest.raises(ConfigError) as error:
            LabConfig().with_({"knowhub.api_url": value})
        assert SECRET not in str(error.value)
        assert "knowhub.api_url" in str(error.value)
