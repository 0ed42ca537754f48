"""Whole live nights among bent files of every kind, about payments that the gateway knows.

What may move is what a strict reader, which shares no code with ours, reads in them. `make
hostile-nights` plays HOSTILE_NIGHTS of them from HOSTILE_FROM on; each is made from its own number
alone.
"""

import os
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from recon.model.money import parse_minor_units
from recon.model.terms import Verdict
from recon.steps.admin.verify import verify_night
from tests.recon.files.bank_documents import ROUTINE, camt, entry, payment
from tests.recon.files.kind_cases import OWN, case
from tests.recon.files.strict_reader import NotAFile
from tests.recon.files.test_bank_fuzz import bent
from tests.recon.files.test_kind_fuzz import expected
from tests.recon.steps.files.test_bank_nights import inbox, name_bank
from tests.recon.steps.files.test_settlement_files import declare, line, paid_out, place, send
from tests.recon.steps.test_instruction_files import _refund, drop_instructions

NIGHTS = int(os.environ.get("HOSTILE_NIGHTS", "4"))
FROM = int(os.environ.get("HOSTILE_FROM", "0"))
FILES_A_NIGHT = 8
LEDGERS = 8
"""One ledger in so many is bent: without books refunds wait, and little else would be played."""
PAYMENTS = (1, 1, 2, 6)
"""That bent files are about: of a single one many files ask for the same."""
MOVES = ("capture", "refund", "cancel")


def begin(merchant):
    """A merchant with settlement files and a bank."""
    place(merchant).mkdir()
    inbox(merchant).mkdir()
    declare(merchant)
    name_bank(merchant)


@dataclass(frozen=True)
class Move:
    """What the gateway shall do, or did."""

    kind: str
    order_no: str
    amount: int
    """Minor units; 0: the whole payment."""


def rows_about(payments, *, number):
    """Rows of each kind of file, all of them right, about some payments; ids of that file alone."""
    rows: dict[str, list[Sequence[str]]] = {
        kind: [] for kind in ("orders", "ledger", "settlement", "instructions")
    }
    for one in payments:
        key, money, at = (*OWN, one.order_no), (one.currency, one.amount), one.ordered_at
        paid, blank = (*key, *money, "paid", at, one.transaction_id), ("", "", at)
        part = {"JPY": "1", "KWD": "0.500"}.get(one.currency, "0.50")
        rows["orders"] += [
            (*paid, *blank, *4 * ("",)),
            (*paid, *blank, "refund", part, "late", f"R-{number}-{{n}}"),
            (*paid, *blank, "refund", "", "", ""),
        ]
        rows["instructions"] += [
            (
                *OWN,
                "refund",
                f"R-{number}-{{n}}",
                *key[2:],
                one.transaction_id,
                one.currency,
                part,
                *4 * ("",),
            ),
            (
                *OWN,
                "refund",
                f"S-{number}-{{n}}",
                *key[2:],
                "",
                one.currency,
                one.amount,
                *4 * ("",),
            ),
        ]
        rows["ledger"] += [
            (f"E-{number}-{{n}}", *key, "capture", *money, at, one.transaction_id, *4 * ("",))
        ]
        batch = ("B-1", *OWN, "2026-11-20", "capture", one.order_no, one.transaction_id, "")
        nothing = "0" if one.currency == "JPY" else "0.00"
        rows["settlement"] += [(*batch, *money, nothing, one.amount, *4 * ("",))]
    return rows


