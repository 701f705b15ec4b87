"""HTML documents of facts and tables: without scripts, without other files, dark where the reader's system is dark."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

# Colours are PatternFly's, as on the run page.
_STYLE = """:root{color-scheme:light dark;--back:#fff;--text:#151515;--dim:#4d4d4d;--line:#c7c7c7;--wash:#f2f2f2;--link:#0066cc;
--good:#3d7317;--bad:#b1380b;--run:#0066cc}
@media(prefers-color-scheme:dark){:root{--back:#151515;--text:#e0e0e0;--dim:#a3a3a3;--line:#4d4d4d;--wash:#292929;--link:#92c5f9;
--good:#87bb62;--bad:#f0561d}}
body{background:var(--back);color:var(--text);font:14px/1.5 "Red Hat Text",system-ui,sans-serif;margin:0 auto;max-width:90rem;padding:1rem}
h1{font-size:1.5rem;margin:.5rem 0}h2{font-size:1.15rem;margin:1.5rem 0 .5rem}.wide{overflow-x:auto}a{color:var(--link)}
.wide svg{max-width:100%;height:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
td,th{text-align:left;padding:.3rem 1rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:top;white-space:nowrap}
td.text{white-space:normal;min-width:20rem;overflow-wrap:anywhere}.good{color:var(--good)}.bad{color:var(--bad);font-weight:700}
td.track{min-width:16rem;position:relative}
.track i{position:absolute;top:.45rem;height:1rem;min-width:3px;background:var(--run)}.track .bad{background:var(--bad)}
th{color:var(--dim)}dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1.5rem}dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}"""


class Link(NamedTuple):
    """A cell that is a link. target: relative to the page."""

    text: str
    target: str


class Mark(NamedTuple):
    """A cell with a colour. kind: `good` or `bad`; `text` for a long text that may be wrapped."""

    text: str
    kind: str


class Bar(NamedTuple):
    """A cell with a bar from `start` to `end`, both from 0 to 1. text: what it means, for those who cannot see it."""

    start: float
    end: float
    text: str
    bad: bool = False


Cell: TypeAlias = "str | Link | Mark | Bar"


def document(title: str, heading: str, facts: Iterable[tuple[str, str]], body: str) -> str:
    """Return a page: its heading, names with values, then `body`, which is HTML.

    Title, heading and facts are escaped. The page may load nothing, and run no script.
    """
    listed = "".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd>" for name, value in facts)
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n"
        f"<main>\n<h1>{html.escape(heading)}</h1>\n<dl>{listed}</dl>\n{body}</main>\n</html>\n"
    )


def table(title: str, columns: Sequence[str], rows: Iterable[Iterable[Cell]]) -> str:
    """Return a table with its title, as HTML; nothing without rows. All texts are escaped."""
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in columns)
    if not body:
        return ""
    return f"<h2>{html.escape(title)}</h2>\n" + wide(
        title, f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def wide(title: str, content: str) -> str:
    """Return HTML in a region of its own, which the keyboard scrolls. title: for screen readers."""
    return f'<div class="wide" tabindex="0" role="region" aria-label="{html.escape(title)}">{content}</div>\n'


def _cell(cell: Cell) -> str:
    match cell:
        case Link(text, target):
            return f'<td><a href="{html.escape(target)}">{html.escape(text)}</a></td>'
        case Mark(text, kind):
            return f'<td class="{html.escape(kind)}">{html.escape(text)}</td>'
        case Bar(start, end, text, bad):
            place = f"left:{100 * start:.2f}%;width:{100 * (end - start):.2f}%"
            return f'<td class="track"><i{" class=bad" if bad else ""} style="{place}" title="{html.escape(text)}"></i></td>'
        case _:
            return f"<td>{html.escape(cell)}</td>"
