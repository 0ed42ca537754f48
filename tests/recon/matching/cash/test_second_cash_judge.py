"""Random months of batches and books, judged by the engine and by a judge that shares nothing."""

import hashlib
import random
from collections import Counter
from datetime import UTC, datetime

import pandas as pd
import pytest

from recon.model.terms import SourceKind
from tests.proving import failed
from tests.recon.matching.cash.second_cash_judge import CashJudge, Held, Row, Terms
from tests.recon.matching.conftest import AS_OF, OF_GROUPS

MERCHANTS = 60
DAYS = ("2026-10-01", "2026-10-02", "2026-11-10", "2026-11-16", "2026-11-19", "2026-11-20")
BOOKED = tuple(
    datetime(*day, tzinfo=UTC)
    for day in ((2026, 10, 5, 12), (2026, 11, 12, 12), (2026, 11, 19, 20), (2026, 11, 20, 20))
)
KINDS = ("capture", "capture", "refund", "adjustment", "fee", "reserve", "reserve", "chargeback")
SIGNS = {"capture": 1, "refund": -1, "chargeback": -1, "fee": 0}
BLANK = {"order_no": "", "transaction_id": "", "reference_no": ""}
OF_UNREAD = (("currency", "batch_id"), ("batch_id",), ("currency",), ())
"""What can be read of a line that cannot."""
GROUPS = ("fees", "reserves", "payout")
OF_HELD = ("HELD_BACK", "UNEXPECTED_RECEIPT", "CURRENCY_MISMATCH")


class Month:
    """Lines and entries of one merchant; amounts often agree."""

    def __init__(self, pick, *, merchant, fees_per):
        self.pick, self.merchant, self.fees_per = pick, merchant, fees_per
        self.lines: list[Row] = []
        self.entries: list[Row] = []
        self.unread: list[Row] = []
        """Lines that nobody can read, with what can be read of them."""
        for account in pick.choice(("1", "1", "12")):
            for currency in pick.choice((("EUR",), ("EUR",), ("EUR", "USD"))):
                owner = {"merchant_id": merchant, "account_id": account, "currency": currency}
                for number in range(pick.choice((1, 1, 2, 3, 4))):
                    self._batch(f"B{number}", owner=owner)
        pick.shuffle(self.lines)
        pick.shuffle(self.entries)
        if self.lines and pick.random() < 0.3:
            lost = self.lines.pop()
            names = ("merchant_id", "account_id", *pick.choice(OF_UNREAD))
            blank = {"currency": "", "batch_id": ""}
            self.unread.append({**blank, **{name: lost[name] for name in names}})

    def _batch(self, batch, *, owner):
        pick, day = self.pick, self.pick.choice(DAYS)
        cells = {**BLANK, **owner, "batch_id": batch, "settled_on": day}
        net = sum(self._line(cells) for _ in range(pick.choice((0, 1, 1, 2, 3))))
        if pick.random() < 0.25:
            return
        paid = net + pick.choice((0, 0, 0, -50, 50, -100, 100, -net))
        rows = (paid - 30, 30) if pick.random() < 0.15 else (paid,)
        for row in rows:
            payout = {"entry_type": "payout", "gross": row, "fee": 0, "net": row}
            self.lines.append({**cells, **payout})
        if paid and pick.random() < 0.75:
            named = pick.choice(("order_no", "reference_no", "reference_no", "transaction_id"))
            labels = {named: batch} if named != "transaction_id" else {}
            labels = labels if pick.random() < 0.8 else {"reference_no": "B9"}
            self._entry("payout", paid + pick.choice((0, 0, 0, 0, 10)), owner=owner, **labels)

    def _line(self, cells):
        pick = self.pick
        kind = pick.choice(KINDS)
        gross = SIGNS.get(kind, pick.choice((1, -1))) * pick.choice((100, 200, 300, 500))
        fee = pick.choice((5, 10, -5) if kind == "fee" else (0, 5, 10, 10))
        fee *= kind != "reserve"
        key = {"order_no": f"A{pick.randint(1, 3)}", "transaction_id": f"T{pick.randint(1, 3)}"}
        key = key if kind in {"capture", "refund", "chargeback"} else {}
        money = {"entry_type": kind, "gross": gross, "fee": fee, "net": gross - fee}
        self.lines.append({**cells, **key, **money})
        month = cells["settled_on"][:7]
        named = pick.choice(({}, {"reference_no": cells["batch_id"]}, {"reference_no": month}))
        owner = {name: cells[name] for name in ("merchant_id", "account_id", "currency")}
        wrong = pick.choice((0, 0, 0, 0, 0, 5, -3, 100))
        if fee and pick.random() < 0.8:
            self._entry("fee", fee + wrong, owner=owner, **key, **named)
        if kind == "reserve" and pick.random() < 0.8:
            self._entry("reserve", wrong - gross, owner=owner)
        return gross - fee

    def _entry(self, kind, amount, *, owner, **labels):
        if amount:
            kind += "" if amount > 0 else "_reversal"
            at = self.pick.choice(BOOKED)
            money = {"entry_type": kind, "amount": abs(amount), "booked_at": at}
            own = {"entry_id": f"{self.merchant}-{len(self.entries)}"}
            self.entries.append({**BLANK, **owner, **labels, **money, **own})

    def write_off(self, findings):
        """Entries that name broken groups, some of another amount than these differ by."""
        for broken in findings:
            names = [broken.key]
            kind, *rest = broken.key.split(":")
            if kind == "payout" and self.fees_per != "batch":
                names += rest[1:]
            fits = kind in GROUPS and broken.state != "pending" and not broken.flags
            if fits and self.pick.random() < 0.1:
                owner = dict(
                    zip(("merchant_id", "account_id", "currency"), broken.account_key, strict=True)
                )
                amount = abs(broken.settled - broken.booked) + self.pick.choice((0, 0, 0, 1))
                kind = self.pick.choice(("write_off", "adjustment"))
                field = self.pick.choice(("order_no", "reference_no"))
                labels = {field: self.pick.choice(names)}
                self._entry(kind, amount, owner=owner, **labels)


