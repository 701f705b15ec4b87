"""Guarded imports of third-party libraries.

A library of this collection that needs a package from PyPI declares it as follows, and stays importable without it::

    if TYPE_CHECKING:
        import sushy
    else:
        sushy = optional("sushy")

The real import happens at the first use of an attribute, which also keeps start-up of the command line short. When it
fails, `MissingLibrary` names the distribution to install; `module_utils/_ansible.py` turns that into Ansible's usual
message.
"""

from __future__ import annotations

import importlib
import importlib.util
import threading
import traceback
from typing import Any

_WANTED: dict[str, str] = {}
"""Distribution -> its package, for all libraries that the imported modules may need."""


_IMPORTS = threading.RLock()
"""Held during an import: threads that import parts of one library would wait for each other, which Python ends with an error."""


class MissingLibrary(ImportError):
    """A required third-party library is not installed.

    `distribution` is the name to give to pip; `trace` is the traceback of the failed import.
    """

    def __init__(self, distribution: str, trace: str) -> None:
        super().__init__(f"the Python library {distribution} is not installed: pip install {distribution}")
        self.distribution = distribution
        self.trace = trace


class _Optional:
    def __init__(self, name: str, distribution: str) -> None:
        self.__dict__.update(_name=name, _distribution=distribution)

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        try:
            with _IMPORTS:
                module = importlib.import_module(self._name)
        except ImportError as error:
            raise MissingLibrary(self._distribution, traceback.format_exc()) from error
        value = getattr(module, attribute)
        self.__dict__[attribute] = value
        return value


def optional(name: str, distribution: str | None = None) -> Any:
    """Return a proxy for module `name` that imports it at the first use of an attribute.

    `distribution` is the name on PyPI where it differs, as in `optional("yaml", "PyYAML")`. Use of an attribute
    raises `MissingLibrary` when the import fails.
    """
    _WANTED[distribution or name] = name.partition(".")[0]
    return _Optional(name, distribution or name)


def wanted_distributions() -> list[str]:
    """Return the distributions that the modules imported so far may need.

    They are names on PyPI, sorted; only modules that declare one by `optional` count.
    """
    return sorted(_WANTED, key=str.lower)


def missing() -> list[str]:
    """Return those of them that are not installed.

    Nothing is imported: a library is missing when its top-level package is not found.
    """
    return [
        distribution
        for distribution in wanted_distributions()
        if importlib.util.find_spec(_WANTED[distribution]) is None
    ]
