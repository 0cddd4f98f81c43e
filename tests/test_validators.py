"""The checks of found texts: tables with negative and Chinese rows, what holds for every input, the JavaScript twin."""

from __future__ import annotations

import base64
import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_lab.redaction.redactor import preset_rules
from openclaw_lab.rules import validators
from openclaw_lab.rules.credentials import base64_text, entropy
from openclaw_lab.rules.validators import CALLING_CODES, IBAN_LENGTHS, VALIDATORS

TWIN = Path(validators.__file__).parents[1] / "exports" / "plugin_js" / "validators.js"

# check -> texts that pass, texts that do not
TABLE: dict[str, tuple[list[str], list[str]]] = {
    "luhn": (
        ["4111 1111 1111 1111", "79927398713", "0", "6222-0227-7561-8534"],
        ["", "4111111111111112", "79927398710", "卡号", "４１１１１１１１１１１１１１１１"],
    ),
    "bank_card": (
        ["4111111111111111", "378282246310005", "6212262200000000004", "30569309025904", "5500-0000-0000-0004"],
        ["4111111111111112", "0000000000000000", "4111", "9111111111111111", "79927398713", "", "六二二二"],
    ),
    "cn_id": (
        ["110101199003074610", "11010119900307461 0", "440305-19850723-3513", "420106198812058514"],
        [
            "110101199003071235",
            "110101199013074610",
            "110101199002304610",
            "990101199003074610",
            "11010119900307461",
            "1101011990030746100",
            "",
            "身份证",
            "１１０１０１１９９００３０７４６１０",
        ],
    ),
    "cn_id_15": (
        ["110101900307461", "320106840229123"],
        ["110101901307461", "110101850229123", "991101900307461", "11010190030746", ""],
    ),
    "cn_mobile": (["13812345678", "138 1234 5678"], ["订单号13812345678", "order id 13812345678", "", "１３"]),
    "email": (["ada@x.org", "张三@x.org", ""], ["://user:pw@"]),
    "cpf": (["529.982.247-25", "52998224725"], ["529.982.247-26", "111.111.111-11", "529.982.247", ""]),
    "iban": (
        [
            "DE89 3704 0044 0532 0130 00",
            "GB29NWBK60161331926819",
            "NO9386011117947",
            "gb29nwbk60161331926819",
            "AL47-2121-1009-0000-0002-3569-8741",
            "MT84MALT011000012345MTLCAST001S",
        ],
        ["DE88370400440532013000", "ZZ89370400440532013000", "DE8937040044053201300", "DE89", "", "国际账号"],
    ),
    "ssn": (
        ["123-45-6789", "899 12 3456", "418553042"],
        ["000-45-6789", "666-45-6789", "900-45-6789", "123-00-6789", "123-45-0000", "078-05-1120", "12-345", ""],
    ),
    "ipv4": (
        ["192.168.1.1", "8.8.8.8", "10.0.0.0/8", "10.0.0.1-10.0.0.9", "255.255.255.255", "1.2.3.4"],
        [
            "0.0.0.0",
            "127.0.0.1",
            "256.1.1.1",
            "1.2.3",
            "1.2.3.4.5",
            "01.2.3.4",
            "255.255.255.0",
            "169.254.169.254",
            "1.3.6.1",
            "2.5.29.15",
            "1.2.3.x",
            "",
            "１.2.3.4",
            "10.0.0.1-",
        ],
    ),
    "ipv6": (
        [
            "fe80::1",
            "2001:db8::8a2e:370:7334",
            "::ffff:192.0.2.1",
            "2001:db8::/32",
            "fe80::1%eth0",
            "fe80::/10",
            "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
            "64:ff9b::198.51.100.1",
            "A099::09C0:876A:130B",
        ],
        [
            "::",
            "::1",
            "::1/128",
            "0:0:0:0:0:0:0:1",
            "dead::",
            "dead::beef",
            "12:34:56",
            "aa:bb:cc:dd:ee:ff",
            "01:23:45:67:89:ab:cd:ef",
            "1::2",
            "a::b",
            "1:2:3:4:5:6:7:8:9",
            "2001::db8::1",
            "::ffff:256.0.0.1",
            "",
            "std::vector",
        ],
    ),
    "mac": (
        ["00:1a:2b:3c:4d:5e", "AA-BB-CC-DD-EE-FF", "0012.3456.789a", "12:34:56:78:90:12"],
        ["ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00", "20-24-07-27-20-24", "1234.5678.9012", "zz:zz:zz:zz:zz:zz", ""],
    ),
    "plate": (
        ["京A88888", "沪AF01234", "粤B·12345", "川A123AB", "京AD12345", "粤Z1234港", "苏E12345D", "京A1234学"],
        ["新OPENAI", "京A1234", "新README", "云ECSDEMO", "京AI8888", "京A", "", "沪A12", "京AABC12"],
    ),
    "phone": (
        ["(206) 555-0147", "555-0101", "78 651 450", "0490 75 40 81", "+49 30 98765432", "13800138000", "358 0594"],
        [
            "2024-03-15",
            "20240315",
            "3.14159265",
            "192.168.10.24",
            "2019-2024",
            "03/07/2024",
            "1234",
            "1" * 16,
            "1111111",
            "",
        ],
    ),
    "intl_phone": (
        ["+1 604 696 5272 x565", "+86 138-0013-8000", "+41 (0)71 526 99 04", "+447700921916", "+852 2345 6789"],
        ["+20260727202423", "+1 206 555 014", "+0123456789", "+999 12345678", "+11111111111", "", "+86 138"],
    ),
    "nanp": (
        ["206-555-0147", "1-800-555-0199", "201.948.1927 ext 12", "+1 206 555 0147"],
        ["911-555-0147", "123-555-0147", "206-055-0147", "206-911-0147", "2065550", ""],
    ),
    "mixed_token": (
        ["0a1b2c3d4e5f60718293a4b5c6d7e8f9", "Ab12_Cd34-Ef56Gh78Ij90Kl12", "Zx81kkQ2aaBBccDDeeFF"],
        [
            "refreshInventoryIfWarehouseSnapshot",
            "validation-group-2-and-others",
            "short1",
            "",
            "xxxxxxxxxxxxxxxxxxxx1234",
            "your-api-key-0123456789ab",
            "a1" * 20,
            "中文中文中文中文中文中文中文中文12",
        ],
    ),
    "secret": (
        ["wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzKEY1", "M@xSecret!2024", "abc123xyz456"],
        [
            "process.env.API_KEY_2",
            "config.db2.password",
            "${DB_PASSWORD}",
            "a-fake-api-key-1234",
            "MY_API_KEY_NAME_2",
            "743b294a-cd03-11ec-9d64-0242ac120002",
            "/etc/ssl/key1.pem",
            "https://host1/path",
            "b77a5c561934e089",
            "prod-eu-west-1-cluster-12345",
            "text-embedding-3-large",
            "null",
        ],
    ),
    "password": (
        [
            "Walnut!93x",
            "hunter2",
            "abcd1234",
            "8675309",
            "four-plain-words-here",
            "Sequoia!红叶12",
            "P@ssw0rd",
            "p@ss w0rd",
            "correct horse battery staple",
            "Tr0ub4dor &3",
            "hunter2 ",
        ],
        [
            "",
            "please enter your password",
            "at least 8 characters",
            "sha256 or base64",
            "    ",
            "a b c d",
            "abc",
            "password",
            "密码",
            "请输入密码",
            "doesnt start right",
            "a-fake-key-1",
            "string",
            "<secret1>",
            "****1",
            "https://host/p4ss",
            "Confirm",
        ],
    ),
    "password_plain": (
        ["hunter2", "Walnut!93x", "KnightRider!", "correct7horse"],
        [
            "request.form1",
            "user_password",
            "getPassword",
            "os.environ[",
            "8888",
            "/run/secrets/db1",
            "None",
            "v1.2.3",
            "password1",
            "self.password2",
            "$PASSWORD",
            "{{vault_pw1}}",
        ],
    ),
    "strong_password": (
        ["W!nter2024", "!PurpleSky77", "hunter2", "Pebble-Coast-61", "Marmot_trail_88", "qwerty123"],
        ["sha256", "OAuth2", "step-12", "col_name_2", "reset", "utf-8", "a/b2c3d4", "100%2", "secret"],
    ),
    "url_password": (
        ["s3cret", "pass-word", "postgres", "密码1", "pw"],
        ["password", "${PASS}", "<password>", "****", "{{pw}}", "%PW%"],
    ),
    "url_secret": (
        ["abc123def456", "sk_live_1234567890abcdef"],
        ["abcdefgh", "12345678", "$TOKEN1", "your_token1", "/page1/x"],
    ),
    "bearer": (
        ["abc123.def456", "AbCdEfGhIjKlMnOpQrStUv", "eyJhbGciOiJIUzI1NiJ9.e30.x1"],
        ["token", "authentication", "YOUR_TOKEN_1", "12345678", "${TOKEN}", ""],
    ),
    "basic_auth": (
        ["dXNlcjpwYXNz", "YWRtaW46czNjcmV0IQ=="],
        ["authentication", "dXNlcg==", "a", "", "基本", "/////w=="],
    ),
    "jwt": (
        ["eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0.sig", "eyJ0eXAiOiJKV1QifQ.e30"],
        ["eyJub3QiOiJvbmUifQ.e30.x", "eyJhbGci.e30", "abc.def.ghi", "", "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ.e30.x"],
    ),
    "cookie": (
        ["88ac8155acc9cc9503f8d0a8e5b368a0", "s%3AabcDEF123.ghiJKL456"],
        ["dark", "en-GB", "86400", "https://example1.com/x", "aaaaaaaaaaaa", "/path/to/1234", ""],
    ),
    "artifactory": (
        ["AKCp8abcdefgh", "AP6xxxxxxxxxx", "=AKCxxxxxxxxxx", "APBa1b2c3d4e"],
        ["APBackgroundTask", "AKCELERATOR", ""],
    ),
}


