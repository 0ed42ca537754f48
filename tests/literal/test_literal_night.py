"""Whole nights against a gateway that is the API document, literally."""

import base64
import csv
import random
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from recon.model.errors import UsageError
from recon.model.nights import Mode, NightRequest, StepSummary
from recon.model.terms import Verdict
from recon.steps.approvals import people
from recon.steps.approvals.verdicts import resolve
from recon.steps.money.approve import approve, waiting
from recon.steps.money.gate import stop_sending
from recon.steps.night import whole_night as night
from recon.steps.runtime.environment import environment_of
from recon.steps.runtime.identity import identify
from recon.store.schema import instruction
from reports.workbook_io import workbooks
from tests.literal.gateway import ACCOUNT, KEY, MERCHANT, STATUS, Gateway, Payment, literal_gateway
from tests.literal.tables import QUERY_ROW
from tests.reports.drawn_sheets import values_of

HEADER = (
    "merchant_id,account_id,order_no,currency,amount,status,ordered_at,transaction_id,"
    "refund_amount,action,action_amount,action_reason,request_id"
)
BOOKS = "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at\n"
AT = "2026-11-20T10:00:00Z"
PEOPLE = ("ann", "jo")


@dataclass
class Shop:
    """A merchant of that gateway."""

    folder: Path
    url: str
    gateway: Gateway
    database: str
    now: datetime = datetime(2026, 11, 21, 2, tzinfo=UTC)
    told: list[StepSummary] = field(default_factory=list)

    def clock(self):
        """Each look is a second later."""
        self.now += timedelta(seconds=1)
        return self.now

    def order(self, number, *, state, status, action="", amount=""):
        """A payment of the gateway's, and the line of the order file that speaks of it."""
        made = Payment(f"W-{number}", f"T{number}", "EUR", "10.00", "20261120100000", state)
        if state == "paid":
            made.captured += 10
        self.gateway.seed(made)
        cells = (MERCHANT, ACCOUNT, made.order_no, "EUR", "10.00", status, AT, made.transaction_id)
        return ",".join((*cells, "", action, amount, "late" if action == "refund" else "", ""))

    def drop(self, name, *lines):
        """An order file in the inbox."""
        (self.folder / "inbox" / name).write_text("\n".join((HEADER, *lines, "")))

    @contextmanager
    def opened(self, day):
        """What the commands of a day work with."""
        variables = {
            "RECON_GATEWAY_BASE_URL": self.url,
            "RECON_SIGN_KEY": KEY,
            "RECON_DATABASE_URL": self.database,
            "RECON_CONFIG_DIR": str(self.folder / "config"),
            "RECON_SEAL_KEY": base64.b64encode(bytes(32)).decode(),
        }
        with environment_of(variables, clock=self.clock, randomness=random.Random(day)) as opened:
            yield opened

    def night(self, day):
        """A live night by the real steps, with a real workbook."""
        self.told = []
        with self.opened(day) as opened:
            ended = night.run(
                NightRequest(MERCHANT, ACCOUNT, date.fromisoformat(day), Mode.LIVE),
                environment=opened,
                workbooks=workbooks(),
                progress=self.told.append,
            )
            return Verdict(ended.verdict)

    def instruct(self, name, *rows):
        """An instruction file in the inbox."""
        common = {"merchant_id": MERCHANT, "account_id": ACCOUNT, "currency": "EUR"}
        with (self.folder / "inbox" / name).open("w", newline="") as file:
            columns = dict.fromkeys([*common, *(column for row in rows for column in row)])
            writer = csv.DictWriter(file, fieldnames=[*columns], restval="")
            writer.writeheader()
            writer.writerows([common | row for row in rows])

    def agree(self, day):
        """Two people say yes to all that waits."""
        self.declare_people()
        with self.opened(day) as opened:
            for who in PEOPLE:
                person = identify(who, code=None, environment=opened)
                approve(waiting(opened).approvals.digest, person=person, environment=opened)

    def declare_people(self):
        """Two who approve and decide."""
        (self.folder / "config" / "approvers.toml").write_text(
            "".join(f'[approvers.{who}]\nname = "{who} X"\nlimit.EUR = 999\n' for who in PEOPLE)
        )

    def ended_elsewhere(self, wanted, *, by):
        """One of them saw in the gateway's pages that a subscription ended."""
        self.declare_people()
        with self.opened(f"{self.now:%Y-%m-%d}") as opened:
            resolve(
                wanted,
                verdict="applied",
                evidence="Inactived in the portal, screenshot 7",
                person=identify(by, code=None, environment=opened),
            )

    def instructions(self):
        """All that the sheet Instructions of the newest workbook says."""
        newest = max((self.folder / "reports").glob("reconciliation-*.xlsx"))
        rows = values_of(newest.read_bytes(), "Instructions")
        return " ".join(str(cell) for row in rows for cell in row)

    def breaks(self):
        """Code, severity and reason by order number, as the newest workbook has them."""
        newest = max((self.folder / "reports").glob("reconciliation-*.xlsx"))
        rows = values_of(newest.read_bytes(), "Breaks")
        header = next(row for row in rows if "Key" in row)
        order_no, said, why = map(header.index, ("Order or batch", "Code, severity, since", "Why"))
        listed = (row for row in rows[rows.index(header) + 1 :] if row[said])
        return {row[order_no]: (*row[said].split(" · ")[:2], row[why]) for row in listed}


