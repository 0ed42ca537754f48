"""The folders of a month's nights, written from what could be known by then."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from recon.archive.schemas import SCHEMAS
from recon.month.stated import EARLIER_READ
from recon.month.statement import MonthNight
from tests.recon.steps.month.month_truth import ACCOUNT, MERCHANT, Entry, MonthTruth, Sale, moves

CLEARING, FEES = "clearing", "fees"
ACCOUNTS = ("sales", "refunds", "chargebacks")
OTHER = "2"
"""An account whose rows lie in the same files."""
Row = dict[str, Any]
_KEY = {"merchant_id": MERCHANT, "account_id": ACCOUNT}


def nights_of(
    truth: MonthTruth, folder: Path, *, every: int = 1, days: Sequence[date] = ()
) -> list[MonthNight]:
    """Every night of a month, each so manyth and the newest, or those of some days, written."""
    folders = NightFolders(truth)
    whole = folders.nights()
    days = days or [*whole[:-1:every], whole[-1]]
    before = ["", *(f"run-{day}" for day in days)]
    return [
        MonthNight(
            number,
            f"run-{day}",
            day.isoformat(),
            "rules",
            folders.write(folder, day),
            before[number],
            ledger_since=folders.ledger_since(day),
        )
        for number, day in enumerate(days)
    ]


def earlier_of(truth: MonthTruth, folder: Path) -> list[MonthNight]:
    """The nights before those of `nights_of`, since the first sale; as a month asks for them."""
    folders = NightFolders(truth)
    days = [] if truth.is_first else [*days_of(truth.begin, truth.first_close - timedelta(days=1))]
    return as_earlier(
        [
            MonthNight(
                0,
                f"run-{day}",
                f"{day}",
                "",
                folders.write(folder, day),
                ledger_since=folders.ledger_since(day),
            )
            for day in days
        ]
    )


def as_earlier(nights: Sequence[MonthNight]) -> list[MonthNight]:
    """Nights as a month asks for those before its own: numbered up to -1, with two files."""
    return [
        replace(night, number=number, files={name: night.files[name] for name in EARLIER_READ})
        for number, night in enumerate(nights, start=-len(nights))
    ]


def days_of(first: date, last: date) -> list[date]:
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


def due_of(truth: MonthTruth, nights: list[MonthNight]) -> list[str]:
    first, last = truth.first.isoformat(), truth.last.isoformat()
    return [night.business_date for night in nights if first <= night.business_date <= last]


@dataclass(frozen=True)
class NightFolders:
    """What each night of a month knew."""

    truth: MonthTruth
    shown: dict[str, Row] = field(default_factory=dict)
    """The breaks of the night that was written last."""

    def nights(self) -> list[date]:
        first = self.truth.first if self.truth.is_first else self.truth.first_close
        return days_of(first, self.truth.end)

    def ledger_since(self, night: date) -> tuple[datetime, datetime]:
        """Entries of the window, and of groups all."""
        opens = self.truth.calendar.opens
        return opens(night - timedelta(days=self.truth.window)), opens(self.truth.begin)

    def write(self, folder: Path, night: date) -> Mapping[str, Path]:
        """The folder of a night: what it read, and of its results what a month asks for."""
        asked = self._asked(night)
        tables = {
            "orders": [self._order(sale) for sale in asked],
            "answers": [self._answer(sale, night) for sale in asked],
            "instructions": [*self._instructions(night, asked)],
            "settlement": [*self._settlement(night, asked)],
            "ledger": [*self._ledger(night, asked)],
            "terms": [*self._terms()],
            **self._results(night, asked),
        }
        tables["movements"] = [*self._movements(tables["breaks"])]
        tables["journals"] = [*self._journals(tables["breaks"], night)]
        if self.truth.bank:
            tables |= self._bank(night)
        files = {}
        for name, rows in tables.items():
            schema = SCHEMAS[name]
            files[name] = folder / night.isoformat() / schema.path
            files[name].parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table_of_rows(rows, schema=schema.columns), files[name])
        return files

    def _asked(self, night: date) -> list[Sale]:
        """Sales of the window, older ones that are open, and those of which something moved since.

        A sale that no book has is a break: it is asked about every night.
        """
        since = night - timedelta(days=self.truth.window)
        asked = []
        for sale in self.truth.sales:
            if sale.sold > night:
                continue
            touched = [*(day for _, day, _ in sale.refunds), sale.charged, sale.won]
            recent = any(day and since <= day <= night + timedelta(days=1) for day in touched)
            is_open = sale.settled is None or sale.settled >= since
            days = self.truth.booked_on.get(sale.order, [])
            booked = any(since <= day <= night for day in days)
            if (
                sale.sold >= since
                or is_open
                or recent
                or booked
                or sale.order in self.truth.unbooked
            ):
                asked.append(sale)
        return asked

    def _booked_early(self, night: date) -> list[Sale]:
        """Sales of later days of which the ledger knows already: asked about by their entries."""
        later = [sale for sale in self.truth.sales if sale.sold > night]
        booked = self.truth.booked_on
        return [sale for sale in later if any(day <= night for day in booked.get(sale.order, []))]

    def _instant(self, sale: Sale, event: str, day: date) -> datetime:
        known = sale.moments.get(event)
        return known or self.truth.calendar.opens(day) + timedelta(
            hours=1 + sale.number % 20, minutes=sale.number % 60
        )

    def _order(self, sale: Sale) -> Row:
        sold = self._instant(sale, "sold", sale.sold)
        if sale.way == "auto":
            sold = self._instant(sale, "captured", sale.captured)
        return _of(sale, amount=sale.amount, status="paid", ordered_at=sold, updated_at=sold)

    def _answer(self, sale: Sale, night: date) -> Row:
        captured = sale.captured <= night
        refunded = (
            sale.refunded is not None and sale.refunded <= night and sale.refund_way != "hidden"
        )
        charged = sale.charge_way == "shown" and sale.charged is not None and sale.charged <= night
        won = charged and sale.won is not None and sale.won <= night
        code = "paid" if captured else "authorised"
        if refunded and sale.refund_way != "instructed":
            code = "refunded" if sale.refund == sale.amount else "partly"
        if charged and not won:
            code = "chargeback"
        total = sum(amount for amount, day, _ in sale.refunds if day <= night)
        given = total if refunded and sale.refund_way == "shown" else None
        at = self._order(sale)["ordered_at"]
        asked_at = self.truth.calendar.opens(night + timedelta(days=1)) + timedelta(hours=2)
        row = _of(sale, amount=sale.amount, payment_status=code, query_result="1", answer="found")
        row |= {"captured_amount": sale.amount if captured else None, "refunded_amount": given}
        return {**row, "transaction_date": at, "queried_at": asked_at}

    def _instructions(self, night: date, asked: list[Sale]) -> Iterator[Row]:
        """Those of payments asked about, and those that have not ended."""
        named = {sale.number for sale in asked}
        for sale in self.truth.sales:
            for kind, way, day, amount in (
                ("capture", sale.way, sale.captured, sale.amount),
                ("refund", sale.refund_way, sale.refunded, sale.refund),
            ):
                if way == "instructed" and day is not None and day - timedelta(days=1) <= night:
                    moment = self._instant(
                        sale, f"{kind}d" if kind == "capture" else "refunded", day
                    )
                    done = day <= night
                    if done and sale.number not in named:
                        continue
                    about = {"instruction_id": f"{kind[0]}{sale.number}", "kind": kind}
                    about |= {"approved_at": moment - timedelta(hours=9), "amount": amount}
                    about |= {"outcome_at": moment if done else None}
                    yield _of(sale, state="confirmed" if done else "approved", **about)

    def _settlement(self, night: date, asked: list[Sale]) -> Iterator[Row]:
        """Lines of the window and of payments asked about; older ones as sums of a batch."""
        since, named = night - timedelta(days=self.truth.window), {sale.payment for sale in asked}
        sums: dict[tuple[str, date, str, str], list[int]] = {}
        for number, line in enumerate(self.truth.known_lines(night)):
            amounts = (line.gross, line.fee, line.net)
            row = _settled(line.batch, line.day, line.kind, line.currency, amounts)
            row |= {"order_no": line.order, "transaction_id": line.payment, "line": number}
            row |= {"own_reference": line.own, "source": f"settlement/{line.known}.csv"}
            if line.day >= since or (line.payment in named and line.kind != "payout"):
                yield row
                continue
            kind = line.kind if line.kind in {"payout", "reserve"} else "earlier"
            total = sums.setdefault((line.batch, line.day, kind, line.currency), [0, 0, 0])
            for at, amount in enumerate(amounts):
                total[at] += amount
        for key, several in sums.items():
            yield {**_settled(*key, several), "source": "older files", "line": 0}
        other = _settled("X", night, "capture", "EUR", (5, 0, 5))
        yield {**other, "account_id": OTHER, "transaction_id": "X", "source": "x", "line": 1}

    def _ledger(self, night: date, asked: list[Sale]) -> Iterator[Row]:
        since, named = night - timedelta(days=self.truth.window), {sale.order for sale in asked}
        for number, entry in enumerate(self.truth.entries):
            is_old = entry.day < since and (entry.order or entry.key == "adjustments")
            if entry.gone is not None and entry.gone <= night:
                continue
            if entry.day > night or (is_old and entry.order not in named):
                continue
            booked = self.truth.calendar.opens(entry.day) + timedelta(hours=3)
            row = {"entry_id": f"E{number}", "entry_type": entry.kind, "amount": entry.amount}
            row |= {"booked_at": booked, "reference_no": entry.reference}
            yield _of(entry, **row)

    def _terms(self) -> Iterator[Row]:
        states = {
            "paid": "paid",
            "authorised": "authorised",
            "refunded": "refunded",
            "partly": "partially_refunded",
            "chargeback": "chargeback",
        }
        for code, state in states.items():
            yield {"name": "payment_status", "key": code, "label": state}
        for source in (
            "ledger",
            "settlement",
            "instructions",
            *(("bank",) if self.truth.bank else ()),
        ):
            yield {"name": "given", "key": source}
        yield {"name": "amount_means", "label": "captured"}
        yield {"name": "clearing", "label": CLEARING}
        first = min(line.day for line in self.truth.lines)
        yield {"name": "settled_days", "key": "first", "label": first.isoformat()}

    def _results(self, night: date, asked: list[Sale]) -> dict[str, list[Row]]:
        """What a night shows of its differences: of orders as breaks, of groups as waiting."""
        tables: dict[str, list[Row]] = {
            name: [] for name in ("matches", "unverified", "breaks", "effects", "pending")
        }
        booked: dict[tuple[str, str], int] = defaultdict(int)
        by_account: dict[tuple[str, str], int] = defaultdict(int)
        for entry in self.truth.entries:
            if entry.day <= night and (entry.gone is None or entry.gone > night):
                booked[entry.key, entry.currency] += moves(entry)
                by_account[entry.key, account_of(entry.kind)] += moves(entry)
        refunds: dict[str, int] = defaultdict(int)
        groups: dict[tuple[str, str], int] = defaultdict(int)
        for line in self.truth.known_lines(night):
            groups["fees", line.currency] += -line.fee if line.kind != "payout" else 0
            groups["payouts", line.currency] += -line.net if line.kind == "payout" else 0
            if line.kind == "refund":
                refunds[line.payment] -= line.gross
        for sale in (*asked, *self._booked_early(night)):
            answer = self._answer(sale, night)
            captured = shown = answer["captured_amount"] or 0
            if answer["payment_status"] == "chargeback":
                shown = 0
            elif answer["payment_status"] == "partly":
                told = answer["refunded_amount"]
                shown -= refunds[sale.payment] if told is None else told
            elif answer["payment_status"] == "refunded":
                shown = 0
            effect = shown - booked[sale.order, sale.currency]
            if effect:
                own = f"{sale.number:016}"
                charged = captured if answer["payment_status"] == "chargeback" else 0
                came_to = (captured, shown - captured + charged, -charged)
                parts = {
                    account: amount - by_account[sale.order, account]
                    for account, amount in zip(ACCOUNTS, came_to, strict=True)
                }
                row = _of(sale, break_id=own, code=_code(sale, effect), parts=parts)
                row |= {"effect_ledger": effect, "exposure": abs(effect)}
                tables["breaks"].append(row)
                tables["effects"].append({**row, "leg": "ledger", "amount": effect})
        for (key, currency), amount in groups.items():
            if effect := amount - booked[key, currency]:
                entry_id = {"fees": f"fees:{currency}", "payouts": f"payout:{currency}"}[key]
                tables["pending"].append(
                    {**_KEY, "entry_id": entry_id, "currency": currency, "effect_ledger": effect}
                )
        tables["held"] = [*self._held(night)]
        return tables

    def _movements(self, breaks: list[Row]) -> Iterator[Row]:
        """What became of the breaks of the night before, and where tonight's come from."""
        before, now = dict(self.shown), {row["break_id"]: row for row in breaks}
        self.shown.clear()
        self.shown.update(now)
        for break_id in sorted({*before, *now}):
            was, row = before.get(break_id, {}), now.get(break_id, {})
            names = {"code": "code", "currency": "currency", "exposure": "exposure"}
            cells = {name: row[column] for name, column in names.items() if row}
            cells |= {f"{name}_before": was[column] for name, column in names.items() if was}
            movement = "stays" if was and row else "new" if row else "resolved"
            yield {**_KEY, "break_id": break_id, "movement": movement, **cells}

    def _journals(self, breaks: list[Row], night: date) -> Iterator[Row]:
        """What the night proposes: what is not booked, by account, and nothing of what differs."""
        for row in breaks:
            if row["code"] == "LEDGER_AMOUNT_MISMATCH":
                continue
            shared = {
                **{name: row[name] for name in ("order_no", "currency", "break_id")},
                **_KEY,
                "journal_id": f"{row['break_id']}-1",
                "date": night.isoformat(),
            }
            for account, amount in row["parts"].items():
                for booked_on, side in ((CLEARING, amount), (account, -amount)):
                    if side:
                        sums = {"debit": max(side, 0), "credit": max(-side, 0)}
                        yield {**shared, "account": booked_on, **sums}

    def _held(self, night: date) -> Iterator[Row]:
        """What the night listed as held, in one sum: payable and reserve."""
        sums: dict[str, int] = defaultdict(int)
        for line in self.truth.known_lines(night):
            sums[line.currency] += -line.net if line.kind == "payout" else line.net
            sums[line.currency] -= line.gross if line.kind == "reserve" else 0
        for currency, amount in sums.items():
            yield {**_KEY, "currency": currency, "what": "item", "amount": amount}

    def _bank(self, night: date) -> dict[str, list[Row]]:
        tables: dict[str, list[Row]] = {"paid": [], "received": [], "explained": []}
        known = {line.batch for line in self.truth.known_lines(night) if line.kind == "payout"}
        came = {row[0] for row in self.truth.at_bank if row[2] <= night}
        for line in self.truth.known_lines(night):
            if line.kind == "payout":
                state = "MATCHED" if line.batch in came else "PENDING"
                row = {**_KEY, "bank": "main", "currency": line.currency, "amount": line.net}
                row |= {"batch_id": line.batch, "settled_on": f"{line.day}", "state": state}
                tables["paid"].append({**row, "result_id": f"F{line.batch}"})
        for number, (batch, currency, day, amount, what) in enumerate(self.truth.at_bank):
            if day > night or batch not in known:
                continue
            row = {"bank": "main", "currency": currency, "result_id": f"F{batch}", "amount": amount}
            if what == "charges":
                tables["explained"].append({**row, "what": "charges"})
            else:
                days = {"booked_on": f"{day}", "value_on": f"{day}"}
                tables["received"].append(
                    {**row, **days, "entry_no": str(number), "state": "MATCHED"}
                )
        return tables


