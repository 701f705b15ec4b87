"""The field's English: words that this project does not use, in documentation, messages, comments, names and tests.

`WORDS` is the table: what to avoid, what to write instead, and contexts in which it is right. Prose is the whole text of Markdown, YAML, shell
and other files, and comments and strings of Python. `NAMES` is the same for identifiers.
"""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 120  # of documentation
ELSEWHERE = re.compile(
    # Texts of others, generated files, and this table.
    r"\.(lock|svg|png|xz|gz|iso|bin|ico|jsonl)$|^LICENSE$|^tests/recorded/|/golden/|/reference/|^changelogs/changelog\.yaml$|^tests/lint/test_words\.py$"
)
GENERATED = re.compile(r"^docs/(?:support|verbs)\.md$|^roles/[a-z_]+/README\.md$|^CHANGELOG")
LINKS = re.compile(r"^!?\[|^    |^\| `")  # a picture, a command, a row that is a reference


class Word(NamedTuple):
    """Not to be written: a pattern, what to write instead, and a pattern of allowed contexts, which contain a match."""

    avoid: str
    say: str
    allowed: str = ""


WORDS = (
    Word(r"\broads?\b", "workflow, flow"),
    Word(r"\bmend(s|ed|ing)?\b", "fix"),
    Word(r"\bjudg(e|es|ed|ing)\b", "validate, check"),
    Word(r"\bwish(es|ed)?\b", "option, request"),
    Word(r"\bbegins? anew\b|\banew\b", "start over, again"),
    Word(r"\bfor ever\b", "indefinitely"),
    Word(r"\bagain and again\b", "repeatedly"),
    Word(r"\bwhoever\b", "maintainers, contributors, or the name of the role"),
    Word(r"\bnamesakes?\b", "upstream"),
    Word(r"\bwhole numbers?\b", "integer"),
    Word(r"\b(?-i:is none|are none)\b", "is not a valid X", r"\bthere (is|are) none\b"),
    Word(r"\bpatience\b", "grace period"),
    Word(r"\bpeople\b", "users"),
    Word(r"\b(is|belongs to) (of )?nobody\b", "is not part of, does not belong to"),
    Word(r"\bstand-ins?\b", "simulator, fake"),
    Word(r"\bmachine rooms?\b", "lab"),
    Word(r"\btells? whether\b", "return whether"),
    Word(r"\b(is|are|was|were) told\b", "is reported", r"\btold (to|from|apart)\b"),
    Word(r"\bwhat (one sees|came of|comes of|it takes)\b", "symptom, outcome, requirements"),
    Word(r"\b(it|which|they|file|that) (lies|lie) (in|below|beside|behind)\b", "is in"),
    Word(r"\bof (its|one's|their) own accord\b", "automatically"),
    Word(r"\bby the way\b", "nothing"),
    Word(r"\b(goes|go|went) on\b", "continue, resume, be in progress"),
    Word(r"\b(it|that|profile|plan) comes? to\b", "result in"),
    Word(
        r"\bnobody\b|\bno one\b", "no user, or the passive voice", r"[\"'{]nobody\b|\bimage nobody\b|\bnobody:|:nobody"
    ),
    Word(r"\b(some|any|every)body\b", "a user, everyone", r"\b(by|of)[ -]somebody\b|somebody@"),
    Word(r"\btells?\b", "report, print"),
    Word(r"\bsays\b|\b(was|is|be) said\b", "report, print, contain"),
    Word(r"\bwho asks\b", "caller"),
    Word(r"\bspeaks?\b", "use, support, implement"),
    Word(r"\bhears?\b", "receive"),
    Word(r"\b(dies|lives|born)\b", "end, be in, be created"),
    Word(r"\bforgets?\b|\bforgotten\b", "omit, discard, delete", r"\b(EXISTS|FROM|INTO) forgotten\b"),
    Word(r"\bstumbles?\b", "fail on"),
    Word(r"\b(?-i:is|are|was|were) no (?!longer\b|more\b|less\b)", "is not a", r"\bthere (is|are|was|were) no\b"),
    Word(r"\bstands? (for|in)\b", "represent, replace, be in"),
    Word(r"\bbeside\b", "next to, in addition to", r"[\"'{/]beside\b|\bbeside:"),
    Word(r"\bhand(s|ed)? on\b", "pass on"),
    Word(r"\banother's\b", "of another owner", r"\banother's replies\b"),
    Word(r"\bof one's\b|\bone's own\b", "your own"),
    Word(r"\b(to|may|can) be had\b", "available"),
    Word(r"\band so (is|are|does|do)\b", "as is, as does"),
    Word(r"\bwhose (the|a) (cluster|lab|request|directory) is\b", "the owner of"),
    Word(r"\bwhat [a-z' ]{1,30} (is|are) made of\b", "parts, contents"),
    Word(r"\bhence\b", "so, therefore", r"\bhence (conflicting|cannot)\b"),
    Word(r"\bshall\b", "must"),
    Word(r"\broom (for|left)\b|\bno room\b|\benough room\b", "space"),
    Word(r"\bonce more\b", "again"),
    Word(r"\bat (its|their) moments?\b", "when it is triggered"),
    Word(r"\b(for want of|in vain|meant to have)\b", "a plain statement"),
    Word(r"^\W*Needed (is|are)\b", "Requirements:"),
    Word(r"\bmust be text\b", "must be a string"),
)
NAMES = re.compile(
    r"\b(Wishes|WISHES|wishes_of|insist|ailing|PATIENCE|TAKEN_ALONG|FORGOTTEN|_FORGOTTEN|Doors|Bodies|BY_PEOPLE|judge|Played|Talk|_tell\w*|_heard|_born|"
    r"_lives|test_\w*_(told|anew|nobody|is_none|are_none|for_ever|goes_on|people|judged|mended|namesakes?|strangers?|says|said|tells|"
    r"speaks|hears|forgets|beside|anybody|somebody|everybody)(_\w+)?)\b"
)


