import pytest

from reports.sheets.words import proof_words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "orders: file = accounts + unassigned",
            "order files: rows in all files = rows given to an account + rows given to none",
        ),
        (
            "orders a: b.csv: read = accepted + rejected + skipped",
            "a: b.csv: rows read = accepted + rejected + skipped",
        ),
        (
            "b.csv stored: accepted = new + repeat + superseding",
            "b.csv: rows accepted = new + repeats + newer versions, as stored",
        ),
        (
            "orders taken: accepted = new + repeat + superseding",
            "order files: rows = compared + repeats + replaced by newer",
        ),
        (
            "keys = found + not found + failed",
            "orders asked = found + not known + no usable answer",
        ),
        (
            "gateway: in scope = matched + pending + broken + unverified",
            "gateway: all = matched + waiting + breaks + not verified",
        ),
        (
            "gateway and payouts - ledger = effects",
            "gateway and payouts less ledger = explained by the sheets",
        ),
        ("ledger: places = items", "ledger: every record stands in exactly one place"),
        ("sheet = database, break", "rows of this workbook = database: break"),
        (
            "sheet = database, match by not_compared",
            "rows of this workbook = database: matched, not compared",
        ),
        ("written off = agreed by two people", "written off = agreed by two people"),
        ("{0} a name with braces", "{0} a name with braces"),
    ],
)
def test_a_proof_is_said_in_the_words_of_finance(name: str, words: str) -> None:
    """The engine's names become finance's; one that is plain already stands as it is."""
    assert proof_words(name) == words
