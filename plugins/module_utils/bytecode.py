"""Bytecode for a Python that finds it next to the source in a zip archive (`zipimport`)."""

from __future__ import annotations

import importlib.util
import marshal

_UNCHECKED_HASH = 1


def compile_source(source: bytes, name: str) -> bytes:
    """Return a .pyc that is never compared with its source (PEP 552); a Python of another version uses the source.

    name: of the source, for tracebacks. Raises `SyntaxError` or `ValueError`.
    """
    code = compile(source, name, "exec", dont_inherit=True, optimize=0)
    header = importlib.util.MAGIC_NUMBER + _UNCHECKED_HASH.to_bytes(4, "little")
    return header + importlib.util.source_hash(source) + marshal.dumps(code)
