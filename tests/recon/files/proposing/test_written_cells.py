import pytest

from recon.files.proposing.written_cells import SeenCell, decided_amounts, decided_times


def amounts(*texts: str, currency: str = "EUR", **answers: str) -> tuple[dict, set[str]]:
    """Keys and questions of some amounts."""
    cells = [SeenCell(number, text, currency) for number, text in enumerate(texts, start=2)]
    decided = decided_amounts(cells, in_cents=False, answers=answers)
    return decided.keys, set(decided.questions)


@pytest.mark.parametrize(
    ("texts", "currency", "keys", "asked"),
    [
        (("10.00", "7.50"), "EUR", {}, set()),
        (("1.234,50", "7,50"), "EUR", {"decimal_sign": ",", "thousands_sign": "."}, set()),
        (("1.234", "2.500"), "KWD", {}, {"decimal_sign"}),
        (("1.234", "12345.678"), "KWD", {}, set()),
        (("1,234", "2,500"), "JPY", {"thousands_sign": ","}, set()),
        (("1234", "2500"), "EUR", {}, {"units"}),
        (("1234", "2500"), "JPY", {}, set()),
        (("1.234", "2.500"), "EUR", {"thousands_sign": "."}, {"units"}),
        (("12.34-", "7.50"), "EUR", {"minus": "behind"}, set()),
        (("10.00", "7.50", "n/a"), "EUR", {}, set()),
    ],
)
def test_an_amount_that_reads_two_ways_is_asked(
    texts: tuple[str, ...], currency: str, keys: dict[str, str], asked: set[str]
) -> None:
    """1.234 is a thousand or a decimal by its currency and its neighbours, else by a person."""
    decided, questions = amounts(*texts, currency=currency)
    assert questions == asked
    if not asked:
        assert {"decimal_sign": ".", **decided} == {"decimal_sign": ".", **keys}


def test_an_answer_decides_an_amount() -> None:
    """What a person says holds, and is asked no more."""
    assert amounts("1234", units="minor") == ({"units": "minor"}, set())


@pytest.mark.parametrize(
    ("texts", "times", "asked"),
    [
        (("03/04/2026", "05/06/2026"), None, {"times", "zone"}),
        (("03/04/2026", "25/06/2026"), "%d/%m/%Y", {"zone"}),
        (("03/04/2026", "06/25/2026"), "%m/%d/%Y", {"zone"}),
        (("03.04.2026", "05.06.2026"), "%d.%m.%Y", {"zone"}),
        (("20-11-26", "21-11-26"), None, {"times", "zone"}),
        (("26-11-26",), None, {"times", "zone"}),
        (("11/11/2026", "12/12/2026"), None, {"times", "zone"}),
        (("20/11/2026 10:30", "21/12/2026 11:00"), "%-d/%-m/%Y %-H:%M", {"zone"}),
        (("05.11.2026 09:30", "21.12.2026 11:00"), "%d.%-m.%Y %H:%M", {"zone"}),
        (("11112026", "20122026"), "%d%m%Y", {"zone"}),
        (("2026-11-20T10:00:00Z", "2026-11-20T10:00:00+02:00"), "", set()),
        (("2026-11-20T10:00:00Z", "2026-11-20T10:00:00"), "", {"zone"}),
        (("yesterday",), None, {"times"}),
    ],
)
def test_a_time_that_reads_two_ways_is_asked(
    texts: tuple[str, ...], times: str | None, asked: set[str]
) -> None:
    """Day and month change places only where a row says so; a zone is never taken for granted."""
    cells = [SeenCell(number, text) for number, text in enumerate(texts, start=2)]
    decided = decided_times(cells, dates=False, zone_of_name="", zone_matters=True, answers={})
    assert set(decided.questions) == asked
    if times is not None:
        assert decided.keys.get("times", "") == times
