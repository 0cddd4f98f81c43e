"""SKILL.md files: everything that can be read is read, everything else is one line with file and line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_lab.errors import ConfigError
from openclaw_lab.skills.frontmatter import json5_of, parts_of
from openclaw_lab.skills.registry import EXAMPLES, SkillRegistry
from openclaw_lab.skills.requirements import Environment, Requirements, missing
from openclaw_lab.skills.skill import Skill, SkillProblem, skill_of

FILE = Path("/skills/x/SKILL.md")
HEAD = "name: x\ndescription: Does a thing."


def written(head: str = HEAD, body: str = "Do it.") -> str:
    return f"---\n{head}\n---\n{body}\n"


def read(text: str) -> Skill:
    skill, problems = skill_of(text, FILE)
    assert skill is not None, problems
    return skill


def broken(text: str) -> SkillProblem:
    skill, problems = skill_of(text, FILE)
    assert skill is None
    assert problems[0].fatal
    for each in problems:
        assert len(str(each).splitlines()) == 1
        assert str(each).startswith("/skills/x/SKILL.md:")
    return problems[0]


# --- what is read -------------------------------------------------------------------------------------------------

NESTED = """metadata:
  openclaw:
    emoji: "🐙"
    requires:
      bins: [gh]
      env: [GH_TOKEN]"""
ONE_LINE = 'metadata: {"openclaw": {"emoji": "🐙", "requires": {"bins": ["gh"], "env": ["GH_TOKEN"]}}}'
STRING = """metadata: '{"openclaw": {"emoji": "🐙", "requires": {"bins": ["gh"], "env": ["GH_TOKEN"]}}}'"""
JSON5 = "metadata: {openclaw:{emoji:'🐙',requires:{bins:['gh',],env:['GH_TOKEN'],},},}"
COMMENTED = """metadata:
  {
    // who needs what
    openclaw: {emoji: '🐙', /* a mark */ requires: {bins: ['gh'], env: ['GH_TOKEN']}},
  }"""
LEGACY = NESTED.replace("openclaw:", "clawdbot:")


@pytest.mark.parametrize("metadata", [NESTED, ONE_LINE, STRING, JSON5, COMMENTED, LEGACY])
def test_metadata_of_every_form(metadata: str) -> None:
    skill = read(written(f"{HEAD}\n{metadata}"))
    assert skill.requires == Requirements(bins=("gh",), env=("GH_TOKEN",))
    assert skill.emoji == "🐙"


READ = [
    ("plain", written(), "Does a thing."),
    ("a byte-order mark", "\ufeff" + written(), "Does a thing."),
    ("Windows line ends", written().replace("\n", "\r\n"), "Does a thing."),
    ("old Mac line ends", written().replace("\n", "\r"), "Does a thing."),
    ("no last newline", written().rstrip("\n"), "Does a thing."),
    ("no line after the closing fence", f"---\n{HEAD}\n---", "Does a thing."),
    ("spaces behind the fences", f"---  \n{HEAD}\n--- \nDo it.", "Does a thing."),
    ("empty lines before", "\n\n" + written(), "Does a thing."),
    ("quoted with a colon", written('name: x\ndescription: "Use: when asked"'), "Use: when asked"),
    ("an unquoted colon", written("name: x\ndescription: Use when: the user asks"), "Use when: the user asks"),
    ("a colon and a quote", written('name: x\ndescription: Say "hi": then go'), 'Say "hi": then go'),
    ("a full-width colon", written("name: x\ndescription: 用途：查天气"), "用途：查天气"),
    ("an unquoted hash", written("name: x\ndescription: Works with C#"), "Works with C#"),
    ("folded", written("name: x\ndescription: >\n  One\n  two."), "One two."),
    ("literal", written("name: x\ndescription: |\n  One\n  two."), "One two."),
    ("continued", written("name: x\ndescription: One\n  two."), "One two."),
    ("continued with a colon", written("name: x\ndescription: Use when: a\n  or b: c"), "Use when: a or b: c"),
    ("a comment", written(f"# about\n{HEAD}"), "Does a thing."),
    ("a bracket", written("name: x\ndescription: [beta] does it: all"), "[beta] does it: all"),
    ("a rule in the body", written(body="a\n\n---\n\nb"), "Does a thing."),
]


@pytest.mark.parametrize(("text", "description"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_what_is_read(text: str, description: str) -> None:
    skill = read(text)
    assert (skill.name, skill.description) == ("x", description)


def test_a_repair_is_said() -> None:
    _, (problem,) = skill_of(written("name: x\ndescription: Use when: asked"), FILE)
    assert str(problem) == "/skills/x/SKILL.md:3: description: read as plain text; put it in quotes (read all the same)"


def test_the_body_keeps_its_rules_and_gets_its_folder() -> None:
    skill = read(written(body="Run {baseDir}/scripts/a.py\n\n---\n\nthen {baseDir}/b"))
    assert skill.body == "Run {baseDir}/scripts/a.py\n\n---\n\nthen {baseDir}/b"
    assert skill.instructions == "Run /skills/x/scripts/a.py\n\n---\n\nthen /skills/x/b"


def test_flags() -> None:
    skill = read(written(f"{HEAD}\nuser-invocable: false\ndisable-model-invocation: true"))
    assert (skill.user_invocable, skill.model_invocable) == (False, False)
    assert read(written(f"{HEAD}\nuser-invocable: 'no'")).user_invocable is False


# --- what is not --------------------------------------------------------------------------------------------------

BROKEN = [
    ("an empty file", "", 1, "empty file"),
    ("blank lines only", "\n\n", 1, "empty file"),
    ("no frontmatter", "# A skill\n", 1, "expected ---"),
    ("text before it", "Hello\n---\nname: x\n---\n", 1, "expected ---"),
    ("not closed", f"---\n{HEAD}\n", 1, "not closed"),
    ("nothing between the fences", "---\n---\nbody", 2, "nothing between"),
    ("a list", "---\n- name\n---\nbody", 2, "a list between"),
    ("plain text", "---\njust words\n---\nbody", 2, "a str between"),
    ("no name", written("description: Does a thing."), 1, "name: found nothing"),
    ("an empty name", written("name:\ndescription: Does a thing."), 2, "name: found nothing"),
    ("a name with a slash", written("name: a/b\ndescription: Does a thing."), 2, "without space or slash"),
    ("a name with a space", written("name: a b\ndescription: Does a thing."), 2, "without space or slash"),
    ("a long name", written(f"name: {'a' * 65}\ndescription: Does a thing."), 2, "1 to 64 characters"),
    ("a list as name", written("name: [a]\ndescription: Does a thing."), 2, "expected a name"),
    ("no description", written("name: x"), 1, "description: found nothing"),
    ("an empty description", written('name: x\ndescription: ""'), 3, "description: found nothing"),
    ("a list as description", written("name: x\ndescription: [a, b]"), 3, "found a list"),
    ("a number as description", written("name: x\ndescription: 3"), 3, "found a int"),
    ("a name twice", written("name: x\nname: y\ndescription: z"), 3, "stands twice, first in line 2"),
    ("a quote that is not closed", written('name: x\ndescription: "Does'), 3, "YAML"),
    ("a tab as indent", written(f"{HEAD}\nmetadata:\n\topenclaw: 1"), 5, "YAML"),
    ("an alias", written("name: x\ndescription: &a Does\nhomepage: *a"), 4, "aliases"),
    ("an object of code", written("name: x\ndescription: !!python/name:os.system a"), 3, "YAML"),
    ("metadata is a number", written(f"{HEAD}\nmetadata: 3"), 4, "found a int; expected an object"),
    ("metadata is no JSON", written(f"{HEAD}\nmetadata: '{{openclaw'"), 4, "no JSON"),
    ("JSON that is not closed", written(f'{HEAD}\nmetadata: {{"openclaw": {{'), 4, "YAML"),
    ("openclaw is a list", written(f"{HEAD}\nmetadata:\n  openclaw: [gh]"), 4, "found a list"),
    ("requires is a list", written(f"{HEAD}\nmetadata:\n  openclaw:\n    requires: [gh]"), 4, "found a list"),
    ("bins is a number", written(f"{HEAD}\nmetadata: {{openclaw: {{requires: {{bins: 3}}}}}}"), 4, "list of names"),
    ("an unknown system", written(f"{HEAD}\nmetadata: {{openclaw: {{os: [windows]}}}}"), 4, "darwin, linux, win32"),
    ("a flag that is a word", written(f"{HEAD}\nuser-invocable: maybe"), 4, "true or false"),
    ("too much", written(f"{HEAD}\nhomepage: {'a' * 70_000}"), 1, "more than 64,000"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "said"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_what_is_broken(text: str, line: int, said: str) -> None:
    problem = broken(text)
    assert said in problem.text
    assert problem.line == line


def test_one_broken_file_harms_no_other(tmp_path: Path) -> None:
    for number, (_, text, _, _) in enumerate(BROKEN):
        (tmp_path / f"b{number:02}").mkdir()
        (tmp_path / f"b{number:02}" / "SKILL.md").write_text(text, "utf-8")
    for name in ("good", "zz"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(written(f"name: {name}\ndescription: 查天气"), "utf-8")
    registry = SkillRegistry.load(tmp_path)
    assert [each.name for each in registry.skills] == ["good", "zz"]
    named = {Path(each.file).parent.name for each in registry.problems if each.fatal}
    assert named == {f"b{number:02}" for number in range(len(BROKEN))}


def test_files_that_are_no_text(tmp_path: Path) -> None:
    for name, content in {
        "utf16": "---".encode("utf-16"),
        "binary": b"\x00\xff\xfe",
        "latin": b"---\nname: \xe9",
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_bytes(content)
    (tmp_path / "folder" / "SKILL.md").mkdir(parents=True)
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "skill.md").write_text(written(), "utf-8")
    (tmp_path / "none").mkdir()
    registry = SkillRegistry.load(tmp_path)
    assert not registry.skills
    said = {Path(each.file).name if each.line == 0 else each.file: each for each in registry.problems}
    assert len(registry.problems) == 6
    assert "found skill.md; expected a file SKILL.md" in str(said["small"])
    assert not said["none"].fatal
    with pytest.raises(ConfigError, match="nowhere: nothing; expected a folder with skills"):
        SkillRegistry.load(tmp_path, tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="match: found a NoneType; expected a message"):
        registry.match(None)  # type: ignore[arg-type]


def test_a_name_that_two_skills_have(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(written(), "utf-8")
    registry = SkillRegistry.load(tmp_path)
    assert len(registry) == 1
    (problem,) = registry.problems
    assert "'x' again, first in" in problem.text


@given(st.text())
def test_any_text_gives_a_skill_or_says_why_not(text: str) -> None:
    skill, problems = skill_of(text, FILE)
    assert skill is not None or any(each.fatal for each in problems)
    assert all(len(str(each).splitlines()) == 1 for each in problems)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text())
def test_any_frontmatter(head: str, body: str) -> None:
    skill, problems = skill_of(f"---\n{head}\n---\n{body}", FILE)
    assert skill is not None or any(each.fatal for each in problems)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), min_size=1).filter(str.strip))
def test_a_quoted_description_comes_back(text: str) -> None:
    skill, problems = skill_of(written(f"name: x\ndescription: {json.dumps(text)}"), FILE)
    assert skill is not None, problems
    assert skill.description == " ".join(text.split())


plain = st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="ascii", exclude_categories=["Cc"]))
names = st.from_regex(r"[a-z]{1,5}", fullmatch=True)


@given(st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(names, inner)))
def test_json_is_json5(value: object) -> None:
    read = json5_of(json.dumps({"a": value}))
    assert read == {"a": value}


def test_lines_of_keys() -> None:
    assert parts_of("\n---\nname: x\n\ndescription: y\n---\n").lines == {"name": 3, "description": 5}


def test_what_has_the_right_name_and_is_no_file_is_told(tmp_path: Path) -> None:
    for name in ("链接", "夹子", "小写"):
        (tmp_path / name).mkdir()
    (tmp_path / "链接" / "SKILL.md").symlink_to(tmp_path / "没有")
    (tmp_path / "夹子" / "SKILL.md").mkdir()
    (tmp_path / "小写" / "skill.md").touch()
    lines = {Path(each.file).name: str(each) for each in SkillRegistry.load(tmp_path).problems}
    assert lines["链接"].endswith("found SKILL.md, a link that leads nowhere; expected a file SKILL.md")
    assert lines["夹子"].endswith("found SKILL.md, a folder; expected a file SKILL.md")
    assert lines["小写"].endswith("found skill.md; expected a file SKILL.md")
    assert len(lines) == 3


# --- requirements -------------------------------------------------------------------------------------------------

THERE = Environment.of(["gh", "git"], {"TOKEN": "1", "EMPTY": ""}, {"tools": {"web": True, "shell": False}}, "linux")
NEEDS = [
    (Requirements(), ()),
    (Requirements(bins=("gh", "git")), ()),
    (Requirements(bins=("gh", "jq")), ("bin:jq",)),
    (Requirements(any_bins=("rg", "git")), ()),
    (Requirements(any_bins=("rg", "ag")), ("anyBin:rg|ag",)),
    (Requirements(env=("TOKEN",)), ()),
    (Requirements(env=("EMPTY", "OTHER")), ("env:EMPTY", "env:OTHER")),
    (Requirements(config=("tools.web",)), ()),
    (
        Requirements(config=("tools.shell", "tools.web.x", "a")),
        ("config:tools.shell", "config:tools.web.x", "config:a"),
    ),
    (Requirements(os=("linux", "darwin")), ()),
    (Requirements(os=("darwin", "win32")), ("os:darwin|win32",)),
    (Requirements(bins=("jq",), always=True), ()),
    (Requirements(os=("darwin",), always=True), ("os:darwin",)),
    (Requirements(bins=("jq",), env=("OTHER",), os=("win32",)), ("os:win32", "bin:jq", "env:OTHER")),
]


@pytest.mark.parametrize(("needed", "expected"), NEEDS)
def test_requirements(needed: Requirements, expected: tuple[str, ...]) -> None:
    assert missing(needed, THERE) == expected


# --- the examples -------------------------------------------------------------------------------------------------


def test_the_examples_are_sound() -> None:
    registry = SkillRegistry.load(EXAMPLES, environment=Environment.of(["gh", "python3"]))
    assert [each.name for each in registry.eligible] == ["github", "sysinfo"]
    assert registry.problems == ()
    assert set(registry["sysinfo"].resources()) == {"scripts", "references"}
    assert "{baseDir}" not in registry["sysinfo"].instructions


@pytest.mark.parametrize("part", ["cpu", "memory", "disk", "processes", "all"])
def test_sysinfo_answers(part: str) -> None:
    script = EXAMPLES / "sysinfo" / "scripts" / "sysinfo.py"
    done = subprocess.run([sys.executable, str(script), part], capture_output=True, text=True, check=True)
    (line,) = done.stdout.splitlines()
    assert json.loads(line)


def test_sysinfo_refuses() -> None:
    script = EXAMPLES / "sysinfo" / "scripts" / "sysinfo.py"
    done = subprocess.run([sys.executable, str(script), "rm"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
