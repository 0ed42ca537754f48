"""Every word with which a night judges is shown by a scenario."""

import re
from pathlib import Path

from recon.model.terms import BreakCode, Flag, UnverifiedReason

HERE = Path(__file__).parent
NEVER_GIVEN = {UnverifiedReason.SIGNATURE_INVALID, UnverifiedReason.ECHO_MISMATCH}
"""No code gives these reasons: such an answer is none, QUERY_FAILED."""
WORDS = [word for word in (*BreakCode, *Flag, *UnverifiedReason) if word not in NEVER_GIVEN]


def expected_words():
    """All words of all expect.toml, but for why something is not as it must be yet."""
    texts = (path.read_text(encoding="utf-8") for path in HERE.rglob("expect.toml"))
    return {
        word
        for text in texts
        for line in text.splitlines()
        if not line.startswith(("rule", "fails_until"))
        for word in re.findall(r"\w+", line)
    }


def test_every_code_flag_and_reason_is_named_by_a_scenario():
    """What none names could change unseen: a new one comes with its scenario."""
    assert sorted(word.value for word in WORDS if word.value not in expected_words()) == []


def test_what_no_scenario_can_show_names_its_test():
    """The list in README.md is worth something only where the tests that it names exist."""
    tests = re.findall(r"`(tests/[\w/.]+)`", (HERE / "README.md").read_text(encoding="utf-8"))

    assert tests
    assert [test for test in tests if not (HERE.parents[1] / test).exists()] == []
