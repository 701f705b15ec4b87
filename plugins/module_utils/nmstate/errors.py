"""What the nmstate library raises."""

from __future__ import annotations

from ..errors import AgentlabError


class NmstateError(AgentlabError):
    """A network state that cannot be turned into keyfiles.

    `kind` is nmstate's name for the sort of error (`InvalidArgument`, `NotImplementedError`, `NotSupportedError`). The text
    is `<kind>: <message>`, one line.
    """

    def __init__(self, message: str, kind: str = "InvalidArgument") -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


def not_implemented(message: str) -> NmstateError:
    return NmstateError(message, "NotImplementedError")