@pytest.mark.parametrize("fees_per", ["balance", "payment", "batch", "day", "month"])
def test_the_second_judge_comes_to_the_same(new_case, fees_per):
    """What is held, each group's sums, state and code are those of the contract read aloud."""
    opened = fees_per in {"balance", "month"}
    opening = {"opening_payable": 70, "opening_reserve": 150} if opened else {}
    terms = Terms(fees_per, {"EUR": 70} if opened else {}, {"EUR": 150} if opened else {})
    case, pick = new_case(), random.Random(f"cash {fees_per}")
    lines, entries, unread = [], [], []
    for number in range(MERCHANTS):
        month = Month(pick, merchant=f"M{number}", fees_per=fees_per)
        alone = CashJudge(month.lines, entries=month.entries, terms=terms, as_of=AS_OF)
        month.write_off(alone.findings())
        lines += month.lines
        unread += month.unread
        entries += month.entries
    for line in lines:
        case.line(**line)
    for entry in entries:
        case.entry(**entry)
    for cells in unread:
        # Each is of a file of its own batch, or of one that tells of all of its merchant.
        case.reject(kind=SourceKind.SETTLEMENT, column="net", **{"order_no": "", **cells})
    result = case.ruled(ledger={"fees_per": fees_per}, settlement={"EUR": opening}).proven()
    assert failed(result) == []
    classify = CashJudge(lines, entries=entries, terms=terms, as_of=AS_OF, unread=unread)
    assert Counter(_listed(result)) == Counter(classify.held())
    findings = classify.findings()
    assert {row.state for row in findings} > {
        "pending",
        "unread",
        *OF_HELD[:2],
        "FEE_BOOKED_DIFFERS",
    }
    assert sorted(_rows_of(result, findings=findings)) == sorted(map(_shown, findings))


def _shown(row):
    """What both judges say of a finding; how much is held only where it is a break."""
    is_group = row.key.split(":")[0] in GROUPS
    exposed = abs(row.settled) if row.state not in {"pending", "unread"} else 0
    sums = (row.settled, row.booked) if is_group else (exposed, 0)
    return (*row.account_key, row.key, row.state, *sums, row.flags)


def _listed(result):
    reserves: Counter[tuple[str, str, str]] = Counter()
    for row in result.held.to_dict("records"):
        account_key = row["merchant_id"], row["account_id"], row["currency"]
        if row["what"] == "reserve":
            reserves[account_key] += row["amount"]
        else:
            yield Held(account_key, row["what"], row["batch_id"], row["amount"])
    for account_key, amount in reserves.items():
        if amount:
            yield Held(account_key, "reserve", "", amount)


def _rows_of(result, *, findings):
    """The rows of the result; ids are digests of keys, the second where a set has it."""
    keys = {_id(row, number=number): row.key for row in findings for number in (1, 2)}
    alone = result.breaks["order_no"].eq("") & result.breaks["transaction_id"].eq("")
    broken = result.breaks[alone & result.breaks["code"].isin(OF_GROUPS)]
    waiting = result.pending[result.pending["order_no"].eq("")]
    unread = result.unverified[result.unverified["order_no"].eq("")].assign(code="unread")
    for row in [row for rows in (broken, waiting, unread) for row in rows.to_dict("records")]:
        key = row["entry_id"] if "entry_id" in row else keys.get(row["break_id"], row["break_id"])
        sums = [
            0 if row[name] is None else row[name] for name in ("gateway_amount", "ledger_amount")
        ]
        sums = [0 if pd.isna(amount) else int(amount) for amount in sums]
        if key.split(":")[0] in {"held", "beyond"}:
            sums = [row.get("exposure", 0), 0]
        account_key = row["merchant_id"], row["account_id"], row["currency"]
        yield (*account_key, key, row.get("code", "pending"), *sums, row["flags"])


def _id(row, *, number):
    text = "\x1f".join((*row.account_key[:2], row.key, str(number)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
