"""What stands in groups of the ledger, and what the gateway holds."""

import pytest

from recon.model.gateway_holds import FeesCharged, GatewayHolds, HeldBalance, Holding
from recon.model.terms import SourceKind
from tests.proving import failed

OLD = {"settled_on": "2026-10-05"}
KEYLESS = {"order_no": "", "transaction_id": ""}
BOOKED = {**KEYLESS, "booked_at": "2026-10-06T12:00:00Z"}


def reasons(result):
    """What nobody can judge -> why."""
    rows = result.unverified
    return dict(zip(rows["entry_id"].tolist(), rows["reason"].tolist(), strict=True))


@pytest.mark.parametrize(
    ("kind", "cells"), [("fee", {"gross": 0, "fee": 100}), ("reserve", {"gross": -100})]
)
def test_a_day_that_is_still_to_come_is_not_called_a_release(case, kind, cells):
    """A group with a date ahead says what its sides differ by, as any other."""
    case.ledger()
    case.line(kind, settled_on="2026-12-20", **cells, **KEYLESS)
    case.entry(kind, amount=300, **BOOKED)

    breaks = case.run().breaks
    (row,) = breaks[breaks["code"].eq(f"{kind.upper()}_BOOKED_DIFFERS")].to_dict("records")

    assert row["flags"] == "date_ahead"
    assert "the settlement has 1.00 EUR, the ledger has 3.00 EUR, 2.00 EUR apart" in row["reason"]


@pytest.mark.parametrize("blank", ["account_id", "merchant_id"])
def test_a_line_whose_owner_cannot_be_read_may_be_of_any_account(case, blank):
    """What else cannot be read of a line, the second judge draws."""
    case.ledger()
    for batch, currency in (("B1", "EUR"), ("B1", "USD"), ("B2", "GBP")):
        cells = {"batch_id": batch, "currency": currency, **OLD, **KEYLESS}
        case.line("adjustment", gross=10_000, fee=100, **cells)
        case.line("reserve", gross=-1_000, **cells)
        case.line("payout", gross=8_000, **cells)
    names = {"order_no": "", "currency": "USD", blank: ""}
    case.reject(kind=SourceKind.SETTLEMENT, column="net", **names)
    result = case.proven()
    expected = {"held:USD:B1", "payout:USD:B1", "fees:USD", "reserves:USD"}
    assert reasons(result) == dict.fromkeys(expected, "BATCH_QUARANTINED")
    assert len(result.breaks) == 12 - len(expected)
    assert failed(result) == []


def test_a_difference_is_as_old_as_the_day_since_which_its_sides_differ(case):
    """What was booked to the cent before is no part of it."""
    case.ledger()
    for day in ("2026-10-05", "2026-11-02"):
        case.line("fee", gross=0, fee=100, settled_on=day, **KEYLESS)
    case.entry("fee", amount=100, **KEYLESS, booked_at="2026-10-05T12:00:00Z")

    breaks = case.run().breaks

    assert breaks.loc[breaks["code"].eq("FEE_BOOKED_DIFFERS"), "age_days"].tolist() == [14]


def test_of_equal_payouts_the_oldest_is_the_one_that_is_booked(case):
    """An entry that names no batch says only how much was paid out."""
    case.ledger()
    for batch, day in (("B1", "2026-10-09"), ("B2", "2026-10-05"), ("B3", "2026-10-12")):
        case.line("payout", batch_id=batch, gross=400, settled_on=day, **KEYLESS)
    case.entry("payout", amount=400, **BOOKED)

    result = case.run()

    groups = result.matches["entry_id"].str.startswith("payout:")
    assert result.matches.loc[groups, "entry_id"].tolist() == ["payout:EUR:B2"]


def test_what_is_held_is_owed_to_the_merchant_and_a_debt_to_nobody(case):
    """Neither changes the ledger; what is at risk is what is left."""
    case.ledger()
    case.line("adjustment", batch_id="B1", gross=1_000, **OLD, **KEYLESS)
    case.line("payout", batch_id="B1", gross=400, **OLD, **KEYLESS)
    case.entry("payout", amount=400, reference_no="B1", **BOOKED)
    # An item that is held pays for a debt of the same currency: the debt is another one's.
    debt = {"currency": "USD", "batch_id": "B2", **OLD, **KEYLESS}
    case.line("adjustment", gross=-300, **debt)
    case.line("payout", gross=0, **debt)

    breaks = case.run().breaks
    names = ("code", "currency", "effect_ledger", "exposure", "owed_to")
    assert sorted(zip(*(breaks[name].tolist() for name in names), strict=True)) == [
        ("HELD_BACK", "EUR", 0, 600, "merchant"),
        ("HELD_BACK", "USD", 0, 300, "none"),
    ]


