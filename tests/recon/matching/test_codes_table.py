"""What codes.toml may say."""

from types import SimpleNamespace

import pytest

from recon.matching.classifying.outcomes import table_rows_of_sets
from recon.matching.classifying.sentences import Sentences
from recon.matching.codes import CODES, condition_of, table_of
from recon.model.errors import Defect
from recon.model.terms import BreakCode

ROW = '[[code]]\nname = "{name}"\ntitle = "T"\nmeaning = "M."\nto_do = "D."\n'
WHOLE = "".join(ROW.format(name=code.value) for code in BreakCode)


def test_the_order_of_the_table_is_the_order_of_precedence():
    """Of several codes of a set the first one names its break."""
    last = ROW.format(name=BreakCode.WRONG_ACCOUNT.value)
    codes = table_of(WHOLE.replace(last, "") + last, source="t").codes

    assert [*codes][-1] is BreakCode.WRONG_ACCOUNT
    assert [*codes][:-1] == [*BreakCode][1:]
    assert [*CODES][:2] == [BreakCode.WRONG_ACCOUNT, BreakCode.DUPLICATE_ORDER_ROW]


SAID = (
    WHOLE
    + """when = [{ if = "several_payments", grace = "hard_limit" }]
templates.sets = [{ text = "One." }]
[states]
paid = "= amounts"
[words]
said = [{ text = "of it" }]
[[cause]]
codes = ["FEE_VARIANCE"]
by = ["currency"]
text = "Theirs."
"""
)


@pytest.mark.parametrize(
    ("was", "becomes", "decides"),
    [
        ("several_payments", "order_duplicate", True),
        ("hard_limit", "settlement", True),
        ("= amounts", "amounts =", True),
        ('by = ["currency"]', 'by = ["account_id"]', True),
        ('title = "T"\n', 'title = "T"\nfloor = "HIGH"\n', True),
        (ROW.format(name="WRONG_ACCOUNT"), "", True),
        ('title = "T"', 'title = "U"', False),
        ('"M."', '"N."', False),
        ('"One."', '"Two."', False),
        ('"of it"', '"of both"', False),
        ('"Theirs."', '"Ours."', False),
    ],
)
def test_what_decides_has_a_digest_and_what_is_read_another(was, becomes, *, decides):
    """A change of one leaves the digest of the other as it is; moving a code changes both."""
    moved = SAID.replace(was, becomes, 1) + (was if not becomes else "")
    before, after = table_of(SAID, source="t"), table_of(moved, source="t")

    assert (before.decides != after.decides) == decides
    assert decides or before.words != after.words
    assert not decides or not becomes or before.words == after.words


BROKEN = {
    "unknown code": (WHOLE + ROW.format(name="NEW_CODE"), r"\(NEW_CODE\): there is no such code"),
    "twice": (WHOLE + ROW.format(name="OVER_REFUND"), r"\(OVER_REFUND\): it stands 2 times"),
    "lacking": (WHOLE.replace(ROW.format(name="OVER_REFUND"), ""), "t says nothing of OVER_REFUND"),
    "no title": (WHOLE.replace('title = "T"\n', "", 1), r"code 1 \(WRONG_ACCOUNT\), title: Field"),
    "long title": (
        WHOLE.replace('"T"', f'"{"T" * 31}"', 1),
        "title: String should have at most 30",
    ),
    "risk": (WHOLE + 'risk = "all"\n', r"\(STALE_PENDING\), risk: Input should be"),
    "unknown field": (WHOLE + 'owed = "nobody"\n', r"\(STALE_PENDING\), owed: Extra inputs"),
    "floor": (WHOLE + 'floor = "URGENT"\n', r"\(STALE_PENDING\), floor: Input should be"),
    "leg": (
        WHOLE + 'when = [{ if = "covered", leg = "books" }]\n',
        r"\(STALE_PENDING\), when.0.leg: Input should be",
    ),
    "no condition": (WHOLE + 'when = [{ leg = "ledger" }]\n', r"when.0.if: Field required"),
    "unknown flag": (WHOLE + '[[flag]]\nname = "odd"\n', r"\(odd\): there is no such flag"),
    "not yes or no": (WHOLE + 'firm = "yes"\n', r"\(STALE_PENDING\), firm: Input should be"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_table_that_is_not_whole_says_where(name):
    """An unknown code or field, one that lacks or stands twice is an error that names it."""
    text, said = BROKEN[name]

    with pytest.raises(Defect, match=said):
        table_of(text, source="t")


@pytest.mark.parametrize(
    ("templates", "said"),
    [
        ('{ text = "A." }, { text = "B." }', "the last sentence, and no other"),
        ('{ if = "covered", text = "A." }', "the last sentence, and no other"),
        ('{ if = "coverd", text = "A." }, { text = "B." }', "there is no fact 'coverd'"),
        ('{ text = "It has {leger_has}." }', "there is no clause or amount 'leger_has'"),
        ('{ text = "It is {covered}." }', "there is no clause or amount 'covered'"),
    ],
)
def test_a_sentence_that_could_not_be_said_is_refused(templates, said):
    """A condition or a name that nobody knows is an error at the start, with its code."""
    with pytest.raises(Defect, match=said):
        Sentences(
            "sets",
            facts={"covered": bool},
            clauses={"ledger_has": str},
            table=table_of(f"{WHOLE}templates.sets = [{templates}]\n", source="t"),
        )


def test_every_code_says_when_it_holds_and_why_it_is_open():
    """Of sets, of groups and held-back money, or of what a bank has."""
    assert all(row.templates and all(row.templates.values()) for row in CODES.values())
    assert [code for code, row in CODES.items() if not row.when] == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('when = [{ if = "coverd" }]', "STALE_PENDING: there is no fact 'coverd'"),
        ('when = [{ if = "net_sign" }]', "STALE_PENDING: 'net_sign' is neither true nor false"),
        ('when = [{ if = "covered", grace = "a_week" }]', "there is no clock 'a_week'"),
        ('[facts]\nbooks = "alone"\nalone = "covered"', "books: there is no fact 'alone'"),
        ('[states]\npaid = "= CAPTURE_DEU"', "states, paid: there is no cell 'CAPTURE_DEU'"),
        ('[[flag]]\nname = "late"\nwhen = [{ if = "latte" }]', "late: there is no fact 'latte'"),
    ],
)
def test_a_condition_that_could_not_be_asked_is_refused(more, said):
    """A fact, a clock or a cell that nobody knows is an error at the start, with its place."""
    with pytest.raises(Defect, match=said):
        table_rows_of_sets(table_of(f"{WHOLE}{more}\n", source="t"))


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
def test_a_condition_says_what_python_would(text, *, holds):
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
def test_what_is_no_condition_is_refused(text, said):
    """Nothing else is evaluated, and a comparison that could never mean anything is an error."""
    with pytest.raises(ValueError, match=said):
        condition_of(text, facts=FACTS)
