"""The rules of one reconciliation: tolerance, grace, calendar, status map, severity.

The keys are those of `recon reconcile --rules` and of `config/rules.toml`. Unknown tables and keys
are refused by name. Used by matching, steps and reports.

Also the merchant's bank accounts, and the days on which their banks move money.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from functools import cache, cached_property
from operator import not_
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from recon.config.declared import CurrencyCode, DeclaredTable, ZoneText, checked_by, declared
from recon.config.exchange_rates import AppliedRate, RateRules
from recon.config.fee_contract import FeeContract, Rounding
from recon.model.business_date import BusinessCalendar, Grace
from recon.model.money import exponent
from recon.model.terms import GatewayState, KeyAnswer

COUNTERPARTIES_MAX = 50
"""Maximum number of names of the gateway as the counterparty of an entry."""
SERVED_MAX = 200
"""Maximum number of merchant accounts of one bank account."""


def _bank_account(text: str) -> str:
    # Imported here: loading the list of banks takes half a second, and most merchants need none.
    from schwifty import IBAN
    from schwifty.exceptions import SchwiftyException

    try:
        return str(IBAN(text).compact)
    except SchwiftyException:
        msg = "is not an IBAN: country, length or check digits are wrong"
        raise ValueError(msg) from None


def known_calendar(name: str) -> str:
    """Validate the name of a calendar of bank holidays; "" is none.

    Raises:
        ValueError: there is no such calendar.
    """
    if name:
        try:
            _calendar_days(name, years=(HOLIDAY_YEARS.start,))
        except NotImplementedError:
            msg = f"{name!r} is no calendar of banks such as XECB, XNYS or DE"
            raise ValueError(msg) from None
    return name


class BankRules(DeclaredTable):
    """One bank account of the merchant, and which payouts arrive on it."""

    iban: Annotated[str, AfterValidator(_bank_account)]
    currency: CurrencyCode
    accounts: tuple[Annotated[str, Field(pattern=r"^[^/]{1,50}/[^/]{1,50}$")], ...] = Field(
        min_length=1, max_length=SERVED_MAX
    )
    """Merchant accounts (`MERCHANT/ACCOUNT`) that are paid out here."""
    counterparty: tuple[Annotated[str, Field(min_length=2, max_length=100)], ...] = Field(
        default=(), max_length=COUNTERPARTIES_MAX
    )
    """Words or IBANs by which the gateway is known as the other side of an entry."""

    @property
    def served(self) -> frozenset[tuple[str, str]]:
        """Merchant and account of every account that is paid out here."""
        pairs = (account.partition("/") for account in self.accounts)
        return frozenset((merchant, account) for merchant, _, account in pairs)


MINOR_UNITS_LIMIT = 10**12


GraceText = Annotated[str, checked_by(Grace.parse)]
CutOffText = Annotated[str, checked_by(lambda text: BusinessCalendar.of(cut_off=text))]


def _two_currencies(text: str) -> None:
    foreign, _, booked = text.partition(".")
    exponent(foreign)
    exponent(booked)


CurrencyPair = Annotated[str, checked_by(_two_currencies)]
BankName = Annotated[str, Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z ._-]{0,39}$")]
AccountName = Annotated[str, Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z ._:/-]{0,59}$")]
MappedState = Literal[
    "pending",
    "in_review",
    "authorised",
    "paid",
    "partially_refunded",
    "refunded",
    "cancelled",
    "expired",
    "failed",
    "chargeback",
]


class GatewayRules(DeclaredTable):
    """How the gateway's fields are to be read."""

    timezone: ZoneText = "UTC"
    amount_means: Literal["authorised", "captured"] = "captured"
    shows_refunds: bool = True
    """Whether the query ever shows that money went back; false: its codes for that do not count."""


class Tolerance(DeclaredTable):
    """The difference still called rounding, per currency; an absent bound does not bind."""

    absolute_minor_units: int | None = Field(default=None, ge=0, le=MINOR_UNITS_LIMIT)
    basis_points: int | None = Field(default=None, ge=0, le=10_000)
    night_budget_minor_units: int | None = Field(default=None, ge=0, le=MINOR_UNITS_LIMIT)