class HostileNight:
    """One night: its files, what a strict reader makes of them, and what came of it."""

    def __init__(self, number, merchant):
        self.merchant = merchant
        self._numbers = range(number * FILES_A_NIGHT, (number + 1) * FILES_A_NIGHT)
        self._chance = random.Random(f"hostile night {number}")
        captured = merchant.payments("captured")
        self._chance.shuffle(captured)
        self._routine, *self._bent = captured[: self._chance.choice(PAYMENTS) + 1]
        self._due = self._chance.choice(merchant.payments("authorised"))
        self.asked: list[Move] = []
        self._is_without_ledger = False

    def arrive(self):
        """All files of the night."""
        calm, merchant = self._routine, self.merchant
        refund = merchant.order(calm, action="refund", status="refunded")
        capture = merchant.order(self._due, action="capture", status="paid")
        merchant.drop("calm.csv", refund, capture)
        for kind, one in (("capture", self._due), ("refund", calm)):
            self.asked.append(Move(kind, one.order_no, _units(one.amount, one.currency)))
        self._ask_twice(self._bent[0])
        settled = line(calm, batch_id="CALM-0001")
        send(merchant, "calm.csv", settled, paid_out(settled))
        inner = f"<NtryDtls>{payment('250.50', reference='ROUTINE-0001')}</NtryDtls>"
        statement = camt(ROUTINE + entry("250.50", inner=inner)).encode()
        (inbox(merchant) / "bent.xml").write_bytes(bent(statement, chance=self._chance))
        for number in self._numbers:
            right = rows_about(self._bent, number=number)
            kind, name, content, known = case(number, right=right)
            folder = place(merchant) if kind == "settlement" else merchant.inbox
            path = folder / f"{name.partition('.')[0]}-{number}.{name.rpartition('.')[2]}"
            if kind == "ledger":
                if number % LEDGERS:
                    continue
                path = merchant.folder / "ledger.csv"  # that one is a file, not a folder
                self._is_without_ledger = True  # perhaps: it may be readable still
            path.write_bytes(content)
            self.asked += _asked(kind, name, content, known=known)

    def _ask_twice(self, one):
        """The same refund by two files of instructions, under two ids."""
        part = {"JPY": "2", "KWD": "0.250"}.get(one.currency, "0.25")
        for request_id in ("again-1", "again-2"):
            asked = _refund(one, request_id=request_id, amount=part)
            drop_instructions(self.merchant, asked, name=f"instructions-{request_id}.csv")
        self.asked.append(Move("refund", one.order_no, _units(part, one.currency)))

    def untruths(self, verdict):
        """What is wrong with what came of it."""
        merchant = self.merchant
        if verdict is Verdict.NOT_PROVEN:
            yield "a total does not hold"
        run_id = merchant.newest().run_id
        with merchant.environment() as environment:
            yield from verify_night(environment, name=run_id).problems
        done = [
            Move(row["operation"], row["order_no"], _units(row["amount"], row["currency"]))
            for row in merchant.effects()
        ]
        yield from (f"twice: {move}" for move, count in Counter(done).items() if count > 1)
        whole = {one.order_no: _units(one.amount, one.currency) for one in self._whole()}
        may = {Move(m.kind, m.order_no, m.amount or whole.get(m.order_no, 0)) for m in self.asked}
        yield from (f"nobody asked for {move}" for move in done if move not in may)
        waits = () if self._is_without_ledger else (self.asked[1],)
        for move in (self.asked[0], *waits):
            if move not in done:
                yield f"a good file asked for {move}, which did not happen"
        broken = {name: count for name, count in merchant.invariants().items() if count}
        if any(broken.get(name) for name in ("over_refunded", "over_captured")):
            yield f"the gateway: {broken}"

    def _whole(self):
        return [self._routine, self._due, *self._bent]


def _asked(kind, name, content, *, known):
    """What a strict reader would do by a file."""
    if kind not in {"orders", "instructions"}:
        return
    try:
        rows = expected(kind, name, content, known)
    except NotAFile:
        return
    for _, row in rows:
        word = row["action"] if kind == "orders" else row["kind"]
        amount = row["action_amount"] if kind == "orders" else row["amount"]
        if word in MOVES:
            yield Move(str(word), str(row["order_no"]), int(amount or 0))


def _units(amount, currency):
    return parse_minor_units(amount, currency=currency)


def test_among_bent_files_only_what_was_asked_for_moves(begun):
    """A night among them ends proven or says what is missing; good files are worked on."""
    verdicts: Counter[Verdict] = Counter()
    moved = asked = 0
    for number in range(FROM, FROM + NIGHTS):
        night = HostileNight(number, begun(begin))
        night.arrive()
        # A second start: of several refunds of a payment each night sends one.
        verdict = [night.merchant.night() for _ in range(2)][-1]
        untruths = [*night.untruths(verdict)]
        assert not untruths, (f"HOSTILE_FROM={number} HOSTILE_NIGHTS=1", untruths)
        verdicts[verdict] += 1
        moved += len(night.merchant.effects())
        asked += len(night.asked)
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    sys.stdout.write(f"{NIGHTS} nights from {FROM} on: {told}; {moved} of {asked} moved\n")
    assert moved > NIGHTS