@pytest.mark.parametrize(
    ("name", "text", "passes"),
    [
        (name, text, passes)
        for name, pair in TABLE.items()
        for passes, texts in zip((True, False), pair, strict=True)
        for text in texts
    ],
)
def test_table(name: str, text: str, passes: bool) -> None:
    assert VALIDATORS[name](text) is passes


def test_the_set_is_closed_and_each_check_has_its_rows() -> None:
    assert set(VALIDATORS) == set(TABLE)
    with pytest.raises(TypeError):
        VALIDATORS["mine"] = str.isdigit  # type: ignore[index]


def test_each_check_of_the_strict_rules_exists_and_none_is_idle() -> None:
    used = {rule.validator for rule in preset_rules("strict")} - {""}
    assert used <= set(VALIDATORS)
    assert not set(VALIDATORS) - used


def test_tables() -> None:
    assert len(IBAN_LENGTHS) > 80
    assert IBAN_LENGTHS["NO"] == 15
    assert CALLING_CODES["86"] == (8, 11)
    assert not {"0", "999", "21x"} & set(CALLING_CODES)


# --- for every input ----------------------------------------------------------------------------------------------


@given(st.sampled_from(sorted(VALIDATORS)), st.text(max_size=60))
def test_any_text_gives_a_bool(name: str, text: str) -> None:
    assert VALIDATORS[name](text) in (True, False)