class GraceRules(DeclaredTable):
    """How long a set may stay one-sided."""

    order_to_gateway: GraceText = "24h"
    instruction_to_gateway: GraceText = "24h"
    refund_visible: GraceText = "5bd"
    gateway_to_ledger: GraceText = "2bd"
    hard_limit: GraceText = "10bd"
    settlement: GraceText = "10bd"
    held_back: GraceText = "5bd"
    payout_to_bank: GraceText = "3bd"


class CalendarRules(DeclaredTable):
    """Which days are business days, and when one closes."""

    timezone: ZoneText = "UTC"
    cut_off: CutOffText = "24:00"
    holidays: tuple[date, ...] = ()
    bank: Annotated[str, AfterValidator(known_calendar)] = ""
    """Whose bank holidays hold for the way to the bank: XECB, XNYS or a country."""


class AccountRules(DeclaredTable):
    """How the account captures."""

    capture_mode: Literal["auto", "manual"] = "auto"


class AuthorisationRules(DeclaredTable):
    """How long an authorisation lives."""

    valid_days: int = Field(default=7, ge=1, le=365)
    warn_days: int = Field(default=1, ge=0, le=365)


class SeverityRules(DeclaredTable):
    """Thresholds in major units on exposure; below `ignore` never above LOW."""

    low: int = Field(default=0, ge=0)
    medium: int = Field(default=1_000, ge=0)
    high: int = Field(default=10_000, ge=0)
    critical: int = Field(default=100_000, ge=0)
    ignore: int = Field(default=0, ge=0)


class FeeRules(DeclaredTable):
    """The fee agreed for a captured amount, per currency; without one no fee is judged."""

    basis_points: int = Field(default=0, ge=0, le=10_000)
    fixed_minor_units: int = Field(default=0, ge=0, le=MINOR_UNITS_LIMIT)
    tolerance_minor_units: int = Field(default=0, ge=0, le=MINOR_UNITS_LIMIT)
    rounding: Rounding = Field(default="down", exclude_if=lambda value: value == "down")
    """Of the percentage, as a fee contract has it; always away from or towards 0."""


class LedgerRules(DeclaredTable):
    """How the ledger is kept."""

    fees_per: Literal["balance", "payment", "batch", "day", "month"] = "balance"
    """What one booking of fees is of; `balance`: all since the opening are compared as one sum."""
    bank: bool = Field(default=False, exclude_if=not_)
    """Whether the ledger has what arrives at the bank, as entries of type `bank`."""


class SettlementRules(DeclaredTable):
    """What the gateway owed and kept, per currency, before the first line of a settlement."""

    opening_payable: int = Field(default=0, ge=0, le=MINOR_UNITS_LIMIT)
    """Minor units."""
    opening_reserve: int = Field(default=0, ge=0, le=MINOR_UNITS_LIMIT)
    """Minor units."""


class VerdictRules(DeclaredTable):
    """Up to how many unverified rows a night is BREAKS OPEN rather than INCOMPLETE."""

    max_unverified_rows: int = Field(default=20, ge=0)
    max_unverified_share: float = Field(default=0.001, ge=0, le=1)


class WindowRules(DeclaredTable):
    """What a first night looks at; older is opening balance."""

    opening_date: date | None = None
    orders_days: int = Field(default=30, ge=1, le=366)
    ledger_days: int = Field(default=30, ge=1, le=366)


DEFAULT_PAYMENT_STATUS: Mapping[str, MappedState] = {"3000": "paid", "4100": "refunded"}
DEFAULT_QUERY_RESULT: Mapping[str, Literal["found", "not_found", "failed"]] = {
    "1": "found",
    "-1": "found",
    "-2": "found",
    "2": "not_found",
    "0": "failed",
    "3": "failed",
    "4": "failed",
    "5": "failed",
    "6": "failed",
    "7": "failed",
    "999": "failed",
}


