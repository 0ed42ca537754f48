"""The runner itself can fail: each way in which a night can differ is told, and no other."""

from collections.abc import Mapping

import pytest

from tests.scenarios.runner.folder import Expected, ScenarioError, scenario_of
from tests.scenarios.runner.merchant import Stated
from tests.scenarios.runner.play import Night, facts
from tests.scenarios.runner.sheets import Results

BREAKS = [
    ("Order or batch", "Code", "Ccy", "Money at risk", "Why", "Key"),
    (
        "A-1",
        "AMOUNT_OVER",
        "EUR",
        10.0,
        "Gateway holds 100.00 EUR, the order says 90.00 EUR.",
        "b1",
    ),
]
NIGHT = Night(
    Stated("recon nightly", 3, "Breaks open: 1"),
    Results({"_run": [("verdict", "BREAKS OPEN")], "Breaks": BREAKS}),
    [{"act": "capture", "order": "A-1", "amount": "60.50 EUR"}],
)
RIGHT: Mapping[str, object] = {
    "verdict": "BREAKS OPEN",
    "ends": 3,
    "prints": ["open: 1"],
    "breaks": "order | code | at risk | why\nA-1 | AMOUNT_OVER | 10.00 EUR | 100.00 EUR, 90.00 EUR",
    "effects": "act | order | amount\ncapture | A-1 | 60.50 EUR",
}


def differences(**stated):
    """What a night that states something else is told."""
    return NIGHT.differences(Expected.of({**RIGHT, **stated}, where="here"))


def test_a_night_that_comes_to_what_is_stated_differs_in_nothing():
    """Also where a sentence has other words: its figures are compared."""
    assert differences() == ([], [])


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ({"verdict": "RECONCILED"}, "the verdict is BREAKS OPEN, not RECONCILED."),
        ({"ends": 0}, "it ended with 3, not 0."),
        ({"prints": ["open: 2"]}, "it does not say 'open: 2'."),
        ({"failing_totals": ["T4"]}, "control totals that fail: (), not ('T4',)."),
        ({"effects": ""}, "+ capture | A-1   | 60.50 EUR"),
        ({"breaks": ""}, "+ A-1   | AMOUNT_OVER | 10.00 EUR"),
        ({"breaks": "order | why\nA-1 | 90.00 EUR and 100.00 EUR"}, "- A-1   | 90.00 EUR and"),
        ({"breaks": "order | at risk\nA-1 | 10.00 EUR\nA-2 | 1.00 EUR"}, "- A-2   | 1.00 EUR"),
        ({"unverified": "order\nA-1"}, "- A-1"),
        ({"pending": "order\nA-1"}, "- A-1"),
    ],
)
def test_what_differs_is_told(stated, told):
    """Verdict, exit code, words, totals, effects, and every row of a table."""
    found, known = differences(**stated)

    assert len(found) == 1
    assert told in found[0]
    assert known == []


def test_what_is_wrong_yet_stands_aside_until_it_is_right():
    """One order's rows; where they are right, the mark itself is the difference."""
    wrong = "order | at risk\nA-1 | 0.00 EUR"

    assert differences(breaks=wrong, fails_until={"A-1": "x"}) == ([], ["A-1: x"])
    assert differences(fails_until={"A-1": "x"}) == (
        ["A-1 is right now: take its mark fails_until off"],
        [],
    )


def test_facts_are_figures_dates_ids_and_what_is_quoted():
    """In their order: figures that change their places are another sentence."""
    sentence = "Gateway holds 4,900.00 EUR, the order A-1 says '12,5' since 4 Nov 2026 (T1)."

    assert facts(sentence) == "4900.00 EUR A-1 '12,5' 4 Nov 2026 T1"
    assert facts("closed as break …. The ledger has 1 capture") == "…1"


@pytest.mark.parametrize(
    ("expect", "told"),
    [
        ("", "begins with `rule`"),
        ("rule = 'R.'", "needs one [[night]]"),
        ("rule = 'R.'\n[[night]]\nverdickt = ''", "'verdickt' is none of"),
        ("rule = 'R.'\n[[night]]\nbreaks = '''a | b\n1'''", "has not the 2 cells"),
    ],
)
def test_a_folder_that_does_not_state_what_it_must_is_refused(tmp_path, expect, told):
    """A misspelt key would be a rule that nobody holds."""
    (tmp_path / "expect.toml").write_text(expect)

    with pytest.raises(ScenarioError, match=told.replace("[", r"\[")):
        scenario_of(tmp_path)