@pytest.mark.parametrize(
    ("booked", "codes"),
    [(400, ["FEE_VARIANCE"]), (100, ["FEE_BOOKED_DIFFERS", "FEE_VARIANCE"])],
)
def test_a_fee_that_is_too_dear_counts_as_settled_all_the_same(case, booked, codes):
    """Its variance is one break; the ledger is compared with what the gateway took."""
    case.ruled(fees={"EUR": {"basis_points": 100, "fixed_minor_units": 0}})
    case.order().payment().entry().line(fee=400)
    case.line("payout", gross=9_600, fee=0, **KEYLESS)
    case.entry("payout", amount=9_600, reference_no="B1", **BOOKED)
    case.entry("fee", amount=booked, **BOOKED)

    breaks = case.run().breaks
    assert sorted(breaks["code"]) == codes
    effects = dict(zip(breaks["code"].tolist(), breaks["effect_ledger"].tolist(), strict=True))
    assert effects.get("FEE_BOOKED_DIFFERS", booked - 400) == booked - 400


@pytest.mark.parametrize(
    ("rounding", "fee"),
    [("", 157), ("down", 157), ("half_up", 158), ("up", 158), ("half_even", 158)],
)
@pytest.mark.parametrize("sign", [1, -1], ids=["taken", "taken back"])
def test_the_percentage_of_fees_is_rounded_as_the_rules_say(case, rounding, fee, sign):
    """Down, where they say nothing; what is taken back as what was taken: 1.5 % of 105.00."""
    said = {"rounding": rounding} if rounding else {}
    case.ruled(fees={"EUR": {"basis_points": 150, "fixed_minor_units": 0, **said}})
    case.order().payment().entry()
    for off in (0, 1):
        case.line(order_no=f"A{off}", gross=sign * 10_500, fee=sign * fee + off)

    breaks = case.run().breaks
    wrong = breaks[breaks["flags"].str.contains("FEE_VARIANCE") | breaks["code"].eq("FEE_VARIANCE")]
    assert wrong["order_no"].tolist() == ["A1"]


def test_without_a_settlement_source_fees_and_reserves_are_not_covered(case):
    """By name, and no break: nothing says what was taken."""
    case.order().payment().entry()
    case.entry("fee", amount=86).entry("reserve", amount=20)

    result = case.run()
    assert "fees and reserves of the ledger: no settlement file" in result.not_covered
    assert result.breaks["code"].tolist() == []


@pytest.mark.parametrize("day", ["2099-12-31", "9999-12-31"])
@pytest.mark.parametrize("fees_per", ["balance", "month"])
def test_a_line_or_an_entry_dated_long_after_the_night_waits_for_nothing(case, day, fees_per):
    """A fee, a kept remainder and a booked fee of another year: breaks at once, and marked."""
    case.ruled(ledger={"fees_per": fees_per}, calendar={"timezone": "America/New_York"}).ledger()
    ahead = {"settled_on": day, **KEYLESS}
    case.line("fee", gross=0, fee=100, **ahead).line("adjustment", gross=5_000, **ahead)
    case.line("payout", gross=4_000, **ahead)
    case.entry("payout", amount=4_000, reference_no="B1", **BOOKED)
    case.entry("fee", amount=300, **{**KEYLESS, "booked_at": f"{day}T12:00:00Z"})

    breaks = case.run().breaks
    codes = dict(zip(breaks["code"], breaks["flags"], strict=True))
    assert codes["HELD_BACK"] == "date_ahead"
    assert {flags for code, flags in codes.items() if code.startswith("FEE_")} == {"date_ahead"}
    assert case.run().pending.empty


ALONE = {"order_no": "", "transaction_id": ""}


def _differing(case):
    """A settled payment of order A1 with a fee of 10.00, of which the ledger has 7.00."""
    case.order().payment().entry().line(fee=1000, transaction_id="")
    case.line("payout", gross=9000, **ALONE).entry("payout", reference_no="B1", amount=9000)
    return case.entry("fee", amount=700)