@pytest.fixture
def shop(tmp_path, sqlite_url):
    """A merchant whose rules know this gateway's codes."""
    for name in ("config", "inbox", "reports"):
        (tmp_path / name).mkdir()
    (tmp_path / "books.csv").write_text(
        BOOKS + f"E1,{MERCHANT},{ACCOUNT},W-5,capture,EUR,10.00,{AT}\n"
    )
    codes = "\n".join(f'{STATUS[state]} = "{state}"' for state in STATUS)
    (tmp_path / "config" / "rules.toml").write_text(
        f"[payment_status]\n{codes}\n[gateway]\namount_means = 'authorised'\n"
        "[window]\nopening_date = 2026-11-01\n"
    )
    (tmp_path / "config" / "gateway.toml").write_text("calls_per_second = 1000\n")
    (tmp_path / "config" / "limits.toml").write_text("[limits.EUR]\nnight = 100000\n")
    (tmp_path / "config" / "merchants.toml").write_text(
        f'[accounts."{MERCHANT}/{ACCOUNT}"]\nname = "Literal"\nsettle_seconds = 0\n'
        f'inbox = "{tmp_path / "inbox"}"\nreports = "{tmp_path / "reports"}"\n'
        f'ledger = {{ path = "{tmp_path / "books.csv"}" }}\n'
    )
    with literal_gateway() as (url, gateway):
        yield Shop(tmp_path, url, gateway, sqlite_url)


def test_a_night_moves_exactly_what_was_instructed(shop):
    shop.drop(
        "orders-2026-11-20.csv",
        shop.order(1, state="authorised", status="paid", action="capture", amount="10.00"),
        shop.order(2, state="authorised", status="cancelled", action="cancel", amount="10.00"),
        shop.order(3, state="in_review", status="authorised", action="review", amount="10.00"),
        shop.order(4, state="authorised", status="paid", action="capture", amount="6.00"),
        shop.order(5, state="paid", status="paid", action="refund", amount="4.00"),
    )
    verdict = shop.night("2026-11-20")
    assert verdict is not Verdict.NOT_PROVEN
    assert sorted(shop.gateway.effects) == [
        ("cancel", "T2", "10.00"),
        ("capture", "T1", "10.00"),
        ("capture", "T4", "6.00"),
        ("refund", "T5", "4.00"),
        ("review", "T3", "10.00"),
    ]
    shop.drop("orders-2026-11-21.csv", shop.order(6, state="paid", status="paid"))
    shop.now += timedelta(days=1)
    assert shop.night("2026-11-21") is not Verdict.NOT_PROVEN
    assert len(shop.gateway.effects) == 5
    assert len(list((shop.folder / "reports").glob("reconciliation-*.xlsx"))) == 2


