"""Why a break is open, as one sentence that finance can read.

codes.toml has one sentence for each way in which a set comes to a code; the first whose condition
holds is told. Every number in it is one of the set's own rows, or the sum of such, of the side that
the sentence names.
"""

from collections.abc import Callable, Collection, Mapping
from string import Formatter
from typing import Any, NamedTuple

import pandas as pd

from recon.matching.causes.reason_clauses import CLAUSES
from recon.matching.causes.reason_facts import FACTS, NETS, Facts, facts_of
from recon.matching.causes.reason_rows import rows_of_sets
from recon.matching.codes import CODES, Template
from recon.matching.expressions import Condition, condition_of
from recon.matching.frames.sources import Sources
from recon.matching.judging.outcomes import Outcomes
from recon.matching.sets.joined_sets import Joined
from recon.model.errors import Defect
from recon.model.words import BreakCode


class Sentence(NamedTuple):
    """A sentence of codes.toml, ready to be put into words."""

    text: str
    holds: Condition
    named: tuple[str, ...]
    """What it says of a break: only that is put into words."""


def sentences_of(
    says: Mapping[BreakCode, tuple[Template, ...]],
    *,
    facts: Mapping[str, type],
    sayable: Collection[str],
) -> Mapping[BreakCode, tuple[Sentence, ...]]:
    """The sentences of every code, whose conditions and names are known.

    Args:
        says: the sentences as they are written.
        facts: what their conditions may name.
        sayable: what stands in braces.

    Raises:
        Defect: a sentence names a fact or a clause that is not there, with its code.
    """
    return {
        code: tuple(_ready(one, code, facts=facts, sayable=sayable) for one in written)
        for code, written in says.items()
    }


def _ready(
    written: Template, code: BreakCode, *, facts: Mapping[str, type], sayable: Collection[str]
) -> Sentence:
    named = tuple(name for _, name, _, _ in Formatter().parse(written.text) if name)
    if unknown := [name for name in named if name.lower() not in sayable]:
        msg = f"codes.toml, {code}: there is no clause or amount {unknown[0]!r}"
        raise Defect(msg)
    try:
        condition = condition_of(written.when or "True", facts=facts)
    except ValueError as error:
        msg = f"codes.toml, {code}: {error}"
        raise Defect(msg) from error
    return Sentence(written.text, condition, named)


def in_words(sentence: Sentence, *, facts: Any, words: Mapping[str, Callable[[Any], str]]) -> str:
    """A sentence in words; a name with a capital begins it.

    Args:
        sentence: of a code.
        facts: of the break.
        words: what each name says of the facts; only what is named is put into words.
    """
    shown = {}
    for name in sentence.named:
        text = words[name.lower()](facts)
        shown[name] = text if name.islower() else text[:1].upper() + text[1:]
    return sentence.text.format(**shown)


def _amount(name: str) -> Callable[[Facts], str]:
    return lambda facts: facts.money(getattr(facts, name))


_AMOUNTS = (*NETS, *(name for name, kind in FACTS.items() if kind is int))
_WORDS: Mapping[str, Callable[[Facts], str]] = {**{n: _amount(n) for n in _AMOUNTS}, **CLAUSES}
"""What a sentence may name: clauses and amounts."""
SENTENCES = sentences_of(
    {code: row.say for code, row in CODES.items()}, facts=FACTS, sayable=_WORDS
)


def with_reasons(
    breaks: pd.DataFrame, *, joined: Joined, sources: Sources, outcomes: Outcomes
) -> pd.DataFrame:
    """The breaks with their reason.

    Args:
        breaks: result.BREAK_COLUMNS, each with its set.
        joined: the sets that were judged.
        sources: what they were made of.
        outcomes: which break stands for two accounts.
    """
    codes = [BreakCode(code) for code in breaks["code"]]
    rows = rows_of_sets(
        codes, numbers=breaks["set"].to_numpy(), joined=joined, sources=sources, host=outcomes.host
    )
    facts = facts_of(breaks, joined=joined, rows=rows)
    sentences = [reason_of(code, facts=known) for code, known in zip(codes, facts, strict=True)]
    return breaks.assign(reason=pd.Series(sentences, index=breaks.index, dtype="str"))


def reason_of(code: BreakCode, *, facts: Facts) -> str:
    """The sentence for a code, amounts with their currency."""
    return in_words(sentence_of(code, facts=facts), facts=facts, words=_WORDS)


def sentence_of(code: BreakCode, *, facts: Facts) -> Sentence:
    """The first sentence of the code that holds."""
    return next(candidate for candidate in SENTENCES[code] if candidate.holds(facts))