def test_prose() -> None:
    """All words at once, in one pass over the files."""
    any_of = re.compile("|".join(word.avoid for word in WORDS), re.IGNORECASE)
    words = [
        (re.compile(word.avoid, re.IGNORECASE), word.say, re.compile(word.allowed or r"(?!)", re.IGNORECASE))
        for word in WORDS
    ]
    found = []
    for name in files():
        if not any_of.search(text(name)):
            continue
        for number, line in prose(name):
            for avoid, say, allowed in words if any_of.search(line) else ():
                contexts = [match.span() for match in allowed.finditer(line)]
                for match in avoid.finditer(line):
                    if not any(start < match.end() and match.start() < end for start, end in contexts):
                        found.append(f"{name}:{number}: {match[0]!r}, write {say!r}: {line.strip()[:120]}")
    assert not found, "\n".join(found)


def test_names() -> None:
    found = [
        f"{name}:{number}: {match[0]}"
        for name in files()
        if name.endswith(".py")
        for number, line in enumerate(text(name).splitlines(), 1)
        for match in NAMES.finditer(line)
    ]
    assert not found, "\n".join(found)


def test_lines_of_documentation() -> None:
    """They have at most 120 characters, but for pictures and commands; headings are headings, so that they can be linked to."""
    found = []
    for name in files():
        if not name.endswith(".md") or GENERATED.search(name) or name.startswith((".github/", "tests/")):
            continue
        code = False
        for number, line in enumerate(text(name).splitlines(), 1):
            code ^= line.startswith("```")
            if len(line) > WIDTH and not code and not LINKS.search(line):
                found.append(f"{name}:{number}: {len(line)} characters")
            if re.fullmatch(r"\*\*[^*]+\*\*:?", line.strip()):
                found.append(f"{name}:{number}: a heading in bold: {line.strip()}")
    assert not found, "\n".join(found)


@cache
def files() -> tuple[str, ...]:
    """The tracked text files whose words are ours."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return tuple(
        name
        for name in listed
        if not ELSEWHERE.search(name) and not (ROOT / name).is_symlink() and (ROOT / name).is_file() and is_text(name)
    )


def is_text(name: str) -> bool:
    try:
        text(name)
    except UnicodeDecodeError:
        return False
    return True


@cache
def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def prose(name: str) -> Iterator[tuple[int, str]]:
    """Each line that users or contributors read, with its number."""
    if not name.endswith(".py"):
        yield from enumerate(text(name).splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text(name)).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING) or tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
            yield from enumerate(token.string.splitlines(), token.start[0])
