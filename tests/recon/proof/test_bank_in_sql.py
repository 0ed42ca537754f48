"""T12, T15, T16, T17 and T19 of the bank: each side is broken once and seen to fail."""

import pytest

from recon.config.rules import Rules
from recon.matching.bank.result import AT_RATE, EXCHANGED
from recon.matching.breaks.result import EXPLAINED, RECEIVED
from recon.proof.totals_in_sql import OF_BANKS, sql_totals, totals_of_agreement
from tests.recon.matching.bank.cases import Case
from tests.recon.proof.night_folders import (
    PLACE,
    Change,
    changed,
    first_off,
    night_of,
    proven_in,
    statements_of,
    without,
    without_first,
    written,
)

pytestmark = pytest.mark.xdist_group("control totals")
NUMBERS = {"T15", "T16", "T17"}


@pytest.fixture(scope="module")
def bank_night():
    """Less than was paid, in transit, less charges, from before, exchanged, twice, unknown."""
    case = Case().paid("BATCH-01", 10_000).came("BATCH-01", 9_750)
    case.paid("BATCH-02", 500, on="2026-11-30").paid("BATCH-03", 700, on="2026-10-01")
    case.paid("BATCH-04", 800).came("BATCH-04", 780, charges=-20)
    case.paid("BATCH-05", 1_000, currency="USD")
    case.came("BATCH-05", 900, instructed_currency="USD", instructed_amount=1_000)
    case.paid("BATCH-06", 650).came("BATCH-06", 650).came("BATCH-06", 650)
    case.came("nothing", 310, counterparty="Gateway")
    return exchanged(case).compared()


def exchanged(case):
    """One less than by its rate, one by it but for what is allowed, a yen's half, one without."""
    case.rules = {
        "rate": {
            "USD.EUR": {
                "on": {"2026-11-09": "0.5", "2026-11-10": "0.9", "2026-11-13": "0.2"},
                "basis_points": 10,
            },
            "JPY.EUR": {"on": {"2026-11-11": "0.00615"}, "basis_points": 10},
        }
    }
    case.paid("BATCH-07", 1_005, currency="USD").came("BATCH-07", 900)
    case.paid("BATCH-08", 10_000, currency="USD").came("BATCH-08", 9_009)
    case.paid("BATCH-09", 11, currency="JPY").came("BATCH-09", 7)
    case.paid("BATCH-10", 70, currency="JPY").came("BATCH-10", 40, on="2026-11-24")
    return case.paid("BATCH-11", 999, currency="GBP").came("BATCH-11", 40)


@pytest.fixture(scope="module")
def night(bank_night):
    return night_of(bank_night)


@pytest.fixture(scope="module")
def folder(night, tmp_path_factory):
    return written(tmp_path_factory.mktemp("night"), tables=night)


def test_all_totals_of_a_bank_hold(folder):
    """From the findings, and from payouts and rates: all three are stated."""
    totals = sql_totals(folder)
    assert {one.id for one in totals} >= NUMBERS
    assert [one for one in totals if not one.passed] == []
    rated = {one.currency: one.left for one in totals if "exchanged at dated rates" in one.name}
    assert rated == {"EUR": 904 + 9000 + 7}


@pytest.mark.parametrize("name", sorted(OF_BANKS))
@pytest.mark.parametrize("side", ["left", "right"])
def test_each_statement_that_is_wrong_is_found(folder, name, side):
    own = statements_of(NUMBERS)
    more = f'* REPLACE ("{side}" + 1 AS "{side}")'
    own[name] = f"SELECT {more} FROM (\n{own[name][:-2]}\n)"  # noqa: S608  # our own
    assert {one.id for one in sql_totals(folder, own=own) if not one.passed} == {name[:3]}


def forgotten_entry(night):
    """An entry in scope is forgotten."""
    return with_bank(night, RECEIVED, night.result.bank[RECEIVED].iloc[1:])


def by_another_rate(night):
    """A payout was exchanged by another rate than that of its day."""
    rows = night.result.bank[EXPLAINED]
    is_exchanged = rows["what"].isin([EXCHANGED, AT_RATE]).astype("int64")
    return with_bank(night, EXPLAINED, rows.assign(amount=rows["amount"] - is_exchanged))


def with_bank(night, name, rows):
    return night.with_result(bank={**night.result.bank, name: rows})


def under(night, *path, says):
    """The rules of the night say something else of a pair since."""
    rules = night.rules.model_dump(mode="json")
    found = rules["rate"]
    for name in path[:-1]:
        found = found[name]
    found[path[-1]] = says
    return night._replace(rules=Rules.of(rules, source="test"))


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(forgotten_entry, id="an-entry-less"),
        pytest.param(by_another_rate, id="by-another-rate"),
        pytest.param(
            lambda night: under(night, "USD.EUR", "on", "2026-11-12", says="0.95"),
            id="another-rate-since",
        ),
        pytest.param(
            lambda night: under(night, "USD.EUR", "basis_points", says=9), id="a-stricter-rate"
        ),
    ],
)
def test_a_broken_result_fails_its_total(bank_night, tmp_path, spoil):
    result = proven_in(tmp_path, spoil(bank_night))
    assert {one.id for one in result.control_totals if not one.passed} == {"T17"}


