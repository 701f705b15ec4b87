"""Exchanges with the real programs, recorded by `proxy.py`, and what the replay tests need to read them.

A recording is a JSON list of exchanges in the order of their answers:
`{"method", "path", "scheme", "request", "status", "answer"}`. `path` has the query; `scheme` names the header that
authenticated the request ("" without); bodies are decoded JSON, `{"text": ...}` or, for files, `{"bytes": LENGTH}`.
"""
