"""What was planned and approved is bound: a change of the journal's table past it is found."""

import csv
import random
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from recon.model.errors import ConfigurationError, GateClosedError
from recon.model.nights import Mode
from recon.steps.admin.verify import verify
from recon.store.money.journal import StoredJournal
from tests.recon.steps.conftest import UNREAD
from tests.recon.steps.runtime.test_endorsed import settled, wait_for_two, yes

SQL = "UPDATE instruction SET {} WHERE kind = 'refund'"
CHANGES = [
    ("amount = amount + 100", "its amount is"),
    ("kind = 'cancel'", "its kind is cancel, bound was refund"),
]
"""Each field is changed in `tests/recon/store/database/test_record.py`."""


def approve_it(merchant):
    """The same refund, approved by two people."""
    wait_for_two(merchant)
    with merchant.environment() as environment:
        yes(environment, "jo", "kim")


def change(merchant, what):
    """Past the journal, as whoever has the database could."""
    with closing(sqlite3.connect(merchant.sqlite_path)) as connection:
        connection.execute(SQL.format(what))
        connection.commit()


@pytest.mark.parametrize(("what", "said"), CHANGES, ids=[what for what, _ in CHANGES])
def test_what_was_changed_after_two_people_approved_it_is_not_sent(begun, what, said):
    """The gate is closed with the field's name, and `recon verify` says the same."""
    merchant = begun(approve_it)
    change(merchant, what)
    merchant.move_money()
    with merchant.environment() as environment:
        problems = verify(environment, reading=UNREAD).problems

    assert merchant.effects() == []
    assert said in settled(merchant)
    assert "changed past the journal" in settled(merchant)
    assert any(said in one for one in problems)


def test_a_change_between_the_gate_and_the_claim_ends_the_night(begun):
    """The last look is in the transaction that claims: nothing left, nothing was claimed."""
    merchant = begun(approve_it)

    def mark(at):
        if at == "before claim":
            change(merchant, "amount = amount + 100")

    with (
        merchant.environment() as environment,
        pytest.raises(GateClosedError, match=r"its amount is 2\.00 EUR, bound was 1\.00 EUR"),
    ):
        merchant.run(replace(environment, crash_point=mark))

    assert merchant.effects() == []
    assert merchant.instruction_states() == {"approved": 1}


@pytest.mark.parametrize("stated_before", [(), ("jo",)], ids=["first", "second"])
def test_nobody_approves_what_the_history_did_not_bind(begun, stated_before):
    """Whoever looks at a changed amount would say yes to it: the word is refused."""
    merchant = begun(wait_for_two)
    with merchant.environment() as environment:
        yes(environment, *stated_before)
        change(merchant, "amount = amount + 100")
        with pytest.raises(GateClosedError, match=r"its amount is 2\.00 EUR"):
            yes(environment, "kim")
    merchant.move_money()

    assert merchant.effects() == []
    assert merchant.instruction_states() == {"planned": 1}


ACTION_CHANGES = [
    ("UPDATE order_action SET action_amount = 900", "do not say what arrived"),
    ("DELETE FROM order_action", "its table has 0 of 2 rows"),
    (
        "INSERT INTO order_action SELECT action_id + 100, {rest} FROM order_action WHERE line = 2",
        "2 arrived, 3 wait",
    ),
]
"""Each column is changed in `tests/recon/store/nights/test_reported_rows.py`."""


def ask_for_two(merchant):
    """Two refunds of 1.00 that a file asks for and a rule approves."""
    paid = [one for one in merchant.payments("captured") if one.currency == "EUR"][:2]
    asked = {"status": "partially_refunded", "refund_amount": "1.00", "action_amount": "1.00"}
    rows = [merchant.order(one, action="refund", **asked) for one in paid]
    merchant.drop("orders.csv", *rows)


def night_with(merchant, statement):
    """A night in which the database's owner does this after the files were read; its problems."""
    with closing(sqlite3.connect(merchant.sqlite_path)) as connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(order_action)")]

    def progress(told):
        merchant.told.append(told)
        if told.step == "ingest" and statement:
            with closing(sqlite3.connect(merchant.sqlite_path)) as connection:
                connection.execute(statement.format(rest=", ".join(names[1:])))
                connection.commit()

    with merchant.environment() as environment:
        merchant.run(environment, progress=progress)
        return [*verify(environment, reading=UNREAD).problems]


