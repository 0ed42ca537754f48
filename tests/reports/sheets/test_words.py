from recon.matching.codes import CODES
from recon.model.words import UnverifiedReason, Verdict
from reports.sheets.words import UNVERIFIED_WORDS, VERDICT_WORDS, words_of


def test_every_code_has_words_of_its_own() -> None:
    """Nobody in finance meets a code without a sentence on what to do."""
    assert set(UNVERIFIED_WORDS) == set(UnverifiedReason)
    assert set(VERDICT_WORDS) == set(Verdict)
    titles = [words.title for words in CODES.values()]
    assert len(set(titles)) == len(titles)


def test_a_code_that_is_not_known_stands_for_itself() -> None:
    """A newer database does not keep an older report from being written."""
    assert words_of("NEW_CODE").title == "NEW_CODE"
