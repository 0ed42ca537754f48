"""Text that comes from outside, made safe to keep and to show.

Card numbers are cut to their first six and last four digits, bank accounts to `DE…3000`, control
characters and lone surrogates become spaces, and everything is bounded. Ids and amounts never pass
through here.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator

from recon.gateway_client.bank_accounts import masked_accounts

MESSAGE_CHARACTERS_MAX = 300
LOOKED_AT_CHARACTERS_MAX = 4 * MESSAGE_CHARACTERS_MAX
LUHN_NINE = 9

CARD_DIGITS_MIN = 13
CARD_DIGITS_MAX = 19
SHOWN_FIRST = 6
SHOWN_LAST = 4

_DIGITS = re.compile(r"[0-9]+", re.ASCII)
_GROUPS = re.compile(r"[0-9]+(?:[ -][0-9]+)*", re.ASCII)
LONG_DIGIT_RUN = re.compile(r"[0-9](?:[ -]?[0-9]){10,}", re.ASCII)
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_CODE = re.compile(
    r"(?P<code>[A-Z]{0,3}[0-9]{2,8}(?=[:_]|$)|[A-Za-z0-9]{1,16}(?=:))(?:[:_](?P<text>.*))?",
    re.ASCII | re.DOTALL,
)


def scrubbed(text: str, *, keep: Iterable[str] = ()) -> str:
    """The text with card numbers and IBANs masked, on one line, at most MESSAGE_CHARACTERS_MAX."""
    if len(text) < CARD_DIGITS_MIN and text.isascii() and text.isprintable():
        return text.strip()  # nothing to hide, and nine in ten fields of a reply are so short
    line = _UNSAFE.sub(" ", text[:LOOKED_AT_CHARACTERS_MAX]).strip()
    # Masked before the cut, so that a cut cannot hide a number.
    return masked_cards(masked_accounts(line), keep=keep)[:MESSAGE_CHARACTERS_MAX]


def masked_card(text: str) -> str:
    """A field that holds a card: whole numbers are cut even when their check digit is wrong."""
    return LONG_DIGIT_RUN.sub(lambda found: _cut(re.sub(r"[ -]", "", found[0])), scrubbed(text))


def masked_cards(text: str, *, keep: Iterable[str] = ()) -> str:
    """The text with every card number in it cut: 13 to 19 digits that pass the Luhn check.

    Digits may stand in groups between spaces or hyphens, with other groups before and behind.

    Args:
        text: Any text.
        keep: Ids of our own that may look like a card number and stay as they are.
    """
    kept = frozenset(keep)
    return _GROUPS.sub(lambda found: _masked_groups(found[0], kept=kept), text)


def _masked_groups(text: str, *, kept: frozenset[str]) -> str:
    """Groups of digits; whatever groups in a row could be a card lose their middle."""
    groups = [(found.start(), found.end()) for found in _DIGITS.finditer(text)]
    hidden: set[int] = set()
    for first, (start, _) in enumerate(groups):
        for last, (_, end) in enumerate(groups[first:], start=first):
            places = [at for at in range(start, end) if text[at].isdigit()]
            if len(places) > CARD_DIGITS_MAX:
                break
            if first == last and text[start:end] in kept:
                continue
            if len(places) >= CARD_DIGITS_MIN and has_check_digit(text[start:end]):
                hidden.update(places[SHOWN_FIRST:-SHOWN_LAST])
    return "".join("*" if at in hidden else character for at, character in enumerate(text))


def _cut(digits: str) -> str:
    hidden = len(digits) - SHOWN_FIRST - SHOWN_LAST
    return f"{digits[:SHOWN_FIRST]}{'*' * hidden}{digits[-SHOWN_LAST:]}"


def masked_values(text: bytes, *, values: Collection[str], word_min: int) -> bytes:
    """Text with each of these values masked, as JSON writes them and as they are.

    Args:
        text: A body, or what a message quotes of one.
        values: What must not be seen.
        word_min: A value of fewer characters is masked only between quotes; the name of a JSON
            field never is.
    """
    written = {form for value in values for form in _written(value, word_min=word_min)}
    if not written:
        return text
    found = b"|".join(sorted(written, key=lambda form: (-len(bytes(form)), form)))
    pattern = rb"(?<![0-9A-Za-z])(?:" + found + rb')(?![0-9A-Za-z])(?!"\s*:)'
    return re.sub(pattern, lambda match: b'"***"' if match[0][:1] == b'"' else b"***", text)


def _written(value: str, *, word_min: int) -> Iterator[bytes]:
    for form in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        word = re.escape(form.encode(errors="surrogatepass"))
        yield word if len(value) >= word_min else b'"' + word + b'"'


def code_and_text(message: str) -> tuple[str, str]:
    """A message of the form `<code>:<text>` in its parts; no code gives ("", message)."""
    found = _CODE.fullmatch(message.strip())
    if found is None:
        return "", message.strip()
    return found["code"], (found["text"] or "").strip()


def has_check_digit(text: str) -> bool:
    """Whether the digits of a text end in the check digit of a card number (Luhn)."""
    total = 0
    for position, digit in enumerate(found for found in reversed(text) if found.isdigit()):
        value = int(digit) * (1 + position % 2)
        total += value - LUHN_NINE if value > LUHN_NINE else value
    return total % 10 == 0
