"""What the installer refuses, in the words of Kubernetes' field errors (k8s.io/apimachinery `field.Error`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from ..vocabulary import Exit


class InstallerError(ValueError):
    """An input or a step was refused; the text is the whole message. `exit_code` is the process's.

    Texts follow openshift-install's where it has one for the case. `fields` has the errors of single fields one by one, when the
    text consists of such.
    """

    exit_code = Exit.FAILED
    fields: tuple[str, ...] = ()


class FieldErrors(list[str]):
    """The errors of one file, collected, in order of discovery. `path` spells the fields' paths.

    It is a list of finished texts, so `+=` joins two files' errors. `check` raises them together. path: turns a field's
    path into the spelling of the release; the path as it is, by default.
    """

    def __init__(self, *, path: Callable[[str], str] = str) -> None:
        super().__init__()
        self.path = path

    def invalid(self, path: str, value: object, detail: str) -> None:
        """Report `value` as invalid for the reason in `detail`."""
        self.append(f"{self.path(path)}: Invalid value: {quote(value)}: {detail}")

    def required(self, path: str, detail: str = "") -> None:
        """Something must be given at `path`."""
        self.append(f"{self.path(path)}: Required value" + (f": {detail}" if detail else ""))

    def forbidden(self, path: str, detail: str) -> None:
        """Report that `path` must not be set."""
        self.append(f"{self.path(path)}: Forbidden: {detail}")

    def unsupported(self, path: str, value: object, supported: Iterable[str]) -> None:
        """`value` is not one of `supported`.

        supported: the allowed values, in the order of the text.
        """
        names = ", ".join(quote(name) for name in supported)
        self.append(f"{self.path(path)}: Unsupported value: {quote(value)}: supported values: {names}")

    def duplicate(self, path: str, value: object) -> None:
        """`value` is in the list a second time."""
        self.append(f"{self.path(path)}: Duplicate value: {quote(value)}")

    def too_many(self, path: str, count: int, most: int) -> None:
        """A list has `count` items where `most` are allowed."""
        self.append(f"{self.path(path)}: Too many: {count}: must have at most {most} items")

    def text(self) -> str:
        """One error bare, several as `[a, b]`, exact repetitions once.

        Several are joined as Kubernetes' `errors.Aggregate` does.
        """
        seen = list(dict.fromkeys(self))
        return seen[0] if len(seen) == 1 else f"[{', '.join(seen)}]"

    def check(self, prefix: str) -> None:
        """Raise `InstallerError` with `prefix: errors` if there are any."""
        if self:
            error = InstallerError(f"{prefix}: {self.text()}")
            error.fields = tuple(dict.fromkeys(self))
            raise error


def quote(value: object) -> str:
    """`value` as Go prints it in a field error: strings quoted, numbers and booleans bare, the rest as JSON.

    Text is not escaped beyond JSON's needs: other scripts stay readable.
    """
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