@given(st.text(alphabet="0123456789", min_size=1, max_size=18), st.integers(0, 9), st.integers(0, 17))
def test_luhn_sees_one_wrong_digit(body: str, shift: int, at: int) -> None:
    number = next(body + str(digit) for digit in range(10) if VALIDATORS["luhn"](body + str(digit)))
    place = at % len(number)
    changed = number[:place] + str((int(number[place]) + shift) % 10) + number[place + 1 :]
    assert VALIDATORS["luhn"](changed) is (changed == number)


@given(st.integers(0, 16), st.integers(1, 9))
def test_cn_id_sees_one_wrong_digit(at: int, shift: int) -> None:
    number = "110101199003074610"
    changed = number[:at] + str((int(number[at]) + shift) % 10) + number[at + 1 :]
    assert not VALIDATORS["cn_id"](changed)


@given(st.integers(0, 21), st.integers(1, 9))
def test_iban_sees_one_wrong_character(at: int, shift: int) -> None:
    number = "DE89370400440532013000"
    old = number[at]
    new = chr((ord(old) - 65 + shift) % 26 + 65) if old.isalpha() else str((int(old) + shift) % 10)
    assert not VALIDATORS["iban"](number[:at] + new + number[at + 1 :])


@given(st.binary(max_size=40))
def test_base64_is_read_back(body: bytes) -> None:
    for text in (base64.b64encode(body), base64.urlsafe_b64encode(body).rstrip(b"=")):
        assert base64_text(text.decode()).encode("latin-1") == body


