"""The field's English: words that this project does not use, in documentation, messages, comments, names and tests.

`WORDS` is the table: what to avoid, what to write instead, and contexts in which it is right. Prose is the whole text of Markdown, YAML, shell
and other files, and comments and strings of Python. Names of Python are also read as sentences: `is_no_list` is `is no list`.
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
    r"\.(lock|svg|png|xz|gz|iso|bin|ico|jsonl)$|^LICENSE$|^tests/recorded/|/golden/|/reference/"
    r"|^changelogs/changelog\.yaml$|^CHANGELOG\.rst$|^tests/lint/test_words\.py$"
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
    Word(r"(has|have) not(?=[,:.;\"`]|$| (the|an?|all|any)\b)", "has no X, X is missing"),
    Word(r"(has|have) not ended (within|after)\b", "timed out after"),
    Word(r"(does|do|is (the|an?) [^,.;]+ of [^,.;]+), too\b", "also, duplicates"),
    Word(r"names? no\b", "has no X, X is missing"),
    Word(r"(do|does) without\b", "does not need, instead"),
    Word(r"nothing is asked\b", "no request is sent"),
    Word(r"looked at\b", "checked, inspected"),
    Word(r"no [a-z]+ has the name\b", "unknown X"),
    Word(r"which is not there\b", "does not exist"),
    Word(r"carr(y|ies|ied) out\b", "run, perform"),
    Word(r"(do|does|did) the steps\b", "perform the steps"),
    Word(r"take the media out\b", "eject the media"),
    Word(r"reloaded are\b", "X that can be reloaded:"),
)
# In addition, words of names: of functions, classes, arguments and constants, and of tests, whose names are sentences.
OF_NAMES = re.compile(r"strangers?|say|saying|heard|frozen|together|insist|ailing")
OF_TESTS = re.compile(r"strangers?|said|told|moments?|say|saying|heard|frozen|insist|ailing")
# Whole names of functions, arguments and local variables: of all, and of programs; a field of a file that is written keeps its name.
VARIABLES = re.compile(r"_?(say|said)", re.IGNORECASE)
OF_PROGRAMS = re.compile(rf"{VARIABLES.pattern}|_?(told|asked)", re.IGNORECASE)
# Whole names of functions and classes of programs that do not name what is defined: prepositions, adverbs and pronouns; `X.of` constructs.
GRAMMAR = re.compile(
    r"_*(about|above|across|after|again|alone|along|also|always|and|anything|around|aside|at|before|behind|below|between|both|down|elsewhere|"
    r"everywhere|few|for|from|good|here|how|in|inside|into|later?|least|less|maybe|meanwhile|mine|more|most|near|never|nothing|nowhere|of|off|once|"
    r"one|or|others?|ours?|out|outside|over|own|same|since|some|something|still|such|theirs?|then|there|these|things?|this|those|twice|under|"
    r"until|via|what|when|where|which|who|whole|why|with|within|without|wrong)",
    re.IGNORECASE,
)
# Participles, which name neither an action nor its result: of the classes, and of the functions that other modules call. A case of the
# conformance suite is named as its id, `discovery/aggregated`.
PARTICIPLES = re.compile(
    r"_?(?!(?i:need|feed|seed|speed|embed|keepalived|aggregated)$)([A-Za-z][a-z]*ed|(?i:begun|broken|built|caught|chosen|done|drawn|driven|"
    r"fallen|found|given|gone|held|hidden|kept|known|laid|left|lost|made|seen|sent|shown|spoken|taken|worn|written))"
)


def test_prose() -> None:
    """All words at once: where any of them is in a file, its line is compared with each, and only then the file is parsed."""
    found = []
    for name in files():
        lowered = text(name).lower()
        starts = {lowered.rfind("\n", 0, match.start()) + 1 for match in any_word().finditer(lowered)}
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
def any_word() -> re.Pattern[str]:
    """Return a pattern of all words in lower case, for a quick first look."""
    return re.compile(r"\b(?:" + "|".join(word.avoid for word in WORDS) + ")")


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
        (
            "A host has not. It has not the port; it has not yet one: names no host, does without, is the name of a host, too",
            5,
        ),
        ("broad, amended, prejudged, foretells", 0),
    ],
)
def test_the_rule(line: str, count: int) -> None:
    assert len(avoided(line)) == count
    assert not count or any_word().search(line.lower())


def test_words_of_names() -> None:
    word = re.compile(r"\b(?!frozen=True)[A-Za-z_]\w+")
    found = [
        f"{name}:{number}: {identifier}: {', '.join(avoided(sentence(identifier)))}"
        for name in files()
        if name.endswith(".py")
        if any(map(unusual, set(word.findall(text(name)))))  # only then the file is parsed
        for number, identifier in {*identifiers(text(name)), *variables(text(name))}
        if unusual(identifier)
    ]
    assert not found, "\n".join(sorted(found))


def test_names_of_definitions() -> None:
    found = [
        f"{name}:{number}: {identifier}"
        for name in files()
        if name.endswith(".py") and name.startswith(("ci/", "payload/", "plugins/"))
        for number, identifier in grammatical(text(name))
    ]
    assert not found, "\n".join(found)


def grammatical(source: str) -> Iterator[tuple[int, str]]:
    """Yield definitions whose name is a preposition, an adverb or a pronoun; classes and public functions with a participle."""
    tree = ast.parse(source)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in ast.walk(tree):
        inner = node.body if isinstance(node, ast.Module | ast.ClassDef) else []
        for one in inner:
            if not isinstance(one, kinds):
                continue
            public = isinstance(node, ast.Module) and not one.name.startswith("_")
            if (GRAMMAR.fullmatch(one.name) and not (isinstance(node, ast.ClassDef) and one.name == "of")) or (
                (public or isinstance(one, ast.ClassDef)) and PARTICIPLES.fullmatch(one.name)
            ):
                yield one.lineno, one.name


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("class Twice: ...\nclass _Lost: ...\ndef of(): ...\nasync def _once(): ...\ndef made(): ...", 5),
        ("class Need:\n    @classmethod\n    def of(cls): ...\n    def until(self): ...\n    def failed(self): ...", 1),
        ("class LostField: ...\ndef need(): ...\ndef _made():\n    def of(): ...", 0),
    ],
)
def test_the_rule_of_definitions(source: str, count: int) -> None:
    assert len(list(grammatical(source))) == count


def test_names_of_variables() -> None:
    """A reader has to guess whose words they are: they are an output, a message, a reason, what is requested or reported."""
    found = [
        f"{name}:{number}: {identifier}"
        for name in files()
        if name.endswith(".py")
        for pattern in [OF_PROGRAMS if name.startswith(("payload/", "plugins/")) else VARIABLES]
        if pattern.search(text(name))
        for number, identifier in variables(text(name))
        if pattern.fullmatch(identifier)
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
    source = "class Unit:\n    said: str\n    def told(self, asked, say): self._said = _TOLD = asked\n"
    for pattern, wanted in ((OF_PROGRAMS, {"told", "asked", "_TOLD", "say", "_said"}), (VARIABLES, {"say", "_said"})):
        assert {name for __, name in variables(source) if pattern.fullmatch(name)} == wanted


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
    """Return whether a name has a word or a phrase to avoid."""
    pattern = OF_TESTS if identifier.startswith("test_") else OF_NAMES
    line = sentence(identifier)
    return any(pattern.fullmatch(word) for word in line.split()) or bool(any_word().search(line) and avoided(line))


def sentence(identifier: str) -> str:
    """Return an identifier as prose: its words, in lower case."""
    return " ".join(re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+", identifier)).lower()


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("class FrozenHost: ...\ndef on_road(strangers): ...\nTOLD, TELL_ALL = 1, 2", 4),
        ("def test_it_says_so(): ...\ndef say(said): ...\nasync def test_they_come_together(): ...", 2),
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