def test_a_key_that_nobody_knows_is_not_found(shop):
    cells = (MERCHANT, ACCOUNT, "W-9", "EUR", "10.00", "paid", "2026-11-18T10:00:00Z", "")
    shop.drop("orders-2026-11-20.csv", ",".join((*cells, "", "", "", "", "")))
    assert shop.night("2026-11-20") is Verdict.BREAKS_OPEN
    asked = next(one for one in shop.told if one.step == "query")
    assert asked.figures == {"found": 0, "not_found": 2, "failed": 0, "unmapped": 0}


def test_what_a_query_shows_and_nobody_can_use_is_told(shop):
    shop.drop("orders-2026-11-20.csv", shop.order(1, state="paid", status="paid"))
    shop.gateway.payments["T1"].at = "20261320100000"
    stranger = dict.fromkeys(QUERY_ROW, "") | {"order_no": "X-99", "transaction_id": "T99"}
    shop.gateway.beside = [stranger | {"amount": "999.00", "currency": "EUR"}]
    shop.night("2026-11-20")
    sentence = next(one.sentence for one in shop.told if one.step == "query")
    assert sentence.endswith(
        "Not used of its answers: W-1: transaction_date is not a date; a row that was not asked "
        "for: order X-99, transaction T99."
    )


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
def test_a_payment_dated_at_the_end_of_all_days_hides_nothing(shop, *, zone):
    rules = shop.folder / "config" / "rules.toml"
    declared = rules.read_text().replace("[gateway]", f"[gateway]\ntimezone = '{zone}'")
    rules.write_text(f"{declared}[calendar]\ntimezone = '{zone}'\n")
    shop.drop(
        "orders-2026-11-20.csv",
        shop.order(1, state="authorised", status="paid", action="capture", amount="10.00"),
        shop.order(2, state="paid", status="paid"),
    )
    for payment in shop.gateway.payments.values():
        payment.at = "99991231235959"
    shop.now += timedelta(hours=4)
    with shop.opened("2026-11-20") as opened:
        stop_sending(by="ann", reason="looks odd", environment=opened)
    shop.night("2026-11-20")
    assert shop.breaks()["W-2"][0] == "MISSING_IN_LEDGER"


PAYEE = {
    "beneficiary.entity_type": "PERSONAL",
    "beneficiary.first_name": "Ana",
    "beneficiary.last_name": "Example",
    "beneficiary.bank_details.account_name": "Ana Example",
    "beneficiary.bank_details.account_currency": "EUR",
    "beneficiary.bank_details.iban": "DE89370400440532013000",
    "payment_date": "2026-11-23",
    "payment_method": "SWIFT",
}


def test_a_doubt_that_only_the_portal_ends_names_what_to_look_up_there(shop):
    """A payout by its payee and both ids, the end of a subscription by the gateway's id of it."""
    shop.gateway.instead = {"payout": None, "cancelsubscription": None}
    shop.gateway.subscriptions = {"S77": "Gold plan"}
    shop.instruct(
        "instructions-1.csv",
        {"kind": "payout", "request_id": "PO-1", "amount": "250.00", **PAYEE},
        {
            "kind": "cancel_subscription",
            "request_id": "E-1",
            "recurring_id": "S77",
            "contract_name": "Gold plan",
        },
    )
    shop.night("2026-11-20")
    shop.agree("2026-11-20")
    shop.now += timedelta(days=1)
    shop.night("2026-11-21")
    sent = {operation: known for operation, known, _ in shop.gateway.effects}
    with shop.opened("2026-11-21") as opened:
        ((_, doubts),) = people.status(opened)
    assert {one.what: one.subject for one in doubts} == {
        "cancel_subscription undecided": "subscription S77",
        "payout in doubt": "payee DE…3000, request_id PO-1",
    }
    (payout,) = [one for one in doubts if one.what == "payout in doubt"]
    assert f"The gateway knows it as request {sent['payout']}." in payout.next_step
    assert set(sent) == {"payout", "cancelsubscription"}