def test_entropy_is_in_bits() -> None:
    assert entropy("aaaa") == 0
    assert entropy("ab") == 1
    assert entropy("0123456789abcdef") == 4
    assert entropy("密码密码") == 1


def test_only_ascii_digits_count() -> None:
    for name in ("luhn", "bank_card", "cn_id", "ssn", "ipv4", "nanp", "intl_phone", "cpf"):
        for text in TABLE[name][0]:
            wide = "".join(chr(ord(char) - 48 + 0xFF10) if char.isdigit() else char for char in text)
            arabic = "".join(chr(ord(char) - 48 + 0x0660) if char.isdigit() else char for char in text)
            assert not VALIDATORS[name](wide)
            assert not VALIDATORS[name](arabic)


# --- the JavaScript twin ------------------------------------------------------------------------------------------


def made_texts(count: int) -> list[str]:
    """Texts of the tables and what comes of them by chance: cut, joined, one character changed, Unicode put in."""
    chance = random.Random(7)
    known = [text for pair in TABLE.values() for texts in pair for text in texts]
    odd = list("٣４ⅷ²é密码京港😀\u3000\u00a0\ufeff\n\r\u2028\t\"'\\/:=.-_@#$%{}<>[]x*") + list("0123456789abcdefABCDEF")
    made = list(known)
    while len(made) < count:
        text = chance.choice(known)
        kind = chance.randrange(5)
        at = chance.randrange(len(text) + 1)
        if kind == 0:
            text = text[:at] + chance.choice(odd) + text[at + 1 :]
        elif kind == 1:
            text = text[:at] + chance.choice(odd) + text[at:]
        elif kind == 2:
            text = text[:at] + chance.choice(known)[at:]
        elif kind == 3:
            text = "".join(chance.choice(odd + list(text or "a")) for _ in range(chance.randrange(24)))
        else:
            text = text.swapcase()
        made.append(text)
    return made


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node: the twin is JavaScript")
def test_the_twin_gives_the_same_results() -> None:
    texts = made_texts(6000)
    script = (
        f"import {{ VALIDATORS }} from {json.dumps(TWIN.as_uri())};"
        "let body = ''; for await (const part of process.stdin.setEncoding('utf8')) body += part;"
        "const texts = JSON.parse(body); const out = {};"
        "for (const [name, check] of Object.entries(VALIDATORS)) out[name] = texts.map((text) => check(text));"
        "process.stdout.write(JSON.stringify(out));"
    )
    run = subprocess.run(
        ["node", "--input-type=module", "-e", script],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    twin = json.loads(run.stdout)
    assert set(twin) == set(VALIDATORS)
    for name, check in VALIDATORS.items():
        for text, other in zip(texts, twin[name], strict=True):
            assert check(text) is other, (name, text)
