from types import SimpleNamespace

import pytest

from recon.matching.codes import condition_of

FACTS = {"taken": int, "back": int, "state": str, "covered": bool}
KNOWN = SimpleNamespace(taken=100, back=30, state="paid", covered=True)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("covered", True),
        ("not covered", False),
        ("0 < back <= taken", True),
        ("0 < back < 30", False),
        ("taken >= 100 and back > 30", False),
        ("taken > 100 or back == 30", True),
        ("not (taken > 100 or back == 30)", False),
        ("state in ('paid', 'refunded') and back != 0", True),
        ("state not in ('paid', 'refunded')", False),
        ("state == 'paid'", True),
        ("state != ''", True),
        ("covered == False", False),
        ("True", True),
    ],
)
def test_a_condition_says_what_python_would(text: str, *, holds: bool) -> None:
    """Chains, brackets and lists of words mean what they mean in Python."""
    assert condition_of(text, facts=FACTS)(KNOWN) is holds
    assert bool(eval(text, {}, vars(KNOWN))) is holds  # noqa: S307 - the judge of these texts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no condition"),
        ("taken >", "is no condition"),
        ("refunded > 0", "no fact 'refunded'"),
        ("taken", "neither true nor false"),
        ("state and covered", "neither true nor false"),
        ("taken > 'paid'", "cannot be compared"),
        ("state > 'a'", "cannot be compared"),
        ("state in (1, 2)", "cannot be compared"),
        ("state in 'paid'", "cannot be compared"),
        ("taken is 1", "cannot be compared"),
        ("state in ('paid', 1)", "is no fact, number or text"),
        ("taken + 1 > back", "is no fact, number or text"),
        ("state.upper() == 'PAID'", "is no fact, number or text"),
        ("taken > 1.5", "is no fact, number or text"),
        ("covered if taken else covered", "is no fact, number or text"),
    ],
)
def test_what_is_no_condition_is_refused(text: str, said: str) -> None:
    """Nothing else is evaluated, and a comparison that could never mean anything is an error."""
    with pytest.raises(ValueError, match=said):
        condition_of(text, facts=FACTS)
