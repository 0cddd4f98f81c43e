"""Evidence in, REPORT.md out, in English and in Chinese: what was set, what it rests on, what it does not carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from openclaw_lab.config import LabConfig
from openclaw_lab.experiments.metrics import shown
from openclaw_lab.text import Language

_WORDS: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "title": "Exported settings",
        "apply": "Apply: `openclaw config patch --file openclaw.patch.json5 --dry-run`, then without `--dry-run`.",
        "changed": "Settings that differ from the seed documents",
        "setting": "setting", "value": "value", "seed": "seed", "none": "None.",
        "lost": "Not carried by the plugin's six settings",
        "lost_why": "The plugin of the seed document knows six settings; it will not do these, and the evidence below "
        "that depends on them does not describe it:",
        "silent": "**With these six settings the plugin never reminds on {}**: the host builds a prompt once a run, "
        "and the plugin's counter starts again with every run, so it never passes 1. The figures below that speak of "
        "reminders are those of the laboratory's own plugin.",
        "mode": "The patch says reminderMode `{}`: of the plugin's modes the nearest to these reminders.",
        "what": "what it is", "rules": "`rules`: opportunities found by rules, not marked by a person. `circular`: the "
        "setting reminds by those same rules, so the figure is no evidence for it.",
        "evidence": "Evidence", "no_evidence": "None was given: nothing here says that these settings are good.",
        "metric": "metric", "interval": "95 % interval", "kind": "kind", "data": "data", "samples": "samples",
        "left_out": "left out", "other": "measured with other settings of this task than the exported ones",
        "simulated": "`simulated` figures come from a model of behaviour; their interval is its sensitivity band.",
        "optimistic": "No sample was held out: settings chosen on this data look better here than they will elsewhere.",
        "compared": "compared with", "difference": "difference", "verdict": "verdict",
    },
    "zh": {
        "title": "导出的设置",
        "apply": "应用：先运行 `openclaw config patch --file openclaw.patch.json5 --dry-run`，再去掉 `--dry-run`。",
        "changed": "与种子文档不同的设置",
        "setting": "设置", "value": "值", "seed": "种子", "none": "无。",
        "lost": "插件的六项设置无法表达的内容",
        "lost_why": "种子文档的插件只有六项设置；下列设置它不会执行，下面依赖它们的证据也不描述它：",
        "silent": "**只凭这六项设置，插件在 {} 上永远不会提醒**：主机每次运行只构建一次提示，插件的计数器又随之"
        "重新开始，数不过 1。下文关于提醒的数字属于实验室自带的插件。",
        "mode": "补丁中的 reminderMode 是 `{}`：插件的几种模式里与这些提醒最接近的一种。",
        "what": "含义", "rules": "`rules`：机会由规则找出，未经人工标注。`circular`：该设置正是按这些规则提醒的，"
        "因此数字不能作为证据。",
        "evidence": "证据", "no_evidence": "没有提供证据：这里没有任何内容说明这些设置是好的。",
        "metric": "指标", "interval": "95% 区间", "kind": "性质", "data": "数据", "samples": "样本数",
        "left_out": "未计入", "other": "测量时该任务的设置与导出的不同",
        "simulated": "`simulated` 的数字来自行为模型，其区间是模型的敏感性范围。",
        "optimistic": "没有留出样本：在这份数据上挑选的设置，在别处的表现会差一些。",
        "compared": "对照", "difference": "差值", "verdict": "结论",
    },
}  # fmt: skip


def report(
    config: LabConfig, evidence: Mapping[str, Any], not_carried: Sequence[str], silent: Sequence[str], mode: str
) -> str:
    """The text of REPORT.md; credentials in addresses are masked.

    `silent` are the hosts on which the plugin will never remind, `mode` is the patch's reminder mode.
    """
    parts = []
    for words in _WORDS.values():
        warning = [words["silent"].format(", ".join(silent))] if silent else []
        if config.reminders.mode != mode:
            warning.append(words["mode"].format(mode))
        parts.append(_part(words, config, evidence, not_carried, warning))
    return "\n---\n\n".join(parts)


def _part(
    words: Mapping[str, str],
    config: LabConfig,
    evidence: Mapping[str, Any],
    lost: Sequence[str],
    warning: Sequence[str],
) -> str:
    lines = [
        f"# {words['title']}",
        "",
        words["apply"],
        "",
        f"openclaw_lab {evidence['openclaw_lab']} · {evidence['config']}",
        "",
    ]
    lines += [line for text in warning for line in (text, "")]
    lines += [f"## {words['changed']}", "", *_changes(words, config), ""]
    if lost:
        lines += [f"## {words['lost']}", "", words["lost_why"], "", *(f"- `{name}`" for name in lost), ""]
    lines += [f"## {words['evidence']}", ""]
    if not evidence["results"] and not evidence["comparisons"]:
        lines += [words["no_evidence"], ""]
    for result in evidence["results"]:
        lines += [*_result(words, result), ""]
    for comparison in evidence["comparisons"]:
        lines += [*_comparison(words, comparison), ""]
    return "\n".join(lines)


def _changes(words: Mapping[str, str], config: LabConfig) -> list[str]:
    knobs = LabConfig.knobs()
    rows = [
        [f"`{name}`", knobs[name].shown(ours), knobs[name].shown(seed)]
        for name, (ours, seed) in config.differences(LabConfig.preset("seed")).items()
    ]
    return _table([words["setting"], words["value"], words["seed"]], rows) if rows else [words["none"]]


def _result(words: Mapping[str, str], result: Mapping[str, Any]) -> list[str]:
    data, metrics = result["data"], result["metrics"]
    lines = [f"### {result['task']}", ""]
    lines.append(f"{words['data']}: `{data['name']}` ({data['hash']}), {words['samples']}: {data['samples']}, "
                 f"{words['left_out']}: {data['left_out']}")  # fmt: skip
    if not result["of_this_config"]:
        lines += ["", f"**{words['other']}**"]
    rows = [
        [
            name,
            _number(each["value"]),
            f"{_number(each['low'])} – {_number(each['high'])}",
            str(each["n"]),
            each["kind"],
            each.get("help", ""),
        ]
        for name, each in metrics.items()
    ]
    head = [words["metric"], words["value"], words["interval"], "n", words["kind"], words["what"]]
    lines += ["", *_table(head, rows), ""]
    kinds = {each["kind"] for each in metrics.values()}
    lines += [words["simulated"]] * ("simulated" in kinds) + [words["rules"]] * bool(kinds & {"rules", "circular"})
    return [*lines, words["optimistic"]]


def _comparison(words: Mapping[str, str], comparison: Mapping[str, Any]) -> list[str]:
    rows = [
        [row["setting"], row["metric"], _number(row["difference"]), f"{_number(row['low'])} – {_number(row['high'])}",
         _number(row["p"]), row["verdict"]]
        for row in comparison["rows"]
    ]  # fmt: skip
    head = [words["setting"], words["metric"], words["difference"], words["interval"], "p", words["verdict"]]
    return [f"### {comparison['task']}, {words['compared']} {_cell(comparison['baseline'])}", "", *_table(head, rows)]


def _number(value: float | None) -> str:
    return "–" if value is None else shown(value)


def _cell(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text.replace("|", "\\|").replace("\n", "⏎") or "–"


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return [*lines, *(f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows)]
