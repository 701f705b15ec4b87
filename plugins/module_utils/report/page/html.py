"""From the document of a run to a page: template, style sheet and script, with the data compressed in it.

The data is base64 of gzip: no text of it is markup, whatever hosts and logs say. The page's policy allows its own script and style
only, by their digests, and no connection but to the server that it came from.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from pathlib import Path

from .model import Run

_HERE = Path(__file__).parent
_POLICY = "default-src 'none'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; style-src '{}'; script-src '{}'"


def page(run: Run) -> str:
    """Return the HTML of a run.

    run: the document. The page needs no other file and no network; without JavaScript it shows result, first cause and
    next step. Raises `OSError` when the style sheet or the script of the package cannot be read.
    """
    style, script = ((_HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    data = base64.b64encode(gzip.compress(json.dumps(run, separators=(",", ":")).encode(), 9, mtime=0)).decode()
    verdict = run["verdict"]
    cause = verdict["causes"][0] if verdict["causes"] else None
    plain = [f"Cluster {verdict['cluster']}: {verdict['result']}."]
    if cause:
        plain += [f"First cause: {cause['text']}", f"Next: {cause['next']}"]
    policy = _POLICY.format(_digest(style), _digest(script))
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(verdict['cluster'])}: {html.escape(verdict['result'])}</title>\n"
        f"<style>{style}</style>\n"
        f"<noscript>{''.join(f'<p>{html.escape(text)}</p>' for text in plain)}"
        "<p>The rest of this page needs JavaScript. All it shows is also in run.json, next to it.</p></noscript>\n"
        f'<main id="page"></main>\n<script type="text/plain" id="data">{data}</script>\n<script>{script}</script>\n</html>\n'
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
