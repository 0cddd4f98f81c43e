"""Executed notebooks in, one HTML page out that stands alone: pictures inside, no script, nothing loaded from anywhere.

Formulas stay as their text, and a widget as a line that names it: both need a live program.
"""

from __future__ import annotations

import copy
import html
import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from openclaw_lab.errors import excerpt
from openclaw_lab.notebook.about import data_named, environment


@dataclass(frozen=True, slots=True)
class Page:
    """One notebook of the report. `status` is "ok" or one line that says what failed; `links` are relative paths."""

    name: str
    notebook: Any
    folder: Path  # where pictures that its text names are looked for
    seconds: float
    status: str
    links: Sequence[str] = ()


def render(pages: Sequence[Page], left: Sequence[str] = ()) -> str:
    """The whole report; `left` are notebooks that a stop kept from running."""
    parts = [_HEAD.format(policy=_POLICY, style=_STYLE + _code_style()), _contents(pages, left)]
    parts += [_section(page) for page in pages]
    parts.append(_made_with(pages))
    return "\n".join([*parts, "</main></body></html>\n"])


def title(notebook: Any) -> str:
    """The first heading of a notebook, else nothing."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and (found := re.search(r"^#+ +(.+)$", cell.source, re.MULTILINE)):
            return excerpt(found[1].strip(), 120)
    return ""


def _contents(pages: Sequence[Page], left: Sequence[str]) -> str:
    rows = "".join(_row(page) for page in pages)
    ok = sum(page.status == "ok" for page in pages)
    verdict = f"{ok} of {len(pages) + len(left)} ran to the end"
    if left:
        verdict += f"; stopped before {html.escape(', '.join(left))} had ended"
    head = "<tr><th>notebook</th><th>question</th><th>status</th><th>seconds</th><th>files</th></tr>"
    return f"<h1>openclaw-lab report</h1><p>{verdict}</p><table class='contents'>{head}{rows}</table>"


def _row(page: Page) -> str:
    name, status = html.escape(page.name), html.escape(page.status)
    links = " ".join(f"<a href='{quote(link)}'>{html.escape(Path(link).name)}</a>" for link in page.links)
    kind = "ok" if page.status == "ok" else "failed"
    return (
        f"<tr><td><a href='#{_anchor(page)}'>{name}</a></td><td>{html.escape(title(page.notebook))}</td>"
        f"<td class='{kind}'>{status}</td><td>{page.seconds:.1f}</td><td>{links}</td></tr>"
    )


def _made_with(pages: Sequence[Page]) -> str:
    """The last section: with what, and on which data, the figures were made."""
    head = "<section id='made-with'><h2>Made with / 环境</h2><table class='contents'>"
    rows = [
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(each)}</td></tr>" for name, each in environment().items()
    ]
    data = [
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(size)}</td><td><code>{digest}</code></td></tr>"
        for digest, (name, size) in data_named(page.notebook for page in pages).items()
    ]
    shown = f"<h2>Data / 数据</h2><table class='contents'>{''.join(data)}</table>" if data else ""
    return f"{head}{''.join(rows)}</table>{shown}</section>"


def _section(page: Page) -> str:
    name = html.escape(page.name)
    failed = "" if page.status == "ok" else f"<p class='failed'>{html.escape(page.status)}</p>"
    cells = _alone(_body(page), _anchor(page))
    return f"<section id='{_anchor(page)}'><p class='source'>{name}</p>{failed}{cells}</section>"


def _anchor(page: Page) -> str:
    return re.sub(r"\W+", "-", page.name)


def _body(page: Page) -> str:
    """The cells of a notebook as HTML, made by nbconvert."""
    from nbconvert import exporters
    from traitlets.config import Config

    make: Any = exporters.HTMLExporter
    exporter = make(
        config=Config({"NbConvertBase": {"display_data_priority": _KINDS}}),
        raw_template=_TEMPLATE,
        extra_template_basedirs=[],
        exclude_anchor_links=True,
        embed_images=True,
    )
    where = {"metadata": {"name": page.name, "path": str(page.folder)}}
    body, _ = exporter.from_notebook_node(_shown(page.notebook), resources=where)
    return str(body)


def _shown(notebook: Any) -> Any:
    """A copy in which every output has a form that paper could show."""
    shown = copy.deepcopy(notebook)
    shown.metadata.pop("widgets", None)
    for cell in shown.cells:
        if "outputs" in cell:
            cell["outputs"] = [output for output in cell["outputs"] if not _is_progress(output)]
        for output in cell.get("outputs", []):
            if "data" in output:
                output["data"] = _still(output["data"])
    return shown


def _is_progress(output: Any) -> bool:
    """A progress bar that has done its work: text like ` 33%|###3      | 1/3 [00:01<00:02]`, drawn or as a widget."""
    data = output.get("data", {})
    text = data.get("text/plain", "") if _WIDGET in data else output.get("text", "") if "text" in output else ""
    return bool(_PROGRESS.search("".join(text)))


def _still(data: Any) -> Any:
    if _WIDGET in data:
        return {"text/plain": "[interactive control: open the notebook in JupyterLab]"}
    if not any(kind in data for kind in _KINDS):
        return {"text/plain": f"[output of type {', '.join(sorted(data))}]"}
    return data


def _alone(fragment: str, name: str) -> str:
    """The fragment without anything that runs or loads; its ids get the notebook's name, so that they stay unique."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(fragment, "html.parser")
    for element in soup.find_all(_ACTIVE):
        element.decompose()
    for element in soup.find_all(True):
        for attribute in list(element.attrs):
            _settle(element, attribute, name)
        if element.name == "style" and element.string:
            element.string = _STYLE_LOADS.sub("none", element.string)
    return str(soup)