def test_a_payout_of_which_other_money_left_is_in_doubt(shop):
    shop.gateway.figures = {"amount_payer_pays": 9_999_999.0}
    shop.instruct(
        "instructions-1.csv", {"kind": "payout", "request_id": "PO-1", "amount": "250.00", **PAYEE}
    )
    shop.drop("orders-2026-11-20.csv", shop.order(5, state="paid", status="paid"))
    shop.night("2026-11-20")
    shop.agree("2026-11-20")
    shop.now += timedelta(days=1)
    shop.night("2026-11-21")
    with shop.opened("2026-11-21") as opened:
        ((_, (doubt,)),) = people.status(opened)
    assert doubt.what == "payout in doubt"
    assert "the payer pays 9999999.0" in shop.instructions()
    assert "payee DE…3000" in shop.instructions()
    assert {code for code, _, _ in shop.breaks().values()} == {"PAYOUT_UNCONFIRMED"}


END = {"kind": "cancel_subscription", "recurring_id": "S77", "contract_name": "Gold plan"}


def test_a_refused_end_of_a_subscription_is_open_until_it_ends(shop):
    """The customer is charged again: a break, HIGH, until a later end of it is confirmed."""
    shop.now += timedelta(days=3)
    shop.drop("orders-2026-11-23.csv", shop.order(5, state="paid", status="paid"))
    shop.instruct("instructions-1.csv", END | {"request_id": "E-1"})
    assert shop.night("2026-11-23") is Verdict.BREAKS_OPEN
    assert shop.breaks()[""][:2] == ("SUBSCRIPTION_NOT_ENDED", "HIGH")
    assert "subscription S77" in shop.instructions()

    shop.gateway.subscriptions = {"S77": "Gold plan"}
    shop.instruct("instructions-2.csv", END | {"request_id": "E-2"})
    shop.drop("orders-2026-11-24.csv", shop.order(2, state="cancelled", status="cancelled"))
    shop.now += timedelta(days=1)
    assert shop.night("2026-11-24") is Verdict.BREAKS_OPEN
    shop.now += timedelta(hours=12)
    shop.agree("2026-11-24")
    shop.drop("orders-2026-11-25.csv", shop.order(3, state="cancelled", status="cancelled"))
    shop.now += timedelta(hours=12)
    assert (shop.night("2026-11-25"), shop.breaks()) == (Verdict.RECONCILED, {})
    assert shop.gateway.took("cancelsubscription") == [("cancelsubscription", "S77", "")]


def test_a_refused_end_is_over_when_two_people_saw_it_ended_elsewhere(shop):
    shop.now += timedelta(days=3)
    shop.drop("orders-2026-11-23.csv", shop.order(5, state="paid", status="paid"))
    shop.instruct("instructions-1.csv", END | {"request_id": "E-1"})
    assert shop.night("2026-11-23") is Verdict.BREAKS_OPEN
    with shop.opened("2026-11-23") as opened, opened.store.reading() as connection:
        wanted = connection.execute(select(instruction.c.instruction_id)).scalar_one()

    shop.ended_elsewhere(wanted, by=PEOPLE[0])
    shop.drop("orders-2026-11-24.csv", shop.order(2, state="cancelled", status="cancelled"))
    shop.now += timedelta(days=1)
    assert shop.night("2026-11-24") is Verdict.BREAKS_OPEN
    with shop.opened("2026-11-24") as opened:
        ((_, (case,)),) = people.status(opened)
    assert case.what == "cancel_subscription contradicted"
    assert case.next_step.startswith("Said to be done elsewhere. ann X says applied: a second must")

    shop.ended_elsewhere(wanted, by=PEOPLE[1])
    shop.drop("orders-2026-11-25.csv", shop.order(3, state="cancelled", status="cancelled"))
    shop.now += timedelta(days=1)
    assert (shop.night("2026-11-25"), shop.breaks()) == (Verdict.RECONCILED, {})
    with pytest.raises(UsageError, match="there is nothing to decide"):
        shop.ended_elsewhere(wanted, by=PEOPLE[0])
    assert shop.gateway.took("cancelsubscription") == []