def _of(what: Sale | Entry, **cells: Any) -> Row:
    named = {"order_no": what.order, "transaction_id": what.payment, "currency": what.currency}
    return {**_KEY, **named, **cells}


def _settled(batch: str, day: date, kind: str, currency: str, amounts: Sequence[int], /) -> Row:
    sums = dict(zip(("gross", "fee", "net"), amounts, strict=True))
    about = {"batch_id": batch, "settled_on": f"{day}", "entry_type": kind, "currency": currency}
    return {**_KEY, **about, **sums}


def account_of(kind: str) -> str:
    """Where a kind of entry is booked beside the clearing account."""
    return {"capture": "sales", "refund": "refunds"}.get(kind, "chargebacks")


def _code(sale: Sale, effect: int) -> str:
    if effect > 0:
        return "MISSING_IN_LEDGER"
    return "REFUND_NOT_BOOKED" if sale.is_booked_by_hand else "LEDGER_AMOUNT_MISMATCH"


def table_of_rows(rows: list[Row], *, schema: pa.Schema) -> pa.Table:
    columns = []
    for column in schema:
        plain = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        blank = None if column.nullable else ("" if pa.types.is_string(plain) else 0)
        if column.name == "number":
            blank = None
        columns.append(
            pa.array([row.get(column.name, blank) for row in rows], plain).cast(column.type)
        )
    return pa.table(columns, schema=schema)
