"""A call by a model in, a ToolResult out: an unknown tool, wrong arguments or a fault of the tool is a failed result.

The model reads the result and may try again; nothing that a tool does ends the turn.
"""

from __future__ import annotations

import operator
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any

from openclaw_lab.errors import LabError, TaskError, excerpt
from openclaw_lab.knobs import nearest
from openclaw_lab.messages import ToolCall
from openclaw_lab.plugins.schema import Checker
from openclaw_lab.plugins.tool import Tool, ToolContext, ToolResult

# Characters of a result that a model gets to see; a longer one is cut in the middle.
LONGEST = 100_000
_ERROR = 500


class Toolbox:
    """The tools that a model may call, by name; two of one name are an error that says whose they are."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self.offered = tuple(tools)
        self.tools: dict[str, Tool] = {}
        for each in self.offered:
            if each.name in self.tools:
                both = " and ".join(one.plugin or "the agent itself" for one in (self.tools[each.name], each))
                raise TaskError(f"tool {each.name}", f"two of that name, from {both}", "one", "rename or leave out one")
            self.tools[each.name] = each
        self._checks: dict[str, Checker] = {}

    def followed(self, tools: tuple[Tool, ...]) -> Toolbox:
        """This toolbox while its tools are the same ones; another when a plugin was loaded again."""
        own = self.offered
        same = own is tools or (len(own) == len(tools) and all(map(operator.is_, own, tools)))
        return self if same else Toolbox(tools)

    def call(self, call: ToolCall, context: ToolContext) -> ToolResult | Awaitable[str | ToolResult]:
        """Run one call. An `async` tool gives something to wait for; hand what comes of it to `result_of`."""
        tool = self.tools.get(call.name) if isinstance(call.name, str) else None
        if tool is None:
            known = nearest(str(call.name), self.tools) if self.tools else "there are none"
            return ToolResult(f"There is no tool {call.name!r}; {known}", failed=True)
        if not isinstance(call.arguments, Mapping):
            return ToolResult(
                f"{call.name}: arguments: found {excerpt(call.arguments, 60)}; expected a JSON object", True
            )
        wrong = self._faults(tool, call.arguments)
        if wrong:
            return ToolResult(f"{call.name}: {'; '.join(wrong)}", failed=True)
        try:
            given: Any = tool.run(call.arguments, context)
        except Exception as error:  # a tool's fault is something for the model to read, not the end of the turn
            return failure(call.name, error)
        return given if isinstance(given, Awaitable) else result_of(call.name, given)

    def _faults(self, tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
        """What is wrong with arguments; a plugin's tools check theirs themselves."""
        if tool.plugin:
            return []
        check = self._checks.get(tool.name)
        if check is None:
            check = self._checks[tool.name] = Checker(tool.parameters)
        return check(arguments)


def result_of(name: str, given: object) -> ToolResult:
    """What a tool gave, as a result that is not too long."""
    if isinstance(given, str):
        given = ToolResult(given)
    if not isinstance(given, ToolResult) or not isinstance(given.text, str):
        return ToolResult(f"{name}: the tool gave a {type(given).__name__} where a text was expected", failed=True)
    if len(given.text) <= LONGEST:
        return given
    return ToolResult(shortened(given.text), given.failed, given.details)


def failure(name: str, error: BaseException) -> ToolResult:
    """A failed result that says what a tool raised, in one line."""
    said = str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error}"
    return ToolResult(f"{name}: {excerpt(said, _ERROR)}", failed=True)


def shortened(text: str, longest: int = LONGEST) -> str:
    """A text with its middle left out, and a note of how much."""
    head, tail = longest * 3 // 4, longest // 4
    return f"{text[:head]}\n… {len(text) - head - tail:,} characters left out …\n{text[-tail:]}"