def _codes(result):
    assert failed(result) == []
    return sorted(result.breaks["code"])


@pytest.mark.parametrize("amount", [300, 301])
def test_a_stray_adjustment_under_the_key_of_a_group_has_an_id_of_its_own(case, amount):
    """An adjustment that closes nothing stands alone, and no two breaks share an id."""
    _differing(case).entry("adjustment", order_no="fees:EUR", amount=amount)
    result = case.proven()
    stray = [] if amount == 300 else ["FEE_BOOKED_DIFFERS", "LEDGER_ONLY"]
    assert _codes(result) == stray
    assert result.breaks["break_id"].is_unique


@pytest.mark.parametrize(("name", "closes"), [("A1", False), ("fees:EUR:A1", True)])
def test_an_order_names_no_group_of_fees(case, name, *, closes):
    """Only the key of a group or a batch is its name: an order's own adjustment stays with it."""
    _differing(case).ruled(ledger={"fees_per": "payment"})
    result = case.entry("adjustment", order_no=name, amount=300).proven()
    assert ("FEE_BOOKED_DIFFERS" not in _codes(result)) == closes
    assert ("LEDGER_AMOUNT_MISMATCH" not in _codes(result)) == closes


@pytest.mark.parametrize("label", ["2026-13", "0000-10", "9999-12", "２０２６-10"])  # noqa: RUF001
def test_a_reference_that_is_no_month_is_none(case, label):
    """A fee whose reference only looks like a month is of the month that it is booked in."""
    _differing(case).ruled(ledger={"fees_per": "month"})
    result = case.entry("fee", amount=300, reference_no=label).proven()
    assert _codes(result) == []


def _held(case):
    """B1 keeps 20.00 and a reserve of 10.00, B2 is not paid out, B3 came to less than nothing."""
    case.order().payment().entry().line(fee=300).line("reserve", gross=-1000, **ALONE)
    case.line("payout", gross=6700, **ALONE)
    case.line("adjustment", gross=500, batch_id="B2", settled_on="2026-11-19", **ALONE)
    case.line("adjustment", gross=-2300, batch_id="B3", settled_on="2026-11-18", **ALONE)
    return case.line("payout", gross=0, batch_id="B3", settled_on="2026-11-18", **ALONE)


def test_payable_held_back_and_reserve_have_their_oldest_day(case):
    """Payable counts open batches and what is held; a debt takes off it and is of no age."""
    result = _held(case).line("payout", gross=50, batch_id="B4", settled_on="2026-11-17", **ALONE)
    result.line("adjustment", gross=450, batch_id="B4", settled_on="2026-11-17", **ALONE)
    assert result.proven().gateway_holds.holdings == (
        Holding(
            *("M", "1", "EUR"),
            payable=HeldBalance(500 + 100, "2026-11-17"),
            held_back=HeldBalance(100, "2026-11-17"),
            reserve=HeldBalance(1000, "2026-10-01"),
        ),
    )


def test_fees_are_those_of_lines_and_of_entries_less_their_reversals(case):
    """An entry that is there twice counts once; another currency stands by itself."""
    _held(case).entry("fee", amount=500, **ALONE, entry_id="F1")
    case.entry("fee", amount=500, **ALONE, entry_id="F1")
    case.entry("fee_reversal", amount=150, **ALONE)
    case.entry("fee", amount=7, currency="USD", **ALONE)
    fees = case.run().gateway_holds.fees
    assert fees == (FeesCharged("M", "1", "EUR", 300, 350), FeesCharged("M", "1", "USD", 0, 7))
    assert [row.difference for row in fees] == [-50, -7]


def test_sums_over_accounts_keep_the_oldest_day():
    """Page one has one line a currency."""
    rows = [
        Holding("M", account, "EUR", payable=HeldBalance(amount, since))
        for account, amount, since in (("1", 5, "2026-11-02"), ("2", 7, "2026-11-01"))
    ]
    fees = [FeesCharged("M", "1", "EUR", 3, None), FeesCharged("M", "2", "EUR", 4, None)]
    ((held, taken),) = GatewayHolds(tuple(rows), tuple(fees)).by_currency().values()
    assert held.payable == HeldBalance(12, "2026-11-01")
    assert (taken.charged, taken.booked, taken.difference) == (7, None, None)
