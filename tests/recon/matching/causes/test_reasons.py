"""The reason of a break: every number in it is one of the set's own, and what it claims is so."""

import pytest

from recon.matching.causes.reasons import SENTENCES
from recon.matching.classifying import sentences
from recon.matching.classifying.sentences import as_text
from recon.model.terms import BreakCode
from tests.injected.word_groups import BANK_CODES, CASH_CODES
from tests.recon.matching.reason_claims import false_figures
from tests.recon.matching.reason_sets import a_thousand
from tests.recon.matching.written_cases import INJECTED

pytestmark = pytest.mark.xdist_group("reasons of breaks")
"""They share what takes longer to make than to look at."""


@pytest.fixture(scope="module")
def told(make_case, breaks_together):
    """The breaks of all planted sets, merchant = name; and which sentences were told."""
    chosen: set[int] = set()

    def noted(sentence, **told):
        chosen.add(id(sentence))
        return as_text(sentence, **told)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sentences, "as_text", noted)
        cases = {planted.name: planted.build(make_case()) for planted in INJECTED}
        yield breaks_together(cases), chosen


@pytest.mark.parametrize("planted", INJECTED, ids=lambda planted: planted.name)
def test_the_sentence_says_what_was_planted(told, planted):
    """Of rows whose every amount is another one, the sentence names the right ones."""
    breaks, _ = told
    mine = breaks[breaks["merchant_id"].eq(planted.name)]

    assert mine.loc[mine["code"].eq(planted.comes_to), "reason"].tolist()[:1] == [planted.said]


def test_every_sentence_of_every_code_is_planted(told):
    """A sentence that no planted truth brings about is checked by nobody."""
    _, chosen = told
    every = [(code, one) for code, several in SENTENCES.of_codes.items() for one in several]

    assert [(code, one.text) for code, one in every if id(one) not in chosen] == []
    assert {code for code, said in SENTENCES.of_codes.items() if said} == {
        *BreakCode
    } - BANK_CODES - CASH_CODES


@pytest.mark.parametrize("covered", [True, False], ids=["ledger", "no-ledger"])
def test_no_sentence_of_a_thousand_random_sets_has_a_figure_that_its_rows_do_not(
    new_case, *, covered
):
    """A reader who looks up every amount in the rows of the set finds each of them."""
    case, planted = a_thousand(new_case(), seed=1, covered=covered)
    breaks = case.run().breaks
    pairs = [*zip(breaks["merchant_id"], breaks["reason"], strict=True)]

    wrong = {
        said: found for name, said in pairs if (found := false_figures(said, rows=planted[name]))
    }

    assert wrong == {}
    assert len(breaks) > len(planted) / 2