class JournalAccounts(DeclaredTable):
    """Ledger accounts that proposed journals name."""

    clearing: AccountName
    """Where the gateway's money stands until it is paid out."""
    sales: AccountName
    refunds: AccountName
    chargebacks: AccountName
    payouts: AccountName
    """The bank account or payee side of payouts."""
    fees: AccountName | None = None
    """What the gateway keeps for its work; without it no journal of fees is proposed."""
    reserves: AccountName | None = None
    """What the gateway keeps as a security; without it no journal of reserves is proposed."""
    bank: AccountName | None = Field(default=None, exclude_if=not_)
    """The account at the bank, where `payouts` is money on its way; without it no journal of what
    arrived is proposed."""

    @model_validator(mode="after")
    def _check_bank_accounts(self) -> Self:
        """Entries of the bank are recognised by their account, so it must be a separate one."""
        others = [getattr(self, name) for name in type(self).model_fields if name != "bank"]
        if self.bank is not None and self.bank in others:
            msg = "bank must be an account of its own: `payouts` is money on its way there"
            raise ValueError(msg)
        return self


TaxCode = Annotated[str, Field(pattern=r"^[\w%][\w%&().,/+ -]{0,49}$")]
CompanyCode = Annotated[str, Field(pattern=r"^\w[\w&().,/: -]{0,99}$")]


DATEV_MONTHS_MAX = 600
"""Maximum number of months with declared rates."""
MonthName = Annotated[str, Field(pattern=r"^20[0-9]{2}-(?:0[1-9]|1[0-2])$")]
DatevRate = Annotated[Decimal, Field(ge=1, lt=10_000, decimal_places=6)]
"""The range of DATEV's field: one to four digits without a leading 0, and six decimals."""


class DatevExport(DeclaredTable):
    """Whose ledger DATEV's files are for; all of it or none, as the accountant has it."""

    consultant: int = Field(ge=1001, le=9_999_999)
    client: int = Field(ge=1, le=99_999)
    fiscal_year_month: int = Field(ge=1, le=12)
    """In which the fiscal year begins."""
    account_digits: int = Field(ge=4, le=8)
    """Of an account of the general ledger."""
    base_currency: CurrencyCode | None = Field(default=None, exclude_if=not_)
    """In which the ledger is kept; without it a batch in another currency has no rates."""
    rates: dict[MonthName, dict[CurrencyCode, DatevRate]] = Field(
        default_factory=dict, max_length=DATEV_MONTHS_MAX, exclude_if=not_
    )
    """Month -> currency -> how much of it is one of the base currency, as is published."""

    @model_validator(mode="after")
    def _rates_are_of_a_base_currency(self) -> Self:
        if self.rates and self.base_currency is None:
            msg = "rates are units of a currency for one of base_currency: name that, too"
            raise ValueError(msg)
        if own := [name for name, rates in self.rates.items() if self.base_currency in rates]:
            msg = f"rates of {own[0]}: base_currency has none"
            raise ValueError(msg)
        return self


class JournalExport(DeclaredTable):
    """What import files for the ledger state beside the lines; nothing of it is guessed."""

    tax_code: TaxCode | None = None
    """Of every account that `tax_codes` does not name."""
    tax_codes: dict[AccountName, TaxCode] = Field(default_factory=dict)
    """Account -> its tax code, as the ledger names it."""
    company_code: CompanyCode | None = None
    """SAP's company code, NetSuite's subsidiary."""
    datev: DatevExport | None = Field(default=None, exclude_if=not_)

    def tax_code_of(self, account: str) -> str:
        """The tax code of an account, by default the general one; "" where none is declared."""
        return self.tax_codes.get(account, self.tax_code or "")


class JournalRules(DeclaredTable):
    """How proposed journals are made; without accounts none are."""

    accounts: JournalAccounts | None = None
    export: JournalExport | None = Field(default=None, exclude_if=not_)
    """Rules without one have the digest that they always had."""


