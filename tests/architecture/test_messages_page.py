"""docs/MORNING.md, "At 3 a.m.", in step with the sentences with which a night stops."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "recon"
PAGE = (ROOT / "docs" / "MORNING.md").read_text(encoding="utf-8")
STOPS = frozenset(
    {
        *("ArchiveBrokenError", "ArchiveError", "ClusterError", "ConfigurationError"),
        *("EndorsementError", "FolderError", "GateClosedError", "HistoryBrokenError"),
        *("NightHeldError", "OutputError", "SignerError", "SpillError"),
        *("StoreError", "StoreLockedError"),
    }
)
"""With these a night ends before its end."""
ROOMS = ("archive", "steps/runtime", "steps/money", "steps/night", "store", "workers")
"""Where they come from; other rooms refuse settings, which `recon doctor` names one by one."""
ASIDE = frozenset(
    {
        *("steps/runtime/identity.py", "steps/runtime/identity.py", "steps/runtime/identity.py"),
        *("steps/money/by_hand.py", "steps/money/approve.py", "steps/night/notices.py"),
        *("store/database/migrations", "store/database/roles.py", "store/people/decision_rows.py"),
    }
)
"""What people say at the desk or by hand, what rings, and upgrades: no night stops there."""
ASKS = re.compile(
    r"(?:[:;,.(]|, or|, then|\band) (?:call|create|end|find|free|install|keep|let|look|make|name"
    r"|put|read it|restore|run|set|start|turn|two people|unset|upgrade|wait)\b"
    r"|`recon [a-z -]+` (?:makes|prints)"
)
"""How a sentence says what to do."""
WORDS_MIN = 3
"""A shorter piece of a sentence names nothing."""


def quoted() -> list[str]:
    """The words of each message that the page names, `…` for what differs."""
    section = PAGE.split("### By its first words")[1].split("\n### ")[0]
    heads = re.findall(r"^- ((?:`[^`]+`(?:,\s+)?)+):", section, re.MULTILINE)
    return [words for head in heads for words in re.findall(r"`([^`]+)`", head)]


def text_of(node: ast.expr | None) -> str:
    """A text as the source has it, `…` for what is put in."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            told = [text_of(part) if isinstance(part, ast.Constant) else "…" for part in parts]
            return "".join(told)
    return ""


def messages() -> Iterator[tuple[str, str]]:
    """Module and sentence of every error of these kinds that is raised there."""
    for path in sorted(SOURCE.rglob("*.py")):
        name = str(path.relative_to(SOURCE))
        if not name.startswith(ROOMS) or any(name.startswith(each) for each in ASIDE):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                yield from ((name, sentence) for sentence in _raised(node))


def _raised(function: ast.FunctionDef) -> Iterator[str]:
    said: dict[str, list[tuple[int, str]]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            said.setdefault(node.targets[0].id, []).append((node.lineno, text_of(node.value)))
    for node in ast.walk(function):
        if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args):
            continue
        if getattr(node.exc.func, "id", "") not in STOPS:
            continue
        given = node.exc.args[0]
        if isinstance(given, ast.Name):
            before = [text for line, text in said.get(given.id, []) if line < node.lineno]
            yield from before[-1:]
        elif text := text_of(given):
            yield text


def is_named(sentence: str, words: list[str]) -> bool:
    """Whether the page names it; a sentence that is all another one's words need not be."""
    own = max(sentence.split("…"), key=len)
    return len(own.split()) < WORDS_MIN or any(each in sentence for each in words)


def test_every_sentence_with_which_a_night_stops_says_what_to_do_or_the_page_does():
    """Whoever is called knows the next step from the sentence, or finds its words."""
    words = quoted()
    helpless = [
        f"{name}: {text}"
        for name, text in messages()
        if not ASKS.search(text) and not is_named(text, words)
    ]
    assert helpless == []
    assert not ASKS.search("the database was set aside: nothing stands there to be read")
    assert not is_named("the moon is not where it was", words)


@pytest.mark.parametrize("words", quoted())
def test_what_the_page_quotes_is_said_somewhere(words):
    """No message stands on the page that no program says any more."""
    pieces = [piece for piece in words.split("…") if piece.strip()]
    texts = _everything()
    assert all(any(piece in text for text in texts) for piece in pieces), words


@cache
def _everything() -> list[str]:
    return [
        text
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant | ast.JoinedStr) and (text := text_of(node))
    ]
