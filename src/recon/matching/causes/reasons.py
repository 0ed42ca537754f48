"""Why a break is open, as one sentence that finance can read.

A code has one sentence for each way in which a set comes to it; the first whose condition holds is
told. Every number in it is one of the set's own rows, or the sum of such, of the side that the
sentence names.
"""

from collections.abc import Mapping
from string import Formatter

import pandas as pd

from recon.matching.causes.reason_clauses import CLAUSES
from recon.matching.causes.reason_facts import Facts, facts_of
from recon.matching.causes.reason_rows import rows_of_sets
from recon.matching.causes.sentence import Sentence
from recon.matching.causes.sentences_of_books import OF_BOOKS
from recon.matching.causes.sentences_of_moves import OF_MOVES
from recon.matching.causes.sentences_of_payments import OF_PAYMENTS
from recon.matching.frames.sources import Sources
from recon.matching.judging.outcomes import Outcomes
from recon.matching.sets.joined_sets import Joined
from recon.model.words import BreakCode

SENTENCES: Mapping[BreakCode, tuple[Sentence, ...]] = {**OF_PAYMENTS, **OF_MOVES, **OF_BOOKS}
"""Of every code; the last sentence of each holds without a condition."""
_NAMED: Mapping[str, tuple[str, ...]] = {
    sentence.words: tuple(name for _, name, _, _ in Formatter().parse(sentence.words) if name)
    for sentences in SENTENCES.values()
    for sentence in sentences
}
"""What each sentence says of a break: only that is put into words."""


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
    shown = {name: _told(name, facts=facts) for name in _NAMED[sentence.words]}
    return sentence.words.format(**shown)


def sentence_of(code: BreakCode, *, facts: Facts) -> Sentence:
    """The first sentence of the code that holds."""
    return next(candidate for candidate in SENTENCES[code] if candidate.holds(facts))


def _told(name: str, *, facts: Facts) -> str:
    """A word of a sentence; one that begins the sentence is written with a capital."""
    plain = name.lower()
    clause = CLAUSES.get(plain)
    text = clause(facts) if clause else facts.money(getattr(facts, plain))
    return text if plain == name else text[:1].upper() + text[1:]
