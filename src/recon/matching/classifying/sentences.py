"""The sentences of codes.toml: chooses the one that holds for a break and fills in its text.

Each comparison (see Code.say) names the facts that the conditions of its sentences may use, and the
clauses that may occur in their braces.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from string import Formatter
from typing import Any, NamedTuple

from recon.matching.classifying.table import ready
from recon.matching.codes import TABLE, CodeTable, Condition, Template
from recon.model.errors import Defect
from recon.model.money import Money
from recon.model.terms import BreakCode

DISPLAYED_MAX = 4
"""Maximum number of records named one by one; further ones are only counted."""
NOTHING = "nothing"
Clause = Callable[[Any], str]
"""Facts of a break -> text."""


class Sentence(NamedTuple):
    """A checked sentence with its compiled condition."""

    text: str
    holds: Condition
    named: tuple[str, ...]
    """Names of the clauses in its braces; only these are evaluated."""


class Sentences:
    """The sentences of codes.toml for the breaks of one comparison.

    Raises:
        Defect: a sentence names an unknown fact or clause; the message names its code.
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
            code: sentences_of(row.templates[of], of=code, facts=facts, clauses=clauses)
            for code, row in table.codes.items()
            if of in row.templates
        }

    def reason(self, code: str, facts: Any, /) -> str:
        """Return why a break with this primary code is open."""
        return first_text(self.of_codes[BreakCode(code)], facts=facts, clauses=self._clauses)


def sentences_of(
    templates: Iterable[Template],
    *,
    of: str,
    facts: Mapping[str, type],
    clauses: Mapping[str, Clause],
) -> tuple[Sentence, ...]:
    """Check and compile templates of codes.toml.

    Raises:
        Defect: one names an unknown fact or clause; the message names `of`.
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
    """Fill in a sentence; the text for a capitalised name starts with a capital."""
    texts = {}
    for name in sentence.named:
        text = clauses[name.lower()](facts)
        texts[name] = text if name.islower() else text[:1].upper() + text[1:]
    return sentence.text.format(**texts)


def first_text(sentences: Iterable[Sentence], *, facts: Any, clauses: Mapping[str, Clause]) -> str:
    """Return the text of the first sentence that holds."""
    sentence = next(one for one in sentences if one.holds(facts))
    return as_text(sentence, facts=facts, clauses=clauses)


def money(amount: int | None, *, currency: str) -> str:
    """Format an amount; `nothing` for None and for an amount without a currency."""
    if amount is None or not currency:
        return NOTHING
    return str(Money.of_minor_units(amount, currency=currency))


def amount_of(name: str, *, currency: str = "currency", unsigned: bool = False) -> Clause:
    """Make the clause of an amount from the names of the facts with the amount and its currency."""

    def clause(facts: Any) -> str:
        amount: int | None = getattr(facts, name)
        if amount is not None:
            amount = abs(int(amount)) if unsigned else int(amount)
        return money(amount, currency=getattr(facts, currency))

    return clause


def listed(items: Sequence[str]) -> str:
    """Join as `a, b and c`; of many only the first, and the number of the others."""
    if len(items) > DISPLAYED_MAX:
        items = [*items[: DISPLAYED_MAX - 1], f"{len(items) - DISPLAYED_MAX + 1} more"]
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))
