"""Text that comes from outside, made safe to keep and to show.

Card numbers are cut to their first six and last four digits, control characters and lone
surrogates become spaces, and everything is bounded. Ids and amounts never pass through here.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator

MESSAGE_CHARACTERS_MAX = 300
LUHN_NINE = 9
WHOLE_WORD_CHARACTERS_MIN = 6

_CARD = re.compile(r"(?<![0-9A-Za-z])[0-9](?:[ -]?[0-9]){12,18}(?![0-9A-Za-z])", re.ASCII)
LONG_DIGIT_RUN = re.compile(r"[0-9](?:[ -]?[0-9]){10,}", re.ASCII)
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_CODE = re.compile(
    r"(?P<code>[A-Z]{0,3}[0-9]{2,8}(?=[:_]|$)|[A-Za-z0-9]{1,16}(?=:))(?:[:_](?P<text>.*))?",
    re.ASCII | re.DOTALL,
)


def scrubbed(text: str, *, keep: Iterable[str] = ()) -> str:
    """The text with card numbers masked, on one line, at most MESSAGE_CHARACTERS_MAX long."""
    line = _UNSAFE.sub(" ", text).strip()
    cut = line[:MESSAGE_CHARACTERS_MAX]
    # Masked before the cut as well, so that a cut cannot hide a number from the pattern.
    return masked_cards(line, keep=keep)[:MESSAGE_CHARACTERS_MAX] if cut else ""


def masked_card(text: str) -> str:
    """A field that holds a card: whole numbers are cut even when their check digit is wrong."""
    return LONG_DIGIT_RUN.sub(lambda found: _cut(re.sub(r"[ -]", "", found[0])), scrubbed(text))


def masked_cards(text: str, *, keep: Iterable[str] = ()) -> str:
    """The text with each run of 13 to 19 digits that passes the Luhn check masked.

    Args:
        text: Any text.
        keep: Ids of our own that may look like a card number and stay as they are.
    """
    kept = frozenset(keep)

    def mask(found: re.Match[str]) -> str:
        digits = re.sub(r"[ -]", "", found[0])
        if found[0] in kept or not has_check_digit(digits):
            return found[0]
        return _cut(digits)

    return _CARD.sub(mask, text)


def _cut(digits: str) -> str:
    return f"{digits[:6]}{'*' * (len(digits) - 10)}{digits[-4:]}"


def masked_values(text: bytes, *, values: Collection[str]) -> bytes:
    """Text with each of these values masked, as JSON writes them and as they are.

    A value of less than WHOLE_WORD_CHARACTERS_MIN characters is masked only between quotes, and
    the name of a JSON field never is.
    """
    written = {form for value in values for form in _written(value)}
    if not written:
        return text
    found = b"|".join(sorted(written, key=lambda form: (-len(bytes(form)), form)))
    pattern = rb"(?<![0-9A-Za-z])(?:" + found + rb')(?![0-9A-Za-z])(?!"\s*:)'
    return re.sub(pattern, lambda match: b'"***"' if match[0][:1] == b'"' else b"***", text)


def _written(value: str) -> Iterator[bytes]:
    for form in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        word = re.escape(form.encode(errors="surrogatepass"))
        yield word if len(value) >= WHOLE_WORD_CHARACTERS_MIN else b'"' + word + b'"'


def code_and_text(message: str) -> tuple[str, str]:
    """A message of the form `<code>:<text>` in its parts; no code gives ("", message)."""
    found = _CODE.fullmatch(message.strip())
    if found is None:
        return "", message.strip()
    return found["code"], (found["text"] or "").strip()


def has_check_digit(digits: str) -> bool:
    """Whether digits end in the check digit of a card number (Luhn)."""
    total = 0
    for position, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + position % 2)
        total += value - LUHN_NINE if value > LUHN_NINE else value
    return total % 10 == 0