def _settle(element: Any, attribute: str, name: str) -> None:
    """One attribute: keep it, make it local to its notebook, or remove it because it would load or run something."""
    value = " ".join(element[attribute]) if isinstance(element[attribute], list) else str(element[attribute])
    if attribute in ("id", "for", "headers", "name"):
        element[attribute] = f"{name}.{value}"
    elif attribute == "style":
        element[attribute] = _STYLE_LOADS.sub("none", value)
    elif attribute in ("href", "xlink:href"):
        if value.startswith("#"):
            element[attribute] = f"#{name}.{value[1:]}"
        elif not value.startswith("data:image/") and (element.name != "a" or not _LINK.match(value)):
            del element[attribute]
    elif attribute.startswith("on") or (attribute in _LOADING and not value.startswith("data:")):
        del element[attribute]


def _code_style() -> str:
    formatters: Any = importlib.import_module("pygments.formatters")
    return str(formatters.HtmlFormatter().get_style_defs(".highlight"))


_PROGRESS = re.compile(r"\d%\|.*\|\s*\d+/\d+ \[")
_WIDGET = "application/vnd.jupyter.widget-view+json"
_KINDS = ["text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg", "text/latex", "text/plain"]
_ACTIVE = ["script", "link", "iframe", "frame", "object", "embed", "base", "meta", "form", "audio", "video", "portal"]
_LOADING = {"src", "srcset", "poster", "background", "data", "action", "formaction", "ping", "manifest", "srcdoc"}
_LINK = re.compile(r"(https?://|mailto:)", re.IGNORECASE)
_STYLE_LOADS = re.compile(r"url\(\s*['\"]?(?!\s*['\"]?data:)[^)]*\)|@import[^;]*;?", re.IGNORECASE)
_POLICY = "default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline'"

_TEMPLATE = """
{%- extends 'lab/base.html.j2' -%}
{%- block input_group -%}
{%- if cell.source | trim -%}
<details class="code"><summary>In [{{ cell.execution_count or ' ' }}]</summary>{{ super() }}</details>
{%- endif -%}
{%- endblock -%}
{%- block in_prompt -%}{%- endblock -%}
{%- block empty_in_prompt -%}{%- endblock -%}
{%- block output_area_prompt -%}{%- endblock -%}
"""

_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>openclaw-lab report</title>
<style>{style}</style></head><body><main>"""

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; margin: 0; }
main { max-width: 62rem; margin: 0 auto; padding: 1rem; }
section { border-top: 2px solid #bbb; margin-top: 3rem; }
p.source { color: #666; font-family: monospace; }
table { border-collapse: collapse; margin: .6rem 0; font-size: 13px; display: block; overflow-x: auto; }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #e4e4e4; vertical-align: top; }
.contents th, .contents td, .jp-MarkdownOutput th, .jp-MarkdownOutput td { text-align: left; }
.ok { color: #05630b; } .failed { color: #a80000; font-weight: 600; }
pre { overflow-x: auto; font-size: 13px; line-height: 1.35; white-space: pre-wrap; overflow-wrap: anywhere; }
img, svg { max-width: 100%; height: auto; }
details.code { margin: .4rem 0; } details.code summary { color: #888; font: 12px monospace; cursor: pointer; }
.highlight { background: #f6f7f8; padding: .1rem .7rem; border-radius: 4px; }
.jp-OutputArea-child { margin: .4rem 0; }
[data-mime-type="application/vnd.jupyter.stderr"] { background: #fdf0f0; padding: .1rem .7rem; }
.ansi-bold { font-weight: 700; } .ansi-red-fg, .ansi-red-intense-fg { color: #a80000; }
.ansi-green-fg, .ansi-green-intense-fg { color: #05630b; } .ansi-blue-fg, .ansi-blue-intense-fg { color: #0b3d91; }
.ansi-yellow-fg, .ansi-yellow-intense-fg { color: #7a5900; } .ansi-cyan-fg, .ansi-cyan-intense-fg { color: #00626b; }
.ansi-magenta-fg, .ansi-magenta-intense-fg { color: #7b1fa2; }
@media (prefers-color-scheme: dark) {
body { color: #ddd; background: #16181b; } a { color: #8ab4f8; } th, td { border-color: #3a3d42; }
.ok { color: #7bd88f; } .failed { color: #ff8a80; } .highlight { background: #22252a; }
.highlight, .highlight * { color: #ddd; } img { background: #fff; }
[data-mime-type="application/vnd.jupyter.stderr"] { background: #3a2222; }
}
"""
