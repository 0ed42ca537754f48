from recon.matching.codes import CODES
from recon.model.terms import Flag, UnverifiedReason, Verdict
from reports.sheets.labels import FLAG_LABELS, UNVERIFIED_LABELS, VERDICT_LABELS, label_of


def test_every_code_has_words_of_its_own():
    assert set(FLAG_LABELS) == set(Flag)
    assert set(UNVERIFIED_LABELS) == set(UnverifiedReason)
    assert set(VERDICT_LABELS) == set(Verdict)
    titles = [labels.title for labels in CODES.values()]
    assert len(set(titles)) == len(titles)


def test_a_code_that_is_not_known_stands_for_itself():
    assert label_of("NEW_CODE").title == "NEW_CODE"
