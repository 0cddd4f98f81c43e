"""Values that are told by their keys: strings and numbers, in JSON, in objects, in tool calls; and put back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_lab.config import RedactionConfig
from openclaw_lab.messages import Message, ToolCall
from openclaw_lab.redaction.keys import number_name, secret_name, taken_for
from openclaw_lab.redaction.numbering import KeyMap, restore
from openclaw_lab.redaction.redactor import Redactor
from openclaw_lab.redaction.spans import replaced

STRICT = Redactor()
NUMBERED = Redactor(RedactionConfig(placeholders="numbered"))


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("phone", "PHONE"), ("phoneNumber", "PHONE"), ("home_phone_no", "PHONE"), ("MOBILE", "PHONE"), ("tel", "PHONE"),
        ("contact.mobile-phone", "PHONE"), ("phone2", "PHONE"), ("用户手机号", "PHONE"), ("联系电话", "PHONE"),
        ("ssn", "SSN"), ("userSSN", "SSN"), ("id_card", "ID_NUMBER"), ("idCardNo", "ID_NUMBER"),
        ("身份证号", "ID_NUMBER"),
        ("card_number", "BANK_CARD"), ("cardNo", "BANK_CARD"), ("银行卡号", "BANK_CARD"), ("creditCard", "CREDIT_CARD"),
        ("passport_no", "PASSPORT"), ("pin", "PIN"), ("cvv", "CVV"), ("password", "PASSWORD"), ("apiKey", "API_KEY"),
        ("hotel", ""), ("label", ""), ("span", ""), ("spin", ""), ("japan", ""), ("iPhone", ""), ("microphone", ""),
        ("id", ""), ("phone_count", ""), ("cardinality", ""), ("timeout", ""), ("电话费", ""), ("access", ""), ("", ""),
    ],
)  # fmt: skip
def test_keys(key: str, name: str) -> None:
    assert secret_name(key) == name


@pytest.mark.parametrize(
    ("key", "number", "name"),
    [
        ("phone", "13812345678", "PHONE"), ("phone", "13812345678.0", "PHONE"), ("phone", "1.3812345678E10", "PHONE"),
        ("phone", "3", ""), ("mobile", "0.53421876", ""), ("mobile", "120000", ""), ("tel", "-1", ""),
        ("password", "0", "PASSWORD"), ("secret", "12345678", "SECRET"), ("secret", "1", ""),
        ("apiKey", "1234567", "API_KEY"),
        ("total_token", "123456789", ""), ("token", "17", ""), ("session_id", "123456789", ""), ("pin", "13", ""),
        ("pin", "1234", "PIN"), ("card", "2", ""), ("card", "4111111111111112", "BANK_CARD"),
        ("id", "4111111111111112", ""),
        ("ts", "1690456789012", ""), ("count", "13812345678", ""), ("price", "13812345678", ""),
        ("phone", "1e99999", "PHONE"),
    ],
)  # fmt: skip
def test_numbers(key: str, number: str, name: str) -> None:
    assert number_name(key, number) == name


@pytest.mark.parametrize("key", ["order_id", "orderNo", "invoice-number", "订单编号", "运单号", "trade_no", "batchSN"])
def test_what_is_numbered(key: str) -> None:
    assert taken_for(key) == "phone"
    assert STRICT.redact(json.dumps({key: "13812345678"})).text == json.dumps({key: "13812345678"})
    assert not any(
        map(taken_for, ("id", "border", "phone", "user_id", "手机号", "order", "conversion_rate", "android", "ip", ""))
    )


@pytest.mark.parametrize("key", ["version", "appVersion", "firmware", "OID", "版本", "版本号"])
def test_versions_are_no_addresses(key: str) -> None:
    assert STRICT.redact(json.dumps({key: "4.18.0.1"})).text == json.dumps({key: "4.18.0.1"})
    assert STRICT.redact('{"src_ip": "127.0.0.1", "listen": "127.0.0.1"}').text == (
        '{"src_ip": "[IP]", "listen": "127.0.0.1"}'
    )
    assert STRICT.redact_value({key: "on host 10.0.0.1", "server": "4.18.0.1"}) == {
        key: "on host [IP]",
        "server": "[IP]",
    }


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ('{"phone":13812345678}', '{"phone":"[PHONE]"}'),
        ('{"ssn":"123456789"}', '{"ssn":"[SSN]"}'),
        ('{"mobile": "13812345678"}', '{"mobile": "[PHONE]"}'),
        ('{"id_card": 110101199003074610}', '{"id_card": "[ID_NUMBER]"}'),
        ('{"password": 12345678, "pin": null, "ok": true}', '{"password": "[PASSWORD]", "pin": null, "ok": true}'),
        ('{"手机号":13812345678,"年龄":30}', '{"手机号":"[PHONE]","年龄":30}'),
        ('{"phones": [13812345678, 1, "2065550147"]}', '{"phones": ["[PHONE]", 1, "[PHONE]"]}'),
        ('{"phone": {"id": 13812345678}}', '{"phone": {"id": 13812345678}}'),
        ('[{"card_number": 4111111111111112}, 4111111111111112]', '[{"card_number": "[BANK_CARD]"}, 4111111111111112]'),
        (r'{"args": "{\"phone\": 13812345678}"}', r'{"args": "{\"phone\": \"[PHONE]\"}"}'),
        ('{"phone": "[13812345678]"}', r'{"phone": "[\"[PHONE]\"]"}'),
        (r'{"pho\u006ee": 13812345678}', r'{"pho\u006ee": "[PHONE]"}'),
        ('{"phone": "iPhone 15", "tel": "n/a", "mobile": "yes", "card": "red-7", "pin": "GPIO 13"}', None),
        ('{"手机": "138****0042", "证件": "3301**********204X", "验证码": "204138"}', None),
        (
            '{"timeout": 30, "id": 13812345678, "ts": 1690456789012, "count": 7, "price": 12.5, "max_tokens": 4096}',
            None,
        ),
        ('{"phone": true, "mobile": 0.5, "total_token": 123456789}', None),
    ],
)
def test_json(text: str, clean: str | None) -> None:
    clean = text if clean is None else clean
    made = STRICT.redact(text)
    assert made.text == clean
    assert STRICT.redact(clean).text == clean
    assert json.loads(clean) == STRICT.redact_value(json.loads(text))
    assert STRICT.redact_many([text]) == [made]
    stream = STRICT.stream()
    assert "".join([*map(stream.feed, text), stream.close()]) == clean
    assert replaced(text, made.spans) == clean
    assert all(text[each.start : each.end].isdigit() for each in made.spans if '"' in each.replacement)


def test_the_seed_knows_no_keys() -> None:
    redactor = Redactor(RedactionConfig(preset="seed"))
    assert redactor.redact_value({"phone": 13812345678}) == {"phone": 13812345678}


def test_tool_calls() -> None:
    call = ToolCall("1", "dial", {"phone": 13812345678, "times": 3, "ssn": 123456789, "big": 10**700, "pwd": 10**700})
    made = STRICT.redact_message(Message("assistant", "", (call, ToolCall("2", "f", '{"phone": 13812345678}'))))
    first, second = (each.arguments for each in made.tool_calls)
    assert first == {"phone": "[PHONE]", "times": 3, "ssn": "[SSN]", "big": 10**700, "pwd": "[PASSWORD]"}
    assert second == '{"phone": "[PHONE]"}'
    block = {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "input": {"tel": 13812345678.0, "n": 1}}]}
    assert STRICT.redact_message(block)["content"][0]["input"] == {"tel": "[PHONE]", "n": 1}


def test_numbers_are_put_back_as_they_were() -> None:
    talk = NUMBERED.conversation()
    text = r'{"phone": 13812345678, "tel": "13812345678", "a": "{\"phone\": 13812345678}", "mobile": 13912345678}'
    made = talk.redact(text).text
    assert made == (
        r'{"phone": "[PHONE_1]", "tel": "[PHONE_2]", "a": "{\"phone\": \"[PHONE_1]\"}", "mobile": "[PHONE_3]"}'
    )
    assert talk.restore(made) == text
    assert talk.redact(made).text == made
    assert talk.redact_value({"phone": 13812345678}) == {"phone": "[PHONE_1]"}
    assert talk.restore("call [PHONE_1] or [PHONE_2]") == "call 13812345678 or 13812345678"
    again = NUMBERED.conversation(KeyMap(talk.keys))
    assert again.redact(text).text == made


VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["13812345678", "x", "[PHONE_1]", '"', "\\"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["phone", "password", "n", "order_id", "ssn", "secret", "a"]), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(VALUES, st.integers(0, 2))
def test_json_stays_json_and_comes_back(value: Any, nested: int) -> None:
    text = json.dumps([value])
    for _ in range(nested):
        text = json.dumps({"a": text})
    talk = NUMBERED.conversation()
    made = talk.redact(text)
    json.loads(made.text)
    assert talk.restore(made.text) == restore(made.text, talk.keys) == text
    assert NUMBERED.redact(made.text).text == made.text
    if not nested:
        assert json.loads(STRICT.redact(text).text) == STRICT.redact_value([value])
