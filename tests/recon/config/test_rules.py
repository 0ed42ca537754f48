"""The rules of one reconciliation: what may be written, what is refused, and the digest."""

import tomllib
from datetime import date
from pathlib import Path

import pytest

from recon.config.rules import Rules, bank_holidays
from recon.model.errors import ConfigurationError
from recon.model.terms import GatewayState, KeyAnswer

CONFIG = Path(__file__).parents[3] / "config"
DATEV = (
    "[journal.export.datev]\nconsultant = 29098\nclient = 5\n"
    "fiscal_year_month = 1\naccount_digits = 4\n"
)
DATEV_IN_EUROS = f"{DATEV}base_currency = 'EUR'\n"


def rules(text=""):
    return Rules.of(tomllib.loads(text), source="rules.toml")


def test_the_defaults_are_those_of_the_contract():
    bare = rules()

    assert bare.payment_status == {"3000": "paid", "4100": "refunded"}
    assert {code for code in bare.query_result if bare.answer_of(code) is KeyAnswer.FOUND} == {
        "1",
        "-1",
        "-2",
    }
    assert bare.answer_of("2") is KeyAnswer.NOT_FOUND
    assert bare.answer_of("999") is KeyAnswer.FAILED
    assert bare.gateway.amount_means == "captured"
    assert (bare.grace.order_to_gateway, bare.grace.instruction_to_gateway) == ("24h", "24h")
    assert (bare.grace.refund_visible, bare.grace.gateway_to_ledger) == ("5bd", "2bd")
    assert bare.grace.hard_limit == "10bd"
    assert (bare.verdict.max_unverified_rows, bare.verdict.max_unverified_share) == (20, 0.001)
    assert bare.account.capture_mode == "auto"


def test_the_bundled_rules_are_the_defaults():
    bundled = tomllib.loads((CONFIG / "rules.toml").read_text(encoding="utf-8"))

    assert Rules.of(bundled, source="rules.toml").digest == rules().digest


