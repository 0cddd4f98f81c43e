"""A tool that asks a wttr.in server for the weather of a place."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import quote

from openclaw_lab.plugins.sdk import PluginApi, ToolResult, define_plugin_entry

# Characters of an answer that a model gets to see.
_LONGEST = 4_000


def _register(api: PluginApi) -> None:
    base, timeout = api.plugin_config["baseUrl"].rstrip("/"), float(api.plugin_config["timeout"])

    def weather_get(
        city: Annotated[str, "城市名或机场代码 a city or an airport code, such as London, 北京, PEK"],
        format: Annotated[Literal["brief", "forecast"], "brief (one line) or forecast (three days)"] = "brief",
    ) -> str | ToolResult:
        """获取指定城市的当前天气和预报。Get the current weather of a city, or its forecast."""
        import httpx  # heavy, and needed only when the tool is called

        if not city.strip():
            return ToolResult("city is empty: name one, for example 北京", failed=True)
        asked = "format=3" if format == "brief" else "T"  # T: no colours
        try:
            # wttr.in draws a web page for browsers, and plain text for curl.
            answer = httpx.get(
                f"{base}/{quote(city.strip(), safe='')}?{asked}",
                timeout=timeout,
                headers={"User-Agent": "curl"},
                verify=base.startswith("https"),
            )
        except httpx.HTTPError as error:
            return ToolResult(f"the weather server does not answer ({type(error).__name__})", failed=True)
        if not answer.is_success:
            return ToolResult(f"the weather server answers with status {answer.status_code}", failed=True)
        return answer.text.strip()[:_LONGEST]

    api.register_tool(weather_get)


entry = define_plugin_entry(
    id="weather", name="Weather", description="Weather from a wttr.in server", register=_register
)
