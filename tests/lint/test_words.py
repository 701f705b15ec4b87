"""The field's English: words that this project does not use, in documentation, messages, comments, names and tests.

`WORDS` is the table: what to avoid, what to write instead, and contexts in which it is right. Prose is the whole text of Markdown, YAML, shell
and other files, and comments and strings of Python. `NAMES` is the same for identifiers.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 120  # of documentation
ELSEWHERE = re.compile(
    # Texts of others, generated files, and this table.
    r"\.(lock|svg|png|xz|gz|iso|bin|ico|jsonl)$|^LICENSE$|^tests/recorded/|/golden/|/reference/|^changelogs/changelog\.yaml$|^tests/lint/test_words\.py$"
)
GENERATED = re.compile(r"^docs/(?:support|verbs)\.md$|^CHANGELOG")
SENTENCES = re.compile(r"^\|.*[^.]\. [A-Z`][^|]*\|")
LINKS = re.compile(r"^!?\[|^    |^\| `")  # a picture, a command, a row that is a reference


class Word(NamedTuple):
    """Not to be written: a pattern, what to write instead, and a pattern of allowed contexts, which contain a match.

    avoid: matches from the beginning of a word, in lower case.
    """

    avoid: str
    say: str
    allowed: str = ""


WORDS = (
    Word(r"roads?\b", "workflow, flow"),
    Word(r"mend(s|ed|ing)?\b", "fix"),
    Word(r"judg(e|es|ed|ing)\b", "validate, check"),
    Word(r"wish(es|ed)?\b", "option, request"),
    Word(r"begins? anew\b|anew\b", "start over, again"),
    Word(r"for ever\b", "indefinitely"),
    Word(r"again and again\b", "repeatedly"),
    Word(r"whoever\b", "maintainers, contributors, or the name of the role"),
    Word(r"namesakes?\b", "upstream"),
    Word(r"whole numbers?\b", "integer"),
    Word(r"(?-i:is none|are none)\b", "is not a valid X", r"\bthere (is|are) none\b"),
    Word(r"patience\b", "grace period"),
    Word(r"people\b", "users"),
    Word(r"(is|belongs to) (of )?nobody\b", "is not part of, does not belong to"),
    Word(r"stand-ins?\b", "simulator, fake"),
    Word(r"machine rooms?\b", "lab"),
    Word(r"tells? whether\b", "return whether"),
    Word(r"(is|are|was|were) told\b", "is reported", r"\btold (to|from|apart)\b"),
    Word(r"what (one sees|came of|comes of|it takes)\b", "symptom, outcome, requirements"),
    Word(r"(it|which|they|file|that) (lies|lie) (in|below|beside|behind)\b", "is in"),
    Word(r"of (its|one's|their) own accord\b", "automatically"),
    Word(r"by the way\b", "nothing"),
    Word(r"(goes|go|went) on\b", "continue, resume, be in progress"),
    Word(r"(it|that|profile|plan) comes? to\b", "result in"),
    Word(r"nobody\b|no one\b", "no user, or the passive voice", r"[\"'{]nobody\b|\bimage nobody\b|\bnobody:|:nobody"),
    Word(r"(some|any|every)body\b", "a user, everyone", r"\b(by|of)[ -]somebody\b|somebody@"),
    Word(r"tells?\b", "report, print"),
    Word(r"says\b|(was|is|be) said\b", "report, print, contain"),
    Word(r"who asks\b", "caller"),
    Word(r"speaks?\b", "use, support, implement"),
    Word(r"hears?\b", "receive"),
    Word(r"(dies|lives|born)\b", "end, be in, be created"),
    Word(r"forgets?\b|forgotten\b", "omit, discard, delete", r"\b(EXISTS|FROM|INTO) forgotten\b"),
    Word(r"stumbles?\b", "fail on"),
    Word(r"(?-i:is|are|was|were) no (?!longer\b|more\b|less\b)", "is not a", r"\bthere (is|are|was|were) no\b"),
    Word(r"stands? (for|in)\b", "represent, replace, be in"),
    Word(r"beside\b", "next to, in addition to", r"[\"'{/]beside\b|\bbeside:"),
    Word(r"hand(s|ed)? on\b", "pass on"),
    Word(r"another's\b", "of another owner", r"\banother's replies\b"),
    Word(r"of one's\b|one's own\b", "your own"),
    Word(r"(to|may|can) be had\b", "available"),
    Word(r"and so (is|are|does|do)\b", "as is, as does"),
    Word(r"whose (the|a) (cluster|lab|request|directory) is\b", "the owner of"),
    Word(r"what [a-z' ]{1,30} (is|are) made of\b", "parts, contents"),
    Word(r"hence\b", "so, therefore", r"\bhence (conflicting|cannot)\b"),
    Word(r"shall\b", "must"),
    Word(r"room (for|left)\b|no room\b|enough room\b", "space"),
    Word(r"once more\b", "again"),
    Word(r"at (its|their) moments?\b", "when it is triggered"),
    Word(r"(for want of|in vain|meant to have)\b", "a plain statement"),
    Word(r"needed (is|are)\b", "Requirements:"),
    Word(r"must be text\b", "must be a string"),
    Word(
        r"refused (is|are) ",
        "Not supported:",
        r"\w+ (that|which|it) (is|are) refused (is|are) |(?<=[a-z,] )refused (is|are) ",
    ),
    Word(r"(the|an) own\b", "the built-in, its own"),
    Word(r"knows? no more\b", "has nothing else to compare"),
    Word(r"can be it\b", "the thing by its name"),
    Word(r"is one more of\b", "is an additional"),
    Word(r"(took|takes?) [a-z `]{1,30} for done\b", "treats as successful"),
)
NAMES = re.compile(
    r"\b(TAKEN_ALONG|Doors|Bodies|Played|Talk|_lives|test_\w*_(is_none|are_none|for_ever|goes_on)(_\w+)?)\b"
)
# Words of identifiers: of all, and in addition of tests, whose names are sentences.
IDENTIFIERS = re.compile(
    r"roads?|judg(e|es|ed|ing)|mend(s|ed|ing)?|wish(es|ed)?|anew|whoever|namesakes?|patience|people|(no|some|any|every)body|strangers?|"
    r"tells?|hears?|heard|speaks?|born|forgets|forgotten|frozen|together|insist|ailing"
)
# Whole names of functions, arguments and local variables of programs; a field of a file that is written keeps its name.
PARTICIPLES = re.compile(r"_?(said|told|asked)", re.IGNORECASE)
IN_TESTS = re.compile(r"says?|said|told|moments?|beside|forget|(?!together)(?:" + IDENTIFIERS.pattern + ")")


def test_prose() -> None:
    """All words at once: where any of them is in a file, its line is compared with each, and only then the file is parsed."""
    any_of = re.compile(r"\b(?:" + "|".join(word.avoid for word in WORDS) + ")")
    found = []
    for name in files():
        lowered = text(name).lower()
        starts = {lowered.rfind("\n", 0, match.start()) + 1 for match in any_of.finditer(lowered)}
        if any(avoided(text(name)[start:].partition("\n")[0]) for start in starts):
            found += [f"{name}:{number}: {problem}" for number, line in prose(name) for problem in avoided(line)]
    assert not found, "\n".join(found)


def avoided(line: str) -> list[str]:
    """Return what is wrong with a line of prose."""
    return [
        f"{match[0]!r}, write {say!r}: {line.strip()[:120]}"
        for avoid, say, allowed in patterns()
        for match in avoid.finditer(line)
        if not any(
            context.start() < match.end() and match.start() < context.end() for context in allowed.finditer(line)
        )
    ]


@cache
def patterns() -> list[tuple[re.Pattern[str], str, re.Pattern[str]]]:
    """Return `WORDS`, compiled."""
    return [
        (
            re.compile(rf"\b(?:{word.avoid})", re.IGNORECASE),
            word.say,
            re.compile(word.allowed or r"(?!)", re.IGNORECASE),
        )
        for word in WORDS
    ]


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("The road is mended.", 2),
        ("Needed are git and make.", 1),
        ("There is none, and it is none: is None.", 1),
        ("It is NO mistake; it is no mistake; it is no longer one; there is no way to it.", 2),
        ("chown nobody:nogroup, which nobody reads", 1),
        ("broad, amended, prejudged, foretells", 0),
    ],
)
def test_the_rule(line: str, count: int) -> None:
    assert len(avoided(line)) == count
    assert not count or re.search(r"\b(?:" + "|".join(word.avoid for word in WORDS) + ")", line.lower())


def test_names() -> None:
    found = [
        f"{name}:{number}: {match[0]}"
        for name in files()
        if name.endswith(".py")
        for number, line in enumerate(text(name).splitlines(), 1)
        for match in NAMES.finditer(line)
    ]
    assert not found, "\n".join(found)


def test_words_of_names() -> None:
    word = re.compile(r"\b(?!frozen=True)[A-Za-z_]\w+")
    found = [
        f"{name}:{number}: {identifier}"
        for name in files()
        if name.endswith(".py")
        if any(map(unusual, set(word.findall(text(name)))))  # only then the file is parsed
        for number, identifier in identifiers(text(name))
        if unusual(identifier)
    ]
    assert not found, "\n".join(found)


def test_names_of_variables() -> None:
    """A reader has to guess whose words they are: they are an output, a message, a reason, what is requested or reported."""
    found = [
        f"{name}:{number}: {identifier}"
        for name in files()
        if name.endswith(".py") and name.startswith(("payload/", "plugins/"))
        if PARTICIPLES.search(text(name))
        for number, identifier in variables(text(name))
        if PARTICIPLES.fullmatch(identifier)
    ]
    assert not found, "\n".join(found)


def variables(source: str) -> Iterator[tuple[int, str]]:
    """Each name of a function or an argument, and each of a variable where it is set, also of objects, with its line."""
    tree = ast.parse(source)
    fields = {
        id(node.target)
        for one in ast.walk(tree)
        if isinstance(one, ast.ClassDef)
        for node in one.body
        if isinstance(node, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields:
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def test_the_rule_of_variables() -> None:
    source = "class Unit:\n    said: str\n    def told(self, asked): self._said = _TOLD = asked\n"
    found = {name for __, name in variables(source) if PARTICIPLES.fullmatch(name)}
    assert found == {"told", "asked", "_TOLD", "_said"}


def identifiers(source: str) -> Iterator[tuple[int, str]]:
    """Each name of a function, class, argument or constant, with its line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id.isupper():
            yield node.lineno, node.id