def test_unmapped_codes_are_findings():
    assert rules().state_of("3001") is GatewayState.UNMAPPED
    assert rules().answer_of("42") is KeyAnswer.UNMAPPED
    assert rules().answer_of("") is KeyAnswer.UNMAPPED


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tolerances]", "tolerances: unknown table or key"),
        ("[grace]\nrefund = '5bd'", "grace.refund: unknown table or key"),
        ("[tolerance.EUR]\nabsolute = 2", "tolerance.EUR.absolute: unknown table or key"),
        ("[tolerance.EURO]\nbasis_points = 2", "tolerance.EURO.*not an ISO 4217 currency code"),
        ("[severity.XAU]\nhigh = 2", "severity.XAU.*no minor unit"),
        (
            "[tolerance.EUR]\nbasis_points = 0.5",
            "tolerance.EUR.basis_points: must be a whole number",
        ),
        ("[tolerance.EUR]\nabsolute_minor_units = -1", "absolute_minor_units: must be at least 0"),
        ("[tolerance.EUR]\nbasis_points = 10001", "basis_points: must be at most 10000"),
        ("[grace]\nhard_limit = '10 days'", "grace.hard_limit: '10 days' is not a grace such as"),
        ("[gateway]\ntimezone = 'Mars'", "gateway.timezone: 'Mars' is not a time zone such as"),
        ("[gateway]\namount_means = 'net'", "gateway.amount_means: .*'authorised' or 'captured'"),
        ("[calendar]\ntimezone = 'Mars'", "calendar.timezone: 'Mars' is not a time zone"),
        ("[calendar]\ncut_off = '6pm'", "calendar.cut_off: cut_off '6pm' is not a time such as"),
        ("[calendar]\nholidays = ['soon']", r"calendar.holidays #1: must be a date"),
        ("[payment_status]\n3000 = 'settled'", "payment_status.3000: .*'pending', 'in_review'"),
        ("[query_result]\n1 = 'yes'", "query_result.1: .*'found', 'not_found' or 'failed'"),
        ("[account]\ncapture_mode = 'later'", "account.capture_mode: .*'auto' or 'manual'"),
        ("[authorisation]\nvalid_days = 0", "authorisation.valid_days: must be at least 1"),
        ("[verdict]\nmax_unverified_share = 1.5", "max_unverified_share: must be at most 1"),
        ("[window]\norders_days = 999", "window.orders_days: must be at most 366"),
        ("severity = 3", "severity: must be a table"),
        ("[journal.export.datev]\nconsultant = 29098", "journal.export.datev.client: .*missing"),
        ("[journal.export.datev]\nconsultant = 7", "datev.consultant: must be at least 1001"),
        ("[journal.export.datev]\naccount_digits = 9", "account_digits: must be at most 8"),
        (f"{DATEV}rates = {{ 2026-11 = {{ USD = 1.1 }} }}", "name that, too"),
        (f"{DATEV_IN_EUROS}rates = {{ 2026-11 = {{ EUR = 1.1 }} }}", "base_currency has none"),
        (f"{DATEV_IN_EUROS}rates = {{ 2026-11 = {{ GBP = 0.85 }} }}", "GBP: must be at least 1"),
        (f"{DATEV_IN_EUROS}rates = {{ 2026-13 = {{ USD = 1.1 }} }}", "2026-13"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_key(text, message):
    with pytest.raises(ConfigurationError, match=f"^rules.toml: .*{message}"):
        rules(text)


def test_the_digest_is_that_of_the_meaning():
    written = rules("[account]\ncapture_mode = 'auto'\n[grace]\nhard_limit = '10bd'\n")

    lines = ["1 = 'paid'", "2 = 'failed'"]
    codes = [
        rules("\n".join(["[payment_status]", *order])).digest for order in (lines, lines[::-1])
    ]

    assert written.digest == rules().digest
    assert codes[0] == codes[1]
    assert rules("[grace]\nhard_limit = '11bd'").digest != rules().digest
    assert rules("[payment_status]\n3000 = 'paid'").digest != rules().digest


BANK = {
    "iban": "DE89 3704 0044 0532 0130 00",
    "currency": "EUR",
    "accounts": ["100042/100042001"],
    "counterparty": ["Gateway"],
}


def rules_with(bank, *, days=""):
    """Rules with one bank, and whose holidays hold."""
    return Rules.of({"bank": {"main": bank}, "calendar": {"bank": days}}, source="rules.toml")


def test_an_iban_is_kept_without_blanks():
    """Statements write it without, people with them."""
    bank = rules_with(BANK).bank["main"]
    assert bank.iban == "DE89370400440532013000"
    assert bank.served == {("100042", "100042001")}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"iban": "DE89370400440532013001"}, "bank.main.iban: is not an IBAN"),
        ({"currency": "EURO"}, "bank.main.currency: 'EURO' is not an ISO 4217"),
        ({"accounts": []}, "bank.main.accounts"),
        ({"accounts": ["100042"]}, "bank.main.accounts #1"),
        ({"inbox": "x"}, "bank.main.inbox"),
    ],
)
def test_a_mistake_is_named_with_its_key(change, why):
    with pytest.raises(ConfigurationError, match=why) as refused:
        rules_with({**BANK, **change})
    assert "DE89" not in str(refused.value)


def test_bank_holidays_are_no_business_days_of_the_way_to_the_bank():
    friday = date(2026, 4, 3)
    assert friday in bank_holidays("XECB")
    calendar = rules_with(BANK, days="XECB")
    assert not calendar.bank_calendar.is_business_day(friday)
    assert calendar.business_calendar.is_business_day(friday)
    assert rules_with(BANK).bank_calendar.is_business_day(friday)
    assert date(2026, 11, 26) in bank_holidays("XNYS")
    assert date(2026, 10, 3) in bank_holidays("DE")


def test_an_unknown_calendar_is_refused():
    with pytest.raises(ConfigurationError, match="no calendar of banks such as XECB"):
        rules_with(BANK, days="ATLANTIS")
