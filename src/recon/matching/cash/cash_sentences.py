"""What sentences of groups and of held-back money may say (`say_of_cash` in codes.toml)."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from recon.matching.breaks.result_rows import NO_AMOUNT
from recon.matching.cash.book_groups import FEES, PAYOUTS, RESERVES
from recon.matching.causes.reasons import in_words, sentences_of
from recon.matching.codes import CODES
from recon.model.money import format_minor_units
from recon.model.words import BreakCode, Flag

_NAMES = {FEES: "fees", RESERVES: "reserves", PAYOUTS: "pay-outs"}


def reason_of(row: Mapping[str, Any]) -> str:
    """The sentence of a break of cash (see cash_findings.FINDING_COLUMNS)."""
    is_over = Flag.OVER_RELEASED.value in row["flags"].split(";")
    facts = SimpleNamespace(**row, over_released=is_over)
    sentence = next(one for one in SENTENCES[BreakCode(row["code"])] if one.holds(facts))
    return in_words(sentence, facts=facts, words=_WORDS)


def _known(amount: int) -> int:
    return 0 if amount == NO_AMOUNT else int(amount)


def _money(amount: int, *, facts: SimpleNamespace) -> str:
    return f"{format_minor_units(amount, currency=facts.currency)} {facts.currency}"


def group_of(what: str, *, name: str) -> str:
    """Of which group of the books a finding is, in words."""
    words = _NAMES[what]
    return f"{words} of {name}" if name else f"all {words} since the opening"


_WORDS: Mapping[str, Callable[[SimpleNamespace], str]] = {
    "group": lambda facts: group_of(facts.what, name=facts.name),
    "name": lambda facts: str(facts.name),
    "since": lambda facts: str(facts.since),
    # What was charged, kept or paid out, below 0 where it was given back; then how far apart.
    "settled": lambda facts: _money(-_known(facts.settled), facts=facts),
    "booked": lambda facts: _money(-_known(facts.booked), facts=facts),
    "effect": lambda facts: _money(abs(_known(facts.effect)), facts=facts),
    "exposure": lambda facts: _money(abs(_known(facts.exposure)), facts=facts),
}
SENTENCES = sentences_of(
    {code: row.say_of_cash for code, row in CODES.items()},
    facts={"what": str, "over_released": bool},
    sayable=_WORDS,
)
