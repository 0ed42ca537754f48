"""Why a break is open, as one sentence that finance can read.

codes.toml has one sentence for each way in which a set comes to a code; the first whose condition
holds is told. Every number in it is one of the set's own rows, or the sum of such, of the side that
the sentence names.
"""

from collections.abc import Mapping
from itertools import repeat
from string import Formatter
from typing import NamedTuple

import pandas as pd

from recon.matching.causes.reason_clauses import CLAUSES
from recon.matching.causes.reason_facts import FACTS, NETS, Facts, facts_of
from recon.matching.causes.reason_rows import rows_of_sets
from recon.matching.codes import CODES, Code, Template
from recon.matching.expressions import Condition, condition_of
from recon.matching.frames.sources import Sources
from recon.matching.judging.outcomes import Outcomes
from recon.matching.sets.joined_sets import Joined
from recon.model.errors import Defect
from recon.model.words import BreakCode

_SAYABLE = {*CLAUSES, *NETS, *(name for name, kind in FACTS.items() if kind is int)}
"""What a sentence may name: clauses and amounts."""


class Sentence(NamedTuple):
    """A sentence of codes.toml, ready to be said."""

    text: str
    holds: Condition
    named: tuple[str, ...]
    """What it says of a break: only that is put into words."""


def sentences_of(codes: Mapping[BreakCode, Code]) -> Mapping[BreakCode, tuple[Sentence, ...]]:
    """The sentences of every code, whose conditions and names are known.

    Raises:
        Defect: a sentence names a fact or a clause that is not there, with its code.
    """
    return {name: tuple(map(_ready, code.say, repeat(name))) for name, code in codes.items()}


def _ready(written: Template, code: BreakCode) -> Sentence:
    named = tuple(name for _, name, _, _ in Formatter().parse(written.text) if name)
    if unknown := [name for name in named if name.lower() not in _SAYABLE]:
        msg = f"codes.toml, {code}: there is no clause or amount {unknown[0]!r}"
        raise Defect(msg)
    try:
        condition = condition_of(written.when or "True", facts=FACTS)
    except ValueError as error:
        msg = f"codes.toml, {code}: {error}"
        raise Defect(msg) from error
    return Sentence(written.text, condition, named)


SENTENCES = sentences_of(CODES)


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
    sentence = sentence_of(code, facts=facts)
    shown = {name: _told(name, facts=facts) for name in sentence.named}
    return sentence.text.format(**shown)


def sentence_of(code: BreakCode, *, facts: Facts) -> Sentence:
    """The first sentence of the code that holds."""
    return next(candidate for candidate in SENTENCES[code] if candidate.holds(facts))


def _told(name: str, *, facts: Facts) -> str:
    """A word of a sentence; one that begins the sentence is written with a capital."""
    plain = name.lower()
    clause = CLAUSES.get(plain)
    text = clause(facts) if clause else facts.money(getattr(facts, plain))
    return text if plain == name else text[:1].upper() + text[1:]