@cache
def unusual(identifier: str) -> bool:
    """Return whether one of an identifier's words is to be another one."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)
    pattern = IN_TESTS if identifier.startswith("test_") else IDENTIFIERS
    return any(pattern.fullmatch(word.lower()) for word in words)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("class FrozenHost: ...\ndef on_road(strangers): ...\nTOLD, TELL_ALL = 1, 2", 4),
        ("def test_it_says_so(): ...\ndef say(said): ...\nasync def test_they_come_together(): ...", 1),
        ("@dataclass(frozen=True)\nclass Broad: ...\ntold = stream.tell()", 0),
    ],
)
def test_the_rule_of_names(source: str, count: int) -> None:
    assert sum(unusual(name) for __, name in identifiers(source)) == count


def test_lines_of_documentation() -> None:
    """They have at most 120 characters, but for pictures and commands; headings can be linked to; a cell has one sentence."""
    found = []
    for name in files():
        if not name.endswith(".md") or GENERATED.search(name) or name.startswith((".github/", "tests/")):
            continue
        code = False
        for number, line in enumerate(text(name).splitlines(), 1):
            code ^= line.startswith("```")
            if len(line) > WIDTH and not code and not LINKS.search(line):
                found.append(f"{name}:{number}: {len(line)} characters")
            if re.fullmatch(r"\*\*[^*]+(\*\*:?|\?\*\*.*)", line.strip()):
                found.append(f"{name}:{number}: a heading in bold: {line.strip()}")
            if SENTENCES.search(line) and not code:
                found.append(f"{name}:{number}: a cell with more than one sentence: {line.strip()}")
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
