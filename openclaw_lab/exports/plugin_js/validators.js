// A found text in, whether it is what its rule looks for out: checks that no pattern can make, by name.
//
// The twin of openclaw_lab/rules/validators.py and credentials.py: same names, same results (tests/test_validators.py
// runs both on thousands of texts). Only ASCII digits and letters count; lengths are in code points. No imports.

// --- helpers -------------------------------------------------------------------------------------------------------

const digits = (text) => text.replace(/[^0-9]/g, "");
const small = (text) => text.replace(/[A-Z]+/g, (part) => part.toLowerCase());
const plain = (text) => text.replace(/[ -]/g, "").replace(/[a-z]+/g, (part) => part.toUpperCase());
const size = (text) => [...text].length;
const distinct = (text) => new Set(text).size;
const count = (text, kind) => (text.match(kind) || []).length;

// Small letters, capitals, digits and signs; `-`, `_`, `.` and what is not ASCII are none of them.
const kinds = (text) => [
  count(text, /[a-z]/g), count(text, /[A-Z]/g), count(text, /[0-9]/g), count(text, /[!-,/:-@[-^`{-~]/g),
];

// Shannon entropy in bits a character.
function entropy(text) {
  const counts = new Map();
  for (const char of text) counts.set(char, (counts.get(char) || 0) + 1);
  const length = size(text);
  const sorted = [...counts.values()].sort((one, other) => one - other);
  return -sorted.reduce((sum, n) => sum + (n / length) * Math.log2(n / length), 0);
}

// YYYYMMDD is a day of a life: 1850 to 2099, with leap years.
function date(text) {
  const [year, month, day] = [Number(text.slice(0, 4)), Number(text.slice(4, 6)), Number(text.slice(6, 8))];
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const days = [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
  return year >= 1850 && year < 2100 && month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1];
}

// Provinces of GB/T 2260: first and last number of each part of the country.
const PROVINCES = [[11, 15], [21, 23], [31, 37], [41, 46], [50, 54], [61, 65], [71, 71], [81, 83]];
const region = (number) => {
  const code = Number(number.slice(0, 2));
  return PROVINCES.some(([low, high]) => code >= low && code <= high);
};

// --- numbers with a check digit ------------------------------------------------------------------------------------

function luhn(text) {
  const values = [...digits(text)].reverse().map(Number);
  const sum = values.reduce((total, value, at) => {
    const doubled = value * 2;
    return total + (at % 2 === 0 ? value : doubled > 9 ? doubled - 9 : doubled);
  }, 0);
  return values.length > 0 && sum % 10 === 0;
}

function bank_card(text) {
  const number = digits(text);
  return /^[1-6][0-9]{12,18}$/.test(number) && distinct(number) > 1 && luhn(number);
}

function cn_id(text) {
  const number = plain(text);
  if (!/^[0-9]{17}[0-9X]$/.test(number) || !region(number) || !date(number.slice(6, 14))) return false;
  const weights = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
  const total = weights.reduce((sum, weight, at) => sum + weight * Number(number[at]), 0);
  return "10X98765432"[total % 11] === number[17];
}

const cn_id_15 = (text) => /^[0-9]{15}$/.test(text) && region(text) && date(`19${text.slice(6, 12)}`);

function cpf(text) {
  const number = digits(text);
  const check = (head) => {
    const total = [...head].reduce((sum, char, at) => sum + Number(char) * (head.length + 1 - at), 0);
    return String(((total * 10) % 11) % 10);
  };
  return number.length === 11 && distinct(number) > 1 && [9, 10].every((n) => check(number.slice(0, n)) === number[n]);
}

const IBAN = "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30";
const IBAN_LENGTHS = new Map(IBAN.split(" ").map((item) => [item.slice(0, 2), Number(item.slice(2))]));

function iban(text) {
  const number = plain(text);
  const shaped = /^[A-Z]{2}[0-9]{2}[A-Z0-9]+$/.test(number);
  if (!shaped || number.length !== IBAN_LENGTHS.get(number.slice(0, 2))) return false;
  const turned = number.slice(4) + number.slice(0, 4);
  const numeric = [...turned].map((char) => parseInt(char, 36)).join("");
  return [...numeric].reduce((rest, char) => (rest * 10 + Number(char)) % 97, 0) === 1;
}

function ssn(text) {
  const number = digits(text);
  if (number.length !== 9 || ["078051120", "219099999", "111111111", "333333333"].includes(number)) return false;
  return !/^(?:000|666|9)/.test(number) && number.slice(3, 5) !== "00" && number.slice(5) !== "0000";
}

// --- addresses of machines, plates ---------------------------------------------------------------------------------

const MASK_ENDS = ["0", "128", "192", "224", "240", "248", "252", "254"];
const METADATA = ["169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16"];

const OID = /^(?:1\.3\.6\.1|1\.3\.14\.3|1\.3\.101\.11[0-9]|1\.3\.132\.0|2\.5\.(?:4|8|29)\.[0-9]+)$/;
const LOOPBACK = /^(?:::|(?:0{1,4}:){7})0{0,3}1(?:[/%]|$)/;

function address4(text) {
  const parts = text.split(".");
  const octet = (part) => /^(?:0|[1-9][0-9]{0,2})$/.test(part) && Number(part) < 256;
  if (parts.length !== 4 || !parts.every(octet)) return false;
  if (OID.test(text)) return false;
  if (["0", "127"].includes(parts[0]) || METADATA.includes(text)) return false;
  return !(parts[0] === "255" && MASK_ENDS.includes(parts[3]));
}

const ipv4 = (text) => text.split("/")[0].split("-").every(address4);

function groups6(text) {
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const lists = halves.map((half) => (half ? half.split(":") : []));
  const last = lists[lists.length - 1];
  const tail = last[last.length - 1] || "";
  if (tail.includes(".")) {
    const dotted = /^(?:[0-9]{1,3}\.){3}[0-9]{1,3}$/.test(tail);
    if (!dotted || tail.split(".").some((part) => Number(part) > 255)) return null;
    last.splice(-1, 1, "7f00", "0001");
  }
  return lists.flat().every((group) => /^[0-9a-fA-F]{1,4}$/.test(group)) ? lists : null;
}

function ipv6(text) {
  const lists = groups6(text.split("/")[0].split("%")[0]);
  if (!lists || LOOPBACK.test(text)) return false;
  const [left, right] = lists;
  if (left.length === 0 && (!right || right.length === 0)) return text.includes("/");
  if (!right) return left.length === 8 && left.some((group) => group.length > 2);
  if (left.length + right.length > 7 || !/[0-9]/.test(text)) return false;
  const known = left.length === 0 || /^(?:[23][0-9a-f]{3}|f[cdef][0-9a-f]{2}|64)$/.test(small(left[0]));
  if (right.length === 0) return known && (left.length > 1 || text.includes("/"));
  return known || left.length + right.length > 2;
}

function mac(text) {
  const number = small(text.replace(/[:.-]/g, ""));
  if (!/^[0-9a-f]{12}$/.test(number) || distinct(number) === 1) return false;
  return text.includes(":") || /[a-f]/.test(number) || number.startsWith("00");
}

function plate(text) {
  const rest = [...text.replace(/^[\u4e00-\u9fff][A-Z][^A-Z0-9]?/, "")];
  const word = rest.join("");
  if (rest.length === 5 && "挂学警港澳试超".includes(rest[4])) return digits(word).length >= 2;
  if (rest.length === 5) return /^[A-HJ-NP-Z0-9]{5}$/.test(word) && digits(word).length >= 3;
  return /^(?:[A-HJK][A-HJ-NP-Z0-9][0-9]{4}|[0-9]{5}[A-HJK])$/.test(word);
}

// --- phones --------------------------------------------------------------------------------------------------------

const NO_PHONE = /^[0-9]+\.[0-9]+$|^[0-9]{1,3}(?:\.[0-9]{1,3}){3}$|(?:19|20)[0-9]{2}[-\/. ](?:0[1-9]|1[0-2]|[1-9])[-\/. ][0-9]|^(?:19|20)[0-9]{2} ?[-\/] ?(?:19|20)[0-9]{2}$|^[0-9]{1,2}[-\/.][0-9]{1,2}[-\/.](?:19|20)[0-9]{2}/;
const RANGES = [
  [210, 299], [350, 389], [420, 423], [500, 509], [590, 599], [670, 692], [850, 856], [880, 880], [886, 886], [960, 979],
  [992, 998],
];
const SHORT = "20 27 30 31 32 33 34 36 39 40 41 45 48 51 52 53 54 55 56 57 58 60 61 62 63 65 66 81 82 84 86 90 92 93 94 95 98".split(" ");
const OWN = {
  1: [10, 10], 7: [10, 10], 43: [6, 13], 44: [9, 11], 46: [7, 10], 47: [8, 8], 49: [6, 13], 64: [8, 10], 91: [10, 10],
};

// The least and most digits of a national number behind a country code; null: no such code.
function national(code) {
  if (Object.hasOwn(OWN, code)) return OWN[code];
  if (SHORT.includes(code)) return [8, 11];
  const inside = ([low, high]) => Number(code) >= low && Number(code) <= high;
  return code.length === 3 && RANGES.some(inside) ? [5, 12] : null;
}

function intl_phone(text) {
  const number = digits(small(text).replaceAll("(0)", "").split(/[x#]/)[0]);
  for (const length of [1, 2, 3]) {
    const range = number.length >= length ? national(number.slice(0, length)) : null;
    const rest = number.length - length;
    if (range) return range[0] <= rest && rest <= range[1] && distinct(number) > 2;
  }
  return false;
}

function nanp(text) {
  let number = digits(small(text).split(/[x#]/)[0]);
  if (number.length === 11 && number[0] === "1") number = number.slice(1);
  return /^[2-9]..[1-9]......$/.test(number) && number.slice(1, 3) !== "11" && number.slice(4, 6) !== "11";
}

function phone(text) {
  const number = digits(text);
  if (number.length < 7 || number.length > 15 || distinct(number) === 1 || NO_PHONE.test(text)) return false;
  if (text.includes("+")) return intl_phone(text);
  const bare = count(text, /[0-9]+/g) === 1;
  return !bare || (number.length >= 8 && !/^(?:19|20)[0-9]{6}$/.test(number));
}

// Rules take the number of an order with its label, and the login of a URL: both begin with another sign, and stay.
const cn_mobile = (text) => /^[0-9]/.test(text);
const email = (text) => !text.startsWith(":");

// --- secrets -------------------------------------------------------------------------------------------------------

const WORDS = new Set("none null nil true false undefined password passwd passphrase pass pwd pw secret token string str text required optional default empty blank enabled disabled hidden field input user username".split(" "));
const NAMES = new Set("sha1 sha256 sha512 sha-1 sha-256 md5 base64 oauth2 oauth2.0 argon2 argon2i argon2id pbkdf2 utf8 utf-8 http2 ntlmv2 ipv4 ipv6 win32 log4j aes256 aes-256 keepass2 1password wpa2 wpa3 pop3 imap4".split(" "));
const UUID = /^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/;
const SHORT_HEX = /^[0-9a-f]{12,16}$/;
const SLUG = /^(?:[A-Za-z]+[0-9]{0,2}|[0-9]+)(?:[-_./:](?:[A-Za-z]+[0-9]{0,2}|[0-9]+))+$/;
const BREAK_OR_URL = /[\t-\r]|:\/\//;
const BLANK = /[ \u3000]+/;
const MIXED = /[A-Za-z0-9][!@#$%^&*+=~?][A-Za-z0-9]|[A-Za-z][0-9]|[0-9][A-Za-z]|[!@#$%^&*+=~?][0-9]/;
const SENTENCE = new Set("the and are but can for from has have here how its least must new not now old one only our should that then this was what when will with you your add change characters choose confirm contains current default empty enter field forgot forgotten incorrect input invalid length letters login match missing numbers password passwords please required reset retype set sign type use used user using value wrong".split(" "));
const WEAK = new Set("pass pw pwd secret token".split(" "));
const NO_PASSWORD = /[\/=|]|--|[0-9]%|^[a-z_-]+-[0-9]{1,2}$|^[a-z0-9]+(?:_[a-z0-9]+)+$/;
const STAND_IN = /changeme|change_me|change-me|placeholder|dummy|redacted|<your|your_|your(?:api|password|secret|token|key)|(?:^|[^a-z])(?:example|your|fake|sample|insert|replace)(?:[^a-z]|$)|x{4}|\*{3}|\.{3}|•{3}|…|-{4}|_{4}|\$\{|\$\(|\{\{|\}\}|<[a-z]|process\.env|os\.environ|getenv|secrets\.|^\$[a-z_][a-z0-9_]*$|^%[a-z_][a-z0-9_]*%$|^%[a-z(]|^\{.*\}$|^\[.*\]$|^<.*>$|^@[a-z.]+$/;
const FILE_END = /\.[a-z]{1,5}$/;
const CODE = /^[!&*~+@-]*[A-Za-z_$][A-Za-z_$]*[?:*]*$|^[!&*~+@-]*[A-Za-z_$][A-Za-z0-9_$]{0,30}(?:(?:\.|\?\.|::|->)[A-Za-z_$][A-Za-z0-9_$]{0,30})+[?!:*]*$|^[A-Za-z_$][A-Za-z0-9_$.]*\[|^[A-Za-z_]+(?:password|passwd|pwd|secret|token|key)[0-9]?$|^(?:password|pwd)[0-9]$|^[\/~]|^\.{1,2}\/|^[A-Za-z]:\\|:\/\/|^v?[0-9]+(?:\.[0-9]+)+$|^[0-9]{4}-[0-9]{2}-[0-9]{2}|^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$|\|\||&&|=>|^[a-z]+(?:_[a-z0-9]+)+$|^[a-z]+(?:-[a-z]+)*-[0-9]{1,2}$|^[a-z0-9_-]+\.(?:json|ya?ml|txt|pem|key|env|py|js|ts|md|conf|cfg|ini|crt|toml)$/;
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Only the place of a secret: a placeholder, a variable, a look-up, a mask.
const standIn = (text) => WORDS.has(small(text)) || STAND_IN.test(small(text));
// A name, an attribute, an index, a path, a number with points.
const code = (text) => (FILE_END.test(text) && /[A-Za-z]\/[A-Za-z]/.test(text)) || CODE.test(text);

// What base64 or base64url stands for, one character a byte; empty for what is neither.
function base64Text(text) {
  const chars = text.replace(/=+$/, "").replaceAll("-", "+").replaceAll("_", "/");
  if (!/^[A-Za-z0-9+/]*$/.test(chars) || chars.length % 4 === 1) return "";
  const bits = [...chars].map((char) => ALPHABET.indexOf(char).toString(2).padStart(6, "0")).join("");
  let out = "";
  for (let at = 0; at + 8 <= bits.length; at += 8) out += String.fromCharCode(parseInt(bits.slice(at, at + 8), 2));
  return out;
}

function mixed_token(text) {
  if (size(text) < 16 || standIn(text)) return false;
  const runs = text.match(/[A-Za-z0-9]{12,}/g) || [];
  if (runs.some((run) => digits(run).length >= 2 && digits(run).length < run.length)) return distinct(text) > 7;
  const [lower, upper, number] = kinds(text);
  return lower > 2 && upper > 2 && number > 1 && entropy(text) >= 3.5;
}

function secret(text) {
  if (size(text) < 12 || standIn(text) || code(text)) return false;
  if (UUID.test(text) || SHORT_HEX.test(text) || SLUG.test(text)) return false;
  const [lower, upper, number, other] = kinds(text);
  if (mixed_token(text)) return true;
  const mixed = Math.min(lower, upper) > 0 || other > 0 || number > 2;
  return number > 0 && lower + upper > 0 && entropy(text) >= 3 && mixed;
}

function password(text) {
  if (size(text) < 4 || standIn(text) || BREAK_OR_URL.test(text)) return false;
  if (BLANK.test(text)) return passphrase(text.split(BLANK).filter((word) => word));
  const [lower, upper, number, other] = kinds(text);
  if (/[^\x00-\x7f]/.test(text)) return lower + upper > 1 && number > 0 && lower + upper + number + other > 5;
  if (lower + upper === 0) return /^[0-9]{4,}$/.test(text) || (number > 1 && other > 1);
  return (number + other > 0 && text.length > 4) || /^[a-z]{3,}(?:-[a-z]{3,}){3,}$/.test(text);
}

function passphrase(words) {
  if (words.length < 2) return words.length === 1 && password(words[0]);
  if (words.every((word) => /^[a-z]{3,12}$/.test(word))) {
    return words.length > 3 && words.length < 9 && !words.some((word) => SENTENCE.has(word));
  }
  const mixed = words.filter((word) => MIXED.test(word) && !NAMES.has(small(word))).length;
  return words.length < 9 && 2 * mixed >= words.length;
}

function password_plain(text) {
  if (!password(text) || code(text)) return false;
  const [lower, upper, number, other] = kinds(text);
  if (lower + upper === 0) return number > 5 || other > 0;
  return (number > 0 && size(text) > 5) || (other > 0 && lower > 0 && upper > 0 && size(text) > 7);
}

function strong_password(text) {
  if (!password_plain(text) || NAMES.has(small(text)) || NO_PASSWORD.test(text)) return false;
  const [lower, upper, number, other] = kinds(text);
  return lower + upper > 2 && number > 0 && (other > 0 || Math.min(lower, upper) > 0 || size(text) < 17);
}

const url_password = (text) => WEAK.has(small(text)) || (!standIn(text) && !/^[$%*<[{]/.test(text));

function url_secret(text) {
  const [lower, upper, number] = kinds(text);
  return lower + upper > 0 && number > 0 && !(standIn(text) || text.startsWith("/") || UUID.test(text));
}

function bearer(text) {
  const [lower, upper, number] = kinds(text);
  if (standIn(text) || (number === 0 && (upper === 0 || lower === 0 || size(text) < 20))) return false;
  return lower + upper > 0 && (number > 0 || entropy(text) > 3.5);
}

const basic_auth = (text) => /^[ -~]{0,200}:[ -~]{1,500}$/.test(base64Text(text));

function jwt(text) {
  const header = base64Text(text.split(".")[0]);
  const named = ['"alg"', '"typ"', '"enc"', '"kid"'].some((name) => header.includes(name));
  return header.startsWith("{") && header.endsWith("}") && named;
}

function cookie(text) {
  if (size(text) < 12 || standIn(text) || text.includes("://") || text.startsWith("/")) return false;
  const [lower, upper, number] = kinds(text);
  if (lower + upper > 0 && number > 1 && entropy(text) >= 3) return true;
  return Math.min(lower, upper) > 4 && entropy(text) >= 4;
}

function artifactory(text) {
  const body = [...text.replace(/^=+/, "")];
  const rest = body.slice(3).join("");
  if (body.slice(0, 3).join("") === "AKC") return /[a-z0-9]/.test(rest);
  return /^[0-9]$/.test(body[2] || "") || digits(rest).length > 1;
}

export const VALIDATORS = Object.freeze({
  artifactory, bank_card, basic_auth, bearer, cn_id, cn_id_15, cn_mobile, cookie, cpf, email, iban, intl_phone, ipv4, ipv6,
  jwt, luhn, mac, mixed_token, nanp, password, password_plain, phone, plate, secret, ssn, strong_password, url_password, url_secret,
});