@pytest.mark.parametrize(
    ("statement", "said"), ACTION_CHANGES, ids=[what[:50] for what, _ in ACTION_CHANGES]
)
def test_what_was_changed_between_its_arrival_and_its_planning_is_not_sent(
    merchant, statement, said
):
    """Rows of a file are changed, hidden, added or taken away: none moves money, it is said."""
    ask_for_two(merchant)
    problems = night_with(merchant, statement)

    assert merchant.effects() == []
    assert merchant.instruction_states() == {}
    assert any(said in one and "orders.csv (number" in one for one in problems), problems
    if "its table has" not in said:  # nothing is left that could be planned, and nothing is sent
        assert said in settled(merchant)


def test_a_key_that_changes_while_a_night_runs_is_the_next_nights(merchant, monkeypatch):
    """A night goes on by the key it began with; one that does not fit stops the next before money.

    A gateway that changes its own key meanwhile signs wrongly: such a batch is doubted, and sending
    stops.
    """
    key = Path(merchant.folder) / "sign.key"
    key.write_text(merchant.variables.pop("RECON_SIGN_KEY"))
    key.chmod(0o600)
    merchant.variables["RECON_SIGN_KEY_FILE"] = str(key)
    first, second = [one for one in merchant.payments("captured") if one.currency == "EUR"][:2]
    merchant.drop("first.csv", merchant.order(first, status="refunded", action="refund"))
    claim = StoredJournal.claim

    def changed(self, *given, **named):
        key.write_text("another key")
        claim(self, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(StoredJournal, "claim", changed)
        merchant.night()
    kept = merchant.instruction_states()
    merchant.drop("second.csv", merchant.order(second, status="refunded", action="refund"))
    with pytest.raises(ConfigurationError, match="check the sign key"):
        merchant.night()

    assert (key.read_text(), kept) == ("another key", {"confirmed": 1})
    assert len(merchant.effects()) == 1


NIGHTS = ("2026-11-20", "2026-11-21", "2026-11-22", "2026-11-23")
HEADER = (
    *("merchant_id", "account_id", "order_no", "currency", "amount", "status", "ordered_at"),
    *("updated_at", "expected_captured_amount", "refund_amount", "action", "action_amount"),
)
STATUSES = {
    "capture": ("authorised", "pending", "paid"),
    "refund": ("paid", "partially_refunded", "refunded"),
    "cancel": ("authorised", "pending", "refunded", "cancelled", "failed"),
}
EVERY_STATUS = (*STATUSES["capture"], *STATUSES["refund"][1:], *STATUSES["cancel"][3:])
NONE = Decimal(0)
Row = Mapping[str, str]


def cell(row, name):
    return Decimal(row[name]) if row.get(name) else None


def most(row):
    """The row's own figure for its action, and whether earlier actions count towards it."""
    whole, refunded = Decimal(row["amount"]), cell(row, "refund_amount")
    captured = cell(row, "expected_captured_amount")
    if row["action"] == "refund":
        if refunded is not None and not (refunded == 0 and row["status"] == "paid"):
            return refunded, True
        return captured if captured is not None else whole, row["status"] == "refunded"
    if row["action"] == "capture" and captured is not None:
        return captured, True
    return whole, False


def borne_out(row, *, moved, before):
    """Whether a row lets so much move by its action, where so much had moved before."""
    figure, is_total = most(row)
    bounds = [figure, Decimal(row["amount"])]
    if (
        row["action"] != "cancel"
        and (captured := cell(row, "expected_captured_amount")) is not None
    ):
        bounds.append(captured)
    return row["status"] in STATUSES[row["action"]] and moved + before * is_total <= min(bounds)


def asked(row, *, before):
    """What a row asks for, where so much had moved before."""
    figure, is_total = most(row)
    rest = figure - before if is_total and row["action"] == "refund" else figure
    given = cell(row, "action_amount")
    return given if given is not None else rest


@dataclass
class Shop:
    """A merchant whose files say anything; `told` has every row of an order, oldest first."""

    merchant: Any
    chance: random.Random
    told: dict[str, list[Row]] = field(default_factory=dict)
    moved: dict[tuple[str, str], Decimal] = field(default_factory=dict)
    """By order and operation, in earlier nights."""
    seen: int = 0

    def amount_of(self, payment, share):
        """Part of a payment in the decimals of its currency."""
        whole = Decimal(payment.amount)
        return str((whole * Decimal(str(share))).quantize(whole))

    def row(self, payment, *, night):
        """Any row about a payment; half of them are as a careful merchant writes them."""
        usual = ("capture", "capture", "cancel") if payment.state == "authorised" else ("refund",)
        action = self.chance.choice(usual)
        fits = self.chance.random() < 0.5
        status = self.chance.choice(STATUSES[action] if fits else EVERY_STATUS)
        shares = (0.25, 0.5, 1) if fits else (0, 0.25, 0.5, 1)
        figures = {"expected_captured_amount": "", "refund_amount": "", "action_amount": ""}
        for name, odds in zip(figures, (0.3, 0.6, 0.4), strict=True):
            if self.chance.random() < odds and not (action == "cancel" and name == "action_amount"):
                figures[name] = self.amount_of(payment, self.chance.choice(shares))
        if status == "partially_refunded" and not figures["refund_amount"]:
            figures["refund_amount"] = self.amount_of(payment, 0.5)
        plain = self.merchant.order(payment, status=status, action=action)
        return plain | figures | {"updated_at": f"{NIGHTS[night]}T18:00:00Z"}

    def tell(self, payments, *, night):
        """A file of tonight: new rows, rows told again, and rows that say another thing now."""
        rows = []
        for payment in payments:
            known = self.told.setdefault(payment.order_no, [])
            if known and self.chance.random() < 0.4:
                continue
            row = self.row(payment, night=night)
            if known and self.chance.random() < 0.5:
                changed = {"updated_at": row["updated_at"]}
                if self.chance.random() < 0.5:
                    changed["status"] = self.chance.choice(EVERY_STATUS)
                if self.chance.random() < 0.3:
                    changed["refund_amount"] = self.amount_of(payment, 0.75)
                row = {**known[-1], **changed}
            if row["status"] == "partially_refunded" and not row["refund_amount"]:
                continue
            known.append(row)
            rows.append(row)
        name = self.chance.choice(("orders.csv", f"orders-{night}.csv"))
        with (self.merchant.inbox / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=HEADER)
            writer.writeheader()
            writer.writerows(rows)

    def effects(self):
        """What the gateway did since the last look, each held against the rows told so far."""
        every = self.merchant.effects()
        new: dict[tuple[str, str], Decimal] = {}
        for effect in every[self.seen :]:
            key = (effect["order_no"], effect["operation"])
            assert key not in new, f"{key} moved twice in a night"
            new[key] = Decimal(effect["amount"])
        self.seen = len(every)
        for (order_no, operation), amount in new.items():
            before = self.moved.get((order_no, operation), NONE)
            rows = [row for row in self.told[order_no] if row["action"] == operation]
            wanted = [row for row in rows if asked(row, before=before) == amount]
            assert wanted, (
                f"{operation} of {amount}, before it {before}: no row asks for it: {rows}"
            )
            newest = {**self.told[order_no][-1], "action": operation}
            assert borne_out(newest, moved=amount, before=before), (amount, before, newest)
            self.moved[order_no, operation] = before + amount
        return new


@pytest.mark.parametrize("seed", range(3))
def test_every_effect_is_borne_out_by_its_row(merchant, seed):
    """Whatever rows say and ask, over nights and versions: nothing moves that its row denies.

    And what a row asks for and bears out moves in its first night, in any currency.
    """
    shop = Shop(merchant, random.Random(seed))
    payments = [*merchant.payments("authorised")[:16], *merchant.payments("captured")[:24]]
    shop.tell(payments, night=0)
    merchant.move_money(date=NIGHTS[0])
    first = shop.effects()
    must = {
        (row["order_no"], row["action"]): asked(row, before=NONE)
        for rows in shop.told.values()
        for row in rows
        if asked(row, before=NONE) > 0
        and borne_out(row, moved=asked(row, before=NONE), before=NONE)
    }

    assert first == must
    assert 5 < len(first) < len(payments) - 5
    for number in range(1, len(NIGHTS)):
        merchant.wait(hours=24)
        shop.tell(payments, night=number)
        merchant.move_money(date=NIGHTS[number])
        shop.effects()


@pytest.mark.parametrize("seed", range(10, 12))
def test_what_was_approved_goes_only_as_far_as_the_newest_rows_say(merchant, seed):
    """A dry run approves by rule; by the live night its rows may say cancelled, or less."""
    shop = Shop(merchant, random.Random(seed))
    payments = [*merchant.payments("authorised")[:16], *merchant.payments("captured")[:24]]
    shop.tell(payments, night=0)
    merchant.move_money(date=NIGHTS[0], mode=Mode.DRY_RUN)
    approved = merchant.instruction_states()["approved"]
    merchant.wait(hours=24)
    shop.tell(payments, night=1)
    merchant.move_money(date=NIGHTS[1])

    assert 0 < len(shop.effects()) < approved
