"""One case per code and flag: the rows, and what the set comes to."""

import pytest

from recon.model.terms import BreakCode, Flag
from tests.injected.word_groups import BANK_CODES, BANK_FLAGS, CASH_CODES, CASH_FLAGS
from tests.recon.matching.written_cases import OUTCOMES

pytestmark = pytest.mark.xdist_group("codes of a set")
"""They share what takes longer to make than to look at."""
SHOWN = {label for case in OUTCOMES for label in case.comes_to.replace(";", " ").split()}


@pytest.fixture(scope="module")
def outcomes(make_case, outcomes_together):
    """What every case comes to, by its name."""
    return outcomes_together({case.name: case.build(make_case()) for case in OUTCOMES})


@pytest.mark.parametrize("case", OUTCOMES, ids=lambda case: case.name.replace(" ", "-"))
def test_what_a_set_comes_to(outcomes, case):
    """Each set has one outcome; what no flag explains to the minor unit is a break of its leg."""
    assert sorted(outcomes[case.name].split(" + ")) == sorted(case.comes_to.split(" + "))


def test_every_code_and_flag_has_a_case():
    """One without a case could vanish unseen."""
    elsewhere = {Flag.NEVER_PAID, Flag.REFUNDED_BY_VOID, Flag.NOT_COMPARED}

    # What a bank says and what the gateway keeps have cases of their own.
    assert {code for code in BreakCode if code not in SHOWN} == BANK_CODES | CASH_CODES
    assert {flag for flag in Flag if flag not in SHOWN} == elsewhere | BANK_FLAGS | CASH_FLAGS
