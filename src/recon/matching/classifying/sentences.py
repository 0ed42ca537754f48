"""The sentences of codes.toml: which one holds for a break, and how it reads.

Each leg (see Code.say) names the facts that the conditions of its sentences may ask, and the
clauses that may stand in their braces.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from string import Formatter
from typing import Any, NamedTuple

from recon.matching.classifying.table import ready
from recon.matching.codes import TABLE, CodeTable, Condition, Template
from recon.model.errors import Defect
from recon.model.money import Money
from recon.model.terms import BreakCode

SHOWN_MAX = 4
"""So many records are named one by one; how many more there are is counted."""
NOTHING = "nothing"
Clause = Callable[[Any], str]
"""Facts of a break -> text."""


class Sentence(NamedTuple):
    """A sentence that is ready to be told."""

    text: str
    holds: Condition
    named: tuple[str, ...]
    """The clauses in its braces: only these are asked."""


class Sentences:
    """What codes.toml says of the breaks of one leg.

    Raises:
        Defect: a sentence names a fact or a clause that is not there; the message names its code.
    """

    def __init__(
        self,
        of: str,
        *,
        facts: Mapping[str, type],
        clauses: Mapping[str, Clause],
        table: CodeTable = TABLE,
    ) -> None:
        self._clauses = clauses
        self.of_codes: Mapping[BreakCode, tuple[Sentence, ...]] = {
            code: sentences_of(row.say[of], of=code, facts=facts, clauses=clauses)
            for code, row in table.codes.items()
            if of in row.say
        }

    def reason(self, code: str, facts: Any, /) -> str:
        """Why a break with this primary code is open."""
        return first_text(self.of_codes[BreakCode(code)], facts=facts, clauses=self._clauses)


def sentences_of(
    templates: Iterable[Template],
    *,
    of: str,
    facts: Mapping[str, type],
    clauses: Mapping[str, Clause],
) -> tuple[Sentence, ...]:
    """Some templates of codes.toml, checked.

    Raises:
        Defect: one names a fact or a clause that is not there; the message names `of`.
    """
    sentences = []
    for template in templates:
        named = tuple(name for _, name, _, _ in Formatter().parse(template.text) if name)
        if unknown := [name for name in named if name.lower() not in clauses]:
            msg = f"codes.toml, {of}: there is no clause or amount {unknown[0]!r}"
            raise Defect(msg)
        holds = ready(template.when or "True", facts=facts, of=of)
        sentences.append(Sentence(template.text, holds, named))
    return tuple(sentences)


def as_text(sentence: Sentence, *, facts: Any, clauses: Mapping[str, Clause]) -> str:
    """A sentence with its clauses; a name with a capital begins it."""
    texts = {}
    for name in sentence.named:
        text = clauses[name.lower()](facts)
        texts[name] = text if name.islower() else text[:1].upper() + text[1:]
    return sentence.text.format(**texts)


def first_text(sentences: Iterable[Sentence], *, facts: Any, clauses: Mapping[str, Clause]) -> str:
    """The first of some sentences that holds."""
    sentence = next(one for one in sentences if one.holds(facts))
    return as_text(sentence, facts=facts, clauses=clauses)


def money(amount: int | None, *, currency: str) -> str:
    """An amount as people read it; `nothing` for none and for one without a currency."""
    if amount is None or not currency:
        return NOTHING
    return str(Money.of_minor_units(amount, currency=currency))


def amount_of(name: str, *, currency: str = "currency", unsigned: bool = False) -> Clause:
    """The clause of an amount, by the names of the facts that hold it and its currency."""

    def clause(facts: Any) -> str:
        amount: int | None = getattr(facts, name)
        if amount is not None:
            amount = abs(int(amount)) if unsigned else int(amount)
        return money(amount, currency=getattr(facts, currency))

    return clause


def listed(items: Sequence[str]) -> str:
    """`a, b and c`; of many the first, and how many more."""
    if len(items) > SHOWN_MAX:
        items = [*items[: SHOWN_MAX - 1], f"{len(items) - SHOWN_MAX + 1} more"]
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))
