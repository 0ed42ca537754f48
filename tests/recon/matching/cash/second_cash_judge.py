"""A second judge of what the gateway holds and of fees, reserves and payouts of the ledger.

The contract (settlement, order of time, groups) read aloud, row by row, in plain Python. It shares
nothing with the engine but the words of codes and of what is listed. Money is whole minor units,
signed as in the settlement; the calendar knows no holidays.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

Row = Mapping[str, Any]
AccountKey = tuple[str, str, str]
"""Merchant, account, currency."""
GROUPED = {"fee": "fees", "reserve": "reserves", "payout": "payout"}
NOT_BOOKED = {"fees": "FEE_NOT_BOOKED", "reserves": "RESERVE_NOT_BOOKED"}
DIFFERS = {"fees": "FEE_BOOKED_DIFFERS", "reserves": "RESERVE_BOOKED_DIFFERS"}
SATURDAY = 5


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """What a group or a listed amount comes to: `state` is matched, pending, unread or a code."""

    account_key: AccountKey
    key: str
    state: str
    settled: int
    booked: int
    """Fees, reserves, payouts: the two sums; what is held: the amount, and nothing."""
    flags: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Held:
    """One amount that the gateway holds; a debt and what was paid beyond are below 0."""

    account_key: AccountKey
    what: str
    batch: str
    amount: int
    since: str = field(default="", compare=False)


@dataclass(slots=True)
class Group:
    """Lines against entries: their sums, and those of the young ones."""

    sums: list[int] = field(default_factory=lambda: [0, 0])
    young: list[int] = field(default_factory=lambda: [0, 0])
    rows: list[int] = field(default_factory=lambda: [0, 0])

    def add(self, amount: int, *, side: int, young: bool) -> None:
        """One line (side 0) or entry (side 1)."""
        self.sums[side] += amount
        self.rows[side] += 1
        self.young[side] += amount * young


@dataclass(frozen=True, slots=True)
class Terms:
    """The rules that this judge knows; graces in business days."""

    fees_per: str = "balance"
    payable: Mapping[str, int] = field(default_factory=dict)
    reserve: Mapping[str, int] = field(default_factory=dict)
    held_back: int = 5
    to_ledger: int = 2


def due(since: datetime, *, days: int) -> datetime:
    """The same time on a later business day."""
    while days:
        since += timedelta(days=1)
        days -= since.weekday() < SATURDAY
    return since


def signed(entry: Row) -> int:
    """A fee, a reserve or a payout takes from the merchant; its reversal gives."""
    return int(entry["amount"]) * (1 if entry["entry_type"].endswith("_reversal") else -1)


class CashJudge:
    """All lines of a settlement and all entries of the ledger, as they stood at an instant."""

    def __init__(
        self,
        lines: Iterable[Row],
        *,
        entries: Iterable[Row],
        terms: Terms,
        as_of: datetime,
        unread: Iterable[Row] = (),
    ) -> None:
        self.terms, self.as_of = terms, as_of
        self.unread = [*unread]
        self.lines: dict[AccountKey, list[Row]] = defaultdict(list)
        self.entries: dict[AccountKey, list[Row]] = defaultdict(list)
        for rows, by in ((lines, self.lines), (entries, self.entries)):
            for row in rows:
                by[row["merchant_id"], row["account_id"], row["currency"]].append(row)

    def is_young(self, day: str | datetime, *, days: int) -> bool:
        """Whether its grace still runs."""
        since = day
        if isinstance(since, str):
            since = datetime.fromisoformat(since).replace(tzinfo=UTC)
        return due(since, days=days) > self.as_of

    def held(self) -> list[Held]:
        """Everything the gateway holds, in the order of time."""
        account_keys = {*self.lines}
        opened = {*self.terms.payable, *self.terms.reserve}
        account_keys |= {
            (*account_key[:2], currency) for account_key in self.lines for currency in opened
        }
        return [row for account_key in sorted(account_keys) for row in self._held(account_key)]

    def findings(self) -> list[Finding]:
        """Groups of the ledger, and what the listed amounts are reported as."""
        account_keys = sorted({*self.lines, *self.entries})
        rows = [row for account_key in account_keys for row in self._compared(account_key)]
        rows += [each for row in self.held() for each in self._listed(row)]
        return sorted({row for row in rows if row.state != "matched"})

    def _held(self, account_key: AccountKey) -> Iterator[Held]:
        first = self.terms.payable.get(account_key[2], 0)
        items = [("", "", first)] if first else []
        debts: list[tuple[str, str, int]] = []
        beyond: list[tuple[str, str, int]] = []
        for name, rows in _batches(self.lines.get(account_key, [])):
            net = sum(row["net"] for row in rows if row["entry_type"] != "payout")
            paid = [row["net"] for row in rows if row["entry_type"] == "payout"]
            left = net - sum(paid)
            owed = net < 0 and not self._is_mixed(account_key, name)
            what = "" if paid or owed else "no_payout"
            if len(paid) == len(rows) and self._is_mixed(account_key, name):
                what = "other_currency"
            is_half = not paid or len(paid) == len(rows)
            if any(
                is_half or account_key[2] in self._currencies(line)
                for line in self._lost(account_key, name)
            ):
                what = "unsure"
            if what == "no_payout" and left <= sum(amount for *_, amount in debts):
                what = ""  # nothing of it is left to pay out
            if what:
                if left:
                    yield Held(account_key, what, name, left, _day(rows))
                continue
            short = _taken(items, -left)
            owes = net < 0 and sum(paid) == 0
            _kept(debts if owes else beyond, name=name, rows=rows, amount=short)
            _kept(items, name=name, rows=rows, amount=_taken(beyond, _taken(debts, left)))
        for what, those, sign in (("item", items, 1), ("debt", debts, -1), ("beyond", beyond, -1)):
            for name, day, amount in those:
                yield Held(account_key, what if name else "opening", name, sign * amount, day)
        yield from self._reserve(account_key)

    def _lost(self, account_key: AccountKey, *names: str) -> list[Row]:
        """Lines of the account that nobody can read and that may be of some batches."""
        return [
            line
            for line in self.unread
            if (line["merchant_id"], line["account_id"]) == account_key[:2]
            and line["batch_id"] in {"", *names}
        ]

    def _currencies(self, line: Row) -> set[str]:
        """What a line that nobody can read may be in; a batch without lines in any."""
        if line["currency"]:
            return {line["currency"]}
        owner = line["merchant_id"], line["account_id"]
        every = {*self.lines, *self.entries}
        mine = {
            other[2]
            for other in every
            if other[:2] == owner
            and any(row["batch_id"] == line["batch_id"] for row in self.lines.get(other, []))
        }
        return mine or {other[2] for other in every if other[:2] == owner}

    def _is_unread(self, account_key: AccountKey, *, key: str, groups: Mapping[str, Group]) -> bool:
        """Whether a line that nobody can read may be of a group."""
        kind, _, name = (*key.split(":"), "")[:3]
        by_batch = kind == "payout" or (kind == "fees" and self.terms.fees_per == "batch")
        if by_batch and name not in {"", "unassigned"}:
            lost = self._lost(account_key, name)
        else:
            mine = {own for own, each in groups.items() if own.startswith(kind) and each.rows[0]}
            told = {own.split(":")[-1] for own in mine}
            lost = [
                line
                for line in self.unread
                if (line["merchant_id"], line["account_id"]) == account_key[:2]
                and not (by_batch and line["batch_id"] in told)
            ]
        return any(account_key[2] in self._currencies(line) for line in lost)

    def _is_mixed(self, account_key: AccountKey, name: str) -> bool:
        """Lines without a payout in one currency, a payout without lines in another."""
        kinds = [
            {row["entry_type"] == "payout" for row in rows if row["batch_id"] == name}
            for other, rows in self.lines.items()
            if other[:2] == account_key[:2]
        ]
        return {True} in kinds and {False} in kinds

    def _is_foreign(self, row: Held) -> bool:
        """Whether it is paid out in another currency, and not with nothing."""
        return any(
            other[:2] == row.account_key[:2]
            and {line["entry_type"] == "payout" for line in lines} == {True}
            and sum(line["net"] for line in lines)
            for other, rows in self.lines.items()
            for lines in [[line for line in rows if line["batch_id"] == row.batch]]
        )

    def _reserve(self, account_key: AccountKey) -> Iterator[Held]:
        left = self.terms.reserve.get(account_key[2], 0) - sum(
            row["gross"]
            for row in self.lines.get(account_key, [])
            if row["entry_type"] == "reserve"
        )
        if left:
            yield Held(account_key, "reserve", "", left)

    def _listed(self, row: Held) -> Iterator[Finding]:
        key = f"{'beyond' if row.what == 'beyond' else 'held'}:{row.account_key[2]}:{row.batch}"
        if row.what == "beyond":
            yield Finding(row.account_key, key, "UNEXPECTED_RECEIPT", row.amount, 0)
        elif row.what == "other_currency":
            yield Finding(row.account_key, key, "CURRENCY_MISMATCH", row.amount, 0)
        elif row.what == "unsure":
            yield Finding(row.account_key, key, "unread", row.amount, 0)
        elif row.what == "no_payout" and self._is_foreign(row):
            return
        elif row.what in {"item", "debt", "no_payout"}:
            waits = self.is_young(row.since, days=self.terms.held_back)
            flags = "no_payout" if row.what == "no_payout" else ""
            yield Finding(
                row.account_key, key, "pending" if waits else "HELD_BACK", row.amount, 0, flags
            )

    def _compared(self, account_key: AccountKey) -> Iterator[Finding]:
        groups: dict[str, Group] = defaultdict(Group)
        known = {line["batch_id"] for line in self.lines[account_key]}
        days = self.terms.to_ledger
        for line in self.lines[account_key]:
            if line["fee"] and line["entry_type"] != "payout":
                group = self._group_of_fee(line, known=known)
                young = self._young(line["settled_on"], group=group)
                groups[f"fees:{account_key[2]}{group}"].add(-line["fee"], side=0, young=young)
            if line["entry_type"] == "reserve":
                young = self.is_young(line["settled_on"], days=days)
                groups[f"reserves:{account_key[2]}"].add(line["gross"], side=0, young=young)
        for entry in self.entries[account_key]:
            kind = GROUPED.get(entry["entry_type"].removesuffix("_reversal"))
            if kind == "fees":
                group = self._group_of_fee(entry, known=known)
                young = self._young(entry["booked_at"], group=group)
                groups[f"fees:{account_key[2]}{group}"].add(signed(entry), side=1, young=young)
            elif kind == "reserves":
                young = self.is_young(entry["booked_at"], days=days)
                groups[f"reserves:{account_key[2]}"].add(signed(entry), side=1, young=young)
        self._pay_outs(account_key, groups=groups)
        for key, each in groups.items():
            yield self._classified(account_key, key=key, group=each, groups=groups)

    def _group_of_fee(self, row: Row, *, known: set[str]) -> str:
        per, is_line = self.terms.fees_per, "batch_id" in row
        if per == "balance":
            return ""
        if per == "payment":
            name = row.get("transaction_id") or row.get("order_no")
        elif per == "batch":
            name = row["batch_id"] if is_line else _named(row, known=known)
        else:
            day = row["settled_on"] if is_line else row["booked_at"].date().isoformat()
            name = day if per == "day" else day[:7]
            stated = row.get("reference_no", "")
            if per == "month" and not is_line and len(stated) == len("YYYY-MM"):
                name = stated
        return f":{name or 'unassigned'}"

    def _young(self, since: str | datetime, *, group: str) -> bool:
        if self.terms.fees_per == "month":
            first = date.fromisoformat(f"{group[1:]}-01")
            last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
            since = last.isoformat()
        return self.is_young(since, days=self.terms.to_ledger)

    def _pay_outs(self, account_key: AccountKey, *, groups: dict[str, Group]) -> None:
        paid = [line for line in self.lines[account_key] if line["entry_type"] == "payout"]
        batches = dict(_batches(paid))
        booked = [
            entry
            for entry in sorted(self.entries[account_key], key=lambda each: each["booked_at"])
            if entry["entry_type"].removesuffix("_reversal") == "payout"
        ]
        known = {line["batch_id"] for line in self.lines[account_key]}
        names = {entry["entry_id"]: _named(entry, known=known) for entry in booked}
        booked_names = {*names.values()}
        rest = {name for name, rows in batches.items() if name not in booked_names and _paid(rows)}
        for name in [name for name in batches if name in rest]:
            total = _paid(batches[name])
            equal = (each for each in booked if not names[each["entry_id"]])
            match = next((each for each in equal if signed(each) == total), None)
            if match is not None:
                names[match["entry_id"]] = name
                rest.remove(name)
        is_balance = "" in names.values()
        for rows, side in ((paid, 0), (booked, 1)):
            for row in rows:
                name = names[row["entry_id"]] if side else row["batch_id"]
                name = "" if is_balance and name in rest else name
                key = f"payout:{account_key[2]}:{name}".rstrip(":")
                since = row["booked_at"] if side else row["settled_on"]
                young = self.is_young(since, days=self.terms.to_ledger)
                amount = signed(row) if side else -row["net"]
                groups[key].add(amount, side=side, young=young)

    def _classified(
        self, account_key: AccountKey, *, key: str, group: Group, groups: Mapping[str, Group]
    ) -> Finding:
        (settled, booked), (young, young_booked) = group.sums, group.young
        effect, flags = settled - booked, ""
        released = key.startswith("reserves") and any(
            row.what == "reserve" and row.amount < 0 for row in self._reserve(account_key)
        )
        lowest = min(0, young) + min(0, -young_booked)
        highest = max(0, young) + max(0, -young_booked)
        if self._is_unread(account_key, key=key, groups=groups):
            state = "unread"
        elif released:
            state, flags = "RESERVE_BOOKED_DIFFERS", "over_released"
        elif not effect or self._is_written_off(account_key, key=key, effect=effect):
            state = "matched"
        elif lowest <= effect <= highest:
            state = "pending"
        else:
            kind, *_ = key.split(":")
            state = _code(kind, settled=group.rows[0], booked=booked)
        return Finding(account_key, key, state, settled, booked, flags)

    def _is_written_off(self, account_key: AccountKey, *, key: str, effect: int) -> bool:
        names = {key, *(key.split(":")[2:] if key.startswith("payout") else ())}
        return any(
            entry["entry_type"] in {"write_off", "adjustment"}
            and names & {entry["order_no"], entry["reference_no"]}
            and abs(entry["amount"]) == abs(effect)
            for entry in self.entries[account_key]
        )


def _batches(lines: Iterable[Row]) -> list[tuple[str, list[Row]]]:
    """Batches in the order of time."""
    batches: dict[str, list[Row]] = defaultdict(list)
    for line in lines:
        batches[line["batch_id"]].append(line)
    return sorted(batches.items(), key=lambda each: (_day(each[1]), each[0]))


def _paid(rows: Iterable[Row]) -> int:
    """What payout rows come to, as the ledger signs it."""
    return -sum(int(row["net"]) for row in rows)


def _kept(those: list[tuple[str, str, int]], *, name: str, rows: list[Row], amount: int) -> None:
    if amount > 0:
        those.append((name, _day(rows), amount))


def _day(rows: Iterable[Row]) -> str:
    return max(str(row["settled_on"]) for row in rows)


def _taken(those: list[tuple[str, str, int]], amount: int) -> int:
    """What is left of the amount after the oldest were taken from."""
    while amount > 0 and those:
        name, day, held = those.pop(0)
        if held > amount:
            those.insert(0, (name, day, held - amount))
            return 0
        amount -= held
    return amount


def _named(entry: Row, *, known: set[str]) -> str:
    names = (entry.get("order_no", ""), entry.get("reference_no", ""))
    return next((name for name in names if name in known), "")


def _code(kind: str, *, settled: int, booked: int) -> str:
    if kind == "payout":
        both = "PAYOUT_AMOUNT_MISMATCH" if booked else "PAYOUT_NOT_BOOKED"
        return both if settled else "LEDGER_PAYOUT_ONLY"
    return DIFFERS[kind] if booked else NOT_BOOKED[kind]
