"""Evidence in, REPORT.md out, in English and in Chinese: what was set, what it rests on, what it does not carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from openclaw_lab.agent.host import silent_hosts
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
        "silent": "**These reminders never fire on {}**: the host builds a prompt once a run, and the counters start "
        "again with every run, so they never pass 1.",
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
        "lost": "插件的六项设置带不走的内容",
        "lost_why": "种子文档的插件只有六项设置；下列设置它不会执行，下面依赖它们的证据也不描述它：",
        "silent": "**这些提醒在 {} 上永远不会触发**：主机每次运行只构建一次提示，计数器又随之重新开始，数不过 1。",
        "evidence": "证据", "no_evidence": "没有提供证据：这里没有任何内容说明这些设置是好的。",
        "metric": "指标", "interval": "95% 区间", "kind": "性质", "data": "数据", "samples": "样本数",
        "left_out": "未计入", "other": "测量时该任务的设置与导出的不同",
        "simulated": "`simulated` 的数字来自行为模型，其区间是模型的敏感性范围。",
        "optimistic": "没有留出样本：在这份数据上挑选的设置，在别处的表现会差一些。",
        "compared": "对照", "difference": "差值", "verdict": "结论",
    },
}  # fmt: skip


def report(config: LabConfig, evidence: Mapping[str, Any], not_carried: Sequence[str]) -> str:
    """The text of REPORT.md; credentials in addresses are masked."""
    parts = [_part(words, config, evidence, not_carried) for words in _WORDS.values()]
    return "\n---\n\n".join(parts)


def _part(words: Mapping[str, str], config: LabConfig, evidence: Mapping[str, Any], lost: Sequence[str]) -> str:
    lines = [
        f"# {words['title']}",
        "",
        words["apply"],
        "",
        f"openclaw_lab {evidence['openclaw_lab']} · {evidence['config']}",
        "",
    ]
    lines += [f"## {words['changed']}", "", *_changes(words, config), ""]
    if lost:
        lines += [f"## {words['lost']}", "", words["lost_why"], "", *(f"- `{name}`" for name in lost), ""]
    if silent := silent_hosts(config.reminders):
        lines += [words["silent"].format(", ".join(silent)), ""]
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
        ]
        for name, each in metrics.items()
    ]
    lines += ["", *_table([words["metric"], words["value"], words["interval"], "n", words["kind"]], rows), ""]
    if any(each["kind"] == "simulated" for each in metrics.values()):
        lines.append(words["simulated"])
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
