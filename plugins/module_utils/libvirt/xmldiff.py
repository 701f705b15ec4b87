"""XML for libvirt, and the comparison of wanted and existing definitions.

libvirt completes a definition (addresses, defaults, controllers), so two documents that mean the same differ. What counts
is the projection of the defined one on the wanted one: the elements and attributes that the wanted one mentions, and all
siblings of an element that may occur several times.
"""

from __future__ import annotations

import difflib
import xml.etree.ElementTree as ET
from collections.abc import Mapping


def element(
    tag: str, attributes: Mapping[str, object] | None = None, *children: ET.Element | None, text: object = None
) -> ET.Element:
    """Return an element; attributes and children that are None are omitted.

    `tag` and names of attributes are as ElementTree has them (`{uri}name` for a namespace); values and `text` become
    strings.
    """
    made = ET.Element(tag, {name: str(value) for name, value in (attributes or {}).items() if value is not None})
    made.extend(child for child in children if child is not None)
    if text is not None:
        made.text = str(text)
    return made


def text(tree: ET.Element) -> str:
    """Return the document, indented, attributes in order of their names.

    Two blanks for each level. Namespaces of `NAMESPACES` get their prefixes at the root.
    """
    return "\n".join(_lines(tree, 0)) + "\n"


def project(defined: ET.Element, wanted: ET.Element) -> ET.Element:
    """Return the projection of `defined` on `wanted`.

    Children are paired by tag, in order; unpaired children of `defined` are kept if `wanted` has the tag.
    """
    made = ET.Element(wanted.tag, {name: defined.get(name, "") for name in wanted.attrib if name in defined.attrib})
    if (defined.text or "").strip():
        made.text = (defined.text or "").strip()
    theirs: dict[str, list[ET.Element]] = {}
    for child in defined:
        theirs.setdefault(child.tag, []).append(child)
    for child in wanted:
        if theirs.get(child.tag):
            made.append(project(theirs[child.tag].pop(0), child))
    for tag in {child.tag for child in wanted}:
        made.extend(theirs.get(tag, []))
    return made


def difference(defined: ET.Element | None, wanted: ET.Element) -> dict[str, str] | None:
    """Return `{"before", "after"}` for Ansible's diff, or None if `defined` matches.

    Both values are texts of XML; `before` has only what counts, and is empty when there is no definition yet.
    """
    after = text(wanted)
    before = text(project(defined, wanted)) if defined is not None else ""
    return None if before == after else {"before": before, "after": after}


def unified_diff(diff: dict[str, str]) -> str:
    """Return a difference as a unified diff.

    With one line of context, and without the names of files.
    """
    return "\n".join(difflib.unified_diff(diff["before"].splitlines(), diff["after"].splitlines(), lineterm="", n=1))


def _lines(node: ET.Element, depth: int) -> list[str]:
    pad = "  " * depth
    attributes = "".join(f" {_name(name)}={_quoted(value)}" for name, value in sorted(node.attrib.items()))
    tag = _name(node.tag)
    spaces = "".join(
        f" xmlns:{prefix}={_quoted(uri)}" for uri, prefix in NAMESPACES.items() if depth == 0 and _uses(node, uri)
    )
    content = (node.text or "").strip()
    if not len(node):
        if not content:
            return [f"{pad}<{tag}{spaces}{attributes}/>"]
        return [f"{pad}<{tag}{spaces}{attributes}>{_escaped(content)}</{tag}>"]
    inner = [line for child in node for line in _lines(child, depth + 1)]
    return [f"{pad}<{tag}{spaces}{attributes}>", *inner, f"{pad}</{tag}>"]


NAMESPACES = {
    "http://libvirt.org/schemas/network/dnsmasq/1.0": "dnsmasq",
    "https://agentlab.test/xmlns/1.0": "agentlab",
}


def _uses(node: ET.Element, uri: str) -> bool:
    return any(child.tag.startswith(f"{{{uri}}}") for child in node.iter())


def _name(tag: str) -> str:
    if not tag.startswith("{"):
        return tag
    uri, __, local = tag[1:].partition("}")
    return f"{NAMESPACES.get(uri, 'ns')}:{local}"


def _escaped(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _quoted(value: str) -> str:
    return "'" + _escaped(value).replace("'", "&apos;") + "'"
