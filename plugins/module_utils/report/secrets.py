"""The secrets in the files of a run, which must not appear in a report."""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..documents import DocumentError, load_json, load_yaml_all
from ..plan.secrets import FILE as _OWN
from ..redact_words import is_innocent, is_secret_key
from ..vocabulary import RunFile

_DOCUMENTS = ("*.yaml", "*.yml", "inputs/*", RunFile.KUBECONFIG, "cluster-manifests/*", "openshift/*")
_IN_URL = re.compile(r"://[^\s/:@]{0,256}:([^\s/@]{1,1024})@")
_SHORTEST = 6
_FILES = (RunFile.PASSWORD, "tls/kubeadmin-password", "tls/*.key", "ssh/id_*")


def of_run(run_dir: Path) -> list[str]:
    """Return the passwords, tokens and keys that the files of a run directory hold; a file that cannot be read has none.

    They are literals for a redactor, sorted, each as in its file and, if it is base64, also decoded. The lab's own file
    of secrets counts in full, other documents by their secret keys and the passwords in URLs.
    """
    found = set[str]()
    for path in _matching(run_dir, _FILES):
        with contextlib.suppress(OSError):
            found.add(path.read_text(errors="replace").strip())
    for path in _matching(run_dir, _DOCUMENTS):
        with contextlib.suppress(OSError, DocumentError):
            for document in load_yaml_all(path.read_bytes(), name=str(path)):
                found.update(of_document(document))
    with contextlib.suppress(OSError, DocumentError):
        own = load_json((run_dir / _OWN).read_bytes(), name=_OWN)
        found.update(
            of_document({"kind": "Secret", "data": {**own.pop("nodes", {}), **own}} if isinstance(own, dict) else None)
        )
    return sorted(found)


def of_document(data: object) -> Iterator[str]:
    """Yield the values of all secret keys, also of JSON within strings, such as a pull secret.

    data: a decoded document. Everything in the `data` and `stringData` of a Secret is one. A value in base64 is yielded
    as it is and decoded; of `auth` in a pull secret only the password.
    """
    pending: list[tuple[str, Any]] = [("", data)]
    while pending:
        key, value = pending.pop()
        if isinstance(value, dict):
            for name, inner in value.items():
                all_secret = (
                    value.get("kind") == "Secret" and name in ("data", "stringData") and isinstance(inner, dict)
                )
                pending += [("password", leaf) for leaf in inner.values()] if all_secret else [(str(name), inner)]
        elif isinstance(value, list):
            pending += [(key, inner) for inner in value]
        elif isinstance(value, str) and value.lstrip().startswith("{"):
            with contextlib.suppress(DocumentError):
                pending.append(("", load_json(value, name=key)))
        elif isinstance(value, str) and (within := _IN_URL.findall(value)):
            yield from within
        elif (
            isinstance(value, str | int)
            and not isinstance(value, bool)
            and is_secret_key(key)
            and not is_innocent(str(value))
        ):
            yield str(value)
            plain = _decoded(str(value))
            if plain:
                yield plain.partition(":")[2] if key == "auth" else plain


def _decoded(value: str) -> str:
    """Return the text that `value` is in base64, as in kubeconfigs and the data of Secrets; nothing for another one."""
    try:
        text = base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
    return text if len(text) >= _SHORTEST and all(letter.isprintable() or letter.isspace() for letter in text) else ""


def _matching(run_dir: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    return (path for pattern in patterns for path in run_dir.glob(pattern) if path.suffix != ".pub")