CHANGED: list[tuple[str, Change, set[str]]] = [
    ("statements", first_off("opening"), {"T15", "T16"}),
    ("statements", first_off("closing"), {"T15", "T16"}),
    ("statements", first_off("others"), {"T15", "T16"}),
    ("bank", first_off("amount"), {"T15", "T16"}),
    ("bank", without_first, {"T15", "T16"}),
    ("counted", without_first, {"T15", "T16"}),
    ("payouts", first_off("net"), {"T17"}),
    ("payouts", without_first, {"T17"}),
    ("received", first_off("amount"), {"T17"}),
    ("received", without_first, {"T17"}),
    *(
        ("explained", without("what", what), {"T17"})
        for what in (
            *("in transit", "opening", "charges", "exchanged"),
            *("exchanged at a rate", "allowed by the rate"),
        )
    ),
    ("effects", without("leg", "bank"), {"T17"}),
    ("terms", without("name", "rate"), {"T17"}),
    ("terms", without("label", "0.00615"), {"T17"}),
    ("terms", without("label", "0.9"), {"T17"}),
]


@pytest.mark.parametrize(("name", "change", "expected"), CHANGED)
def test_a_file_that_is_changed_fails_its_totals(night, folder, tmp_path, name, change, expected):
    own = statements_of(NUMBERS)
    here = changed(folder, to=tmp_path, name=name, table=change(night[name]))
    kept, by_sql = (sql_totals(each, own=own) for each in (folder, here))
    assert {
        one.id for one in totals_of_agreement(kept, by_sql=by_sql, account=PLACE)[1:]
    } == expected


def test_without_a_bank_nothing_is_asked(tmp_path):
    """Nights from before banks have no such files, and are proven without them."""
    case = Case().paid("BATCH-01", 500)
    case.covered = False
    plain = night_of(case.compared())
    assert not {"statements", "bank", "payouts", "paid"} & {*plain}
    folder = written(tmp_path, tables=plain)
    for schema in ("inputs/statements", "inputs/bank", "inputs/payouts", "results/counted"):
        (folder / f"{schema}.parquet").unlink()
    assert NUMBERS & {one.id for one in sql_totals(folder)} == set()


@pytest.fixture(scope="module")
def booked():
    accounts = {"clearing": "1360", "sales": "4400", "refunds": "4410", "chargebacks": "4420"}
    accounts |= {"payouts": "1370", "bank": "1200"}
    rules = {"ledger": {"bank": True}, "journal": {"accounts": accounts}}
    case = Case(rules=rules).paid("BATCH-01", 500).came("BATCH-01", 500).took("BATCH-01", 450)
    case.paid("BATCH-02", 70).came("BATCH-02", 70, on="2026-11-30")
    case.paid("BATCH-03", 30).came("BATCH-03 BATCH-04", 110).paid("BATCH-04", 80)
    case.took("BATCH-03", 30).took("BATCH-04", 80).came("nothing", 310, counterparty="Gateway")
    case.paid("BATCH-05", 900).came("BATCH-05", 900).wrote_off("BATCH-05", 880, entry_id="W1")
    case.wrote_off("BATCH-05", 20, order_no="BATCH-05", entry_id="W2").wrote_off("", 7)
    return night_of(case.compared())


@pytest.fixture(scope="module")
def of_ledger(booked, tmp_path_factory):
    return written(tmp_path_factory.mktemp("booked"), tables=booked)


def test_the_totals_of_the_books_of_the_bank_hold(of_ledger):
    totals = sql_totals(of_ledger)
    names = {(one.id, one.name) for one in totals}
    assert {
        ("T19", "bank: arrived - booked = effects"),
        ("T12", "proposed journals of the bank = effects of their breaks"),
    } <= names
    assert [one for one in totals if not one.passed] == []


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("paid", first_off("bank_amount"), {"T19"}),
        ("received", without("state", "BREAK"), {"T17", "T19"}),
        ("effects", without("leg", "bank_ledger"), {"T12", "T19"}),
        ("banked", without("state", "PENDING"), {"T19"}),
        ("banked", without("state", "MATCHED"), {"T19"}),
        ("banked", without("flags", "written_off"), {"T19"}),
        ("journals", without("account", "1200"), {"T12"}),
    ],
)
def test_books_of_the_bank_that_are_changed_fail_their_totals(
    booked, of_ledger, tmp_path, name, change, expected
):
    here = changed(of_ledger, to=tmp_path, name=name, table=change(booked[name]))
    by_sql = sql_totals(here)
    failed = {one.id for one in by_sql if not one.passed}
    assert failed == expected


@pytest.mark.parametrize("entry", ["K1", "W1", "W2"])
def test_an_entry_of_the_books_that_is_lost_fails(booked, of_ledger, tmp_path, entry):
    """The left side counts each entry of type bank, the right one what wrote a group off."""
    entries = without("entry_id", entry)(booked["ledger"])
    by_sql = sql_totals(changed(of_ledger, to=tmp_path, name="ledger", table=entries))
    assert "T19" in {one.id for one in by_sql if not one.passed}