def digest_of(document: object) -> str:
    """SHA-256 of rules in canonical form, including rules that this version cannot read."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


class Rules(DeclaredTable):
    """All rules of one reconciliation."""

    payment_status: dict[str, MappedState] = Field(
        default_factory=lambda: dict(DEFAULT_PAYMENT_STATUS)
    )
    query_result: dict[str, Literal["found", "not_found", "failed"]] = Field(
        default_factory=lambda: dict(DEFAULT_QUERY_RESULT)
    )
    gateway: GatewayRules = GatewayRules()
    tolerance: dict[CurrencyCode, Tolerance] = Field(default_factory=dict)
    grace: GraceRules = GraceRules()
    calendar: CalendarRules = CalendarRules()
    account: AccountRules = AccountRules()
    authorisation: AuthorisationRules = AuthorisationRules()
    severity: dict[CurrencyCode, SeverityRules] = Field(default_factory=dict)
    verdict: VerdictRules = VerdictRules()
    window: WindowRules = WindowRules()
    journal: JournalRules = JournalRules()
    fees: dict[CurrencyCode, FeeRules] = Field(default_factory=dict)
    ledger: LedgerRules = LedgerRules()
    settlement: dict[CurrencyCode, SettlementRules] = Field(default_factory=dict)
    rate: dict[CurrencyPair, RateRules] = Field(default_factory=dict)
    bank: dict[BankName, BankRules] = Field(default_factory=dict)
    fee_contract: FeeContract | None = Field(default=None, exclude_if=not_)
    """What fees.toml declares; rules without one have the digest that they always had."""
    codes: str = Field(default="", exclude_if=not_)
    """Digest of what the table of codes decides (`CodeTable.decides`), so that the rules of a
    comparison are others where a condition, an order of precedence, a grace or a floor is; "" in
    rules that are only declared."""

    @classmethod
    def of(cls, tables: Mapping[str, Any], *, source: str) -> "Rules":
        """Validate rules from parsed TOML; every error is reported with its key."""
        return declared(cls, dict(tables), source=source)

    @cached_property
    def business_calendar(self) -> BusinessCalendar:
        """The configured calendar as a `BusinessCalendar`."""
        return BusinessCalendar.of(
            timezone=self.calendar.timezone,
            cut_off=self.calendar.cut_off,
            holidays=self.calendar.holidays,
        )

    @cached_property
    def bank_calendar(self) -> BusinessCalendar:
        """The calendar for payments to the bank: bank holidays are not business days either."""
        return BusinessCalendar.of(
            timezone=self.calendar.timezone,
            cut_off=self.calendar.cut_off,
            holidays={*self.calendar.holidays, *bank_holidays(self.calendar.bank)},
        )

    @property
    def document(self) -> dict[str, Any]:
        """The rules as JSON values; `of` reads them back."""
        return self.model_dump(mode="json", by_alias=True)

    @property
    def digest(self) -> str:
        """SHA-256 of the rules in canonical form: equal rules have equal digests."""
        return digest_of(self.document)

    def state_of(self, payment_status: str) -> GatewayState:
        """The gateway state of a code; UNMAPPED for an unknown code, which is never guessed."""
        mapped = self.payment_status.get(payment_status)
        return GatewayState.UNMAPPED if mapped is None else GatewayState(mapped)

    def rate_of(self, foreign: str, *, into: str, day: str) -> AppliedRate:
        """The rate of a foreign currency on a day, or why there is none."""
        pair = f"{foreign}.{into}"
        rules = self.rate.get(pair)
        return AppliedRate(pair, day) if rules is None else rules.applied(pair, day=day)

    def shows(self, state: GatewayState) -> bool:
        """Whether the query can show a payment in this state."""
        is_refund = state in {GatewayState.REFUNDED, GatewayState.PARTIALLY_REFUNDED}
        is_hidden = is_refund and not self.gateway.shows_refunds
        return not is_hidden and state.value in self.payment_status.values()

    def answer_of(self, query_result: str) -> KeyAnswer:
        """The kind of answer of a query_result code."""
        mapped = self.query_result.get(query_result)
        return KeyAnswer.UNMAPPED if mapped is None else KeyAnswer(mapped)


HOLIDAY_YEARS = range(2015, 2046)
"""Years with known bank holidays; other years are treated as having none."""


@cache
def bank_holidays(name: str) -> frozenset[date]:
    """The bank holidays of a financial market (XECB, XNYS) or a country (DE); none for ""."""
    return _calendar_days(name, years=HOLIDAY_YEARS) if name else frozenset()


def _calendar_days(name: str, *, years: Iterable[int]) -> frozenset[date]:
    # Imported here: the calendars take a while to load.
    import holidays

    try:
        days = holidays.financial_holidays(name, years=years)
    except NotImplementedError:
        return frozenset(holidays.country_holidays(name, years=years))
    return frozenset(days)
