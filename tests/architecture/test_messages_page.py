"""docs/MORNING.md, "At 3 a.m.", quotes no message that no program says any more."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "recon"
PAGE = (ROOT / "docs" / "MORNING.md").read_text(encoding="utf-8")


def quoted():
    """The words of each message that the page names, `…` for what differs."""
    section = PAGE.split("### By its first words")[1].split("\n### ")[0]
    heads = re.findall(r"^- ((?:`[^`]+`(?:,\s+)?)+):", section, re.MULTILINE)
    return [words for head in heads for words in re.findall(r"`([^`]+)`", head)]


def text_of(node):
    """A text as the source has it, `…` for what is put in."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            told = [text_of(part) if isinstance(part, ast.Constant) else "…" for part in parts]
            return "".join(told)
    return ""


@pytest.mark.parametrize("words", quoted())
def test_what_the_page_quotes_is_said_somewhere(words):
    pieces = [piece for piece in words.split("…") if piece.strip()]
    texts = _everything()
    assert all(any(piece in text for text in texts) for piece in pieces), words


@cache
def _everything():
    return [
        text
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant | ast.JoinedStr) and (text := text_of(node))
    ]
