"""Selects the statement entries that are ours, and finds the batches that each of them names.

An entry is in scope when its counterparty is the gateway, or when it has one of our batch ids as a
separate token. Of all other entries only the amount is used, for the balance.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.bank.statements import ClassifiedStatements
from recon.matching.frames.bank_sources import (
    BOOKED,
    DETAILS,
    BankSource,
    BankStatement,
    content_digest,
)
from recon.matching.frames.grouping import Bools

OWN_TOKEN_MIN = 6
"""A shorter batch id, or one of digits only, also occurs in other people's entries: the
counterparty must then be the gateway."""

_TOKEN = re.compile(r"[\w-]+")
_COLUMNS = (
    *("statement", "entry_no", "part", "booked_on", "value_on", "currency", "amount", "charges"),
    *("instructed_currency", "instructed_amount", "end_to_end_id", "reference", "counterparty"),
    *("text", "status"),
)


@dataclass(frozen=True, slots=True)
class Receipt:
    """One entry in scope, or one payment of an entry; minor units, receipts are positive."""

    bank: str
    iban: str
    statement_no: str
    year: str
    entry_no: str
    booked_on: str
    value_on: str
    currency: str
    amount: int
    charges: int
    instructed: tuple[str, int] | None
    """Currency and signed amount that the payer ordered."""
    names: frozenset[str]
    """Batch ids in it, case-folded."""
    from_gateway: bool
    provisional: bool
    """Of a day that is not over: it counts only for batches that it names."""

    @property
    def place(self) -> tuple[str, str, str, str, str]:
        """Sort key of entries, independent of the file and row they came from."""
        return (self.value_on, self.booked_on, self.bank, self.statement_no, self.entry_no)

    @property
    def key(self) -> str:
        """The key of its break where it is unexpected."""
        return f"bank:{self.iban}:{self.year}:{self.statement_no}:{self.entry_no}"

    def worth(self, currency: str) -> int | None:
        """Return the amount in a currency, None where the entry does not have it."""
        if self.currency == currency:
            return self.amount
        if self.instructed is not None and self.instructed[0] == currency:
            return self.instructed[1]
        return None


def receipts_of(
    source: BankSource, *, classified: ClassifiedStatements, batches: Iterable[str], rules: Rules
) -> tuple[Receipt, ...]:
    """Return the booked entries in scope of all statements that count, sorted.

    Args:
        source: entries and statements.
        classified: which statements count.
        batches: every batch id of ours.
        rules: the known counterparties at each bank.
    """
    scope = _Scope.of(source.statements, batches=batches, rules=rules)
    chosen = [*classified.counted, *classified.reports]
    entries = source.entries
    rows = entries[entries["statement"].isin(chosen) & entries["status"].eq(BOOKED)]
    lists = _lists_of(source, classified=classified)
    receipts: list[Receipt] = []
    reported: set[tuple[str, str]] = set()
    for cells in _leaves(rows, lists=lists):
        statement = source.statements[cells["statement"]]
        bank = classified.banks[cells["statement"]]
        provisional = cells["statement"] in classified.reports
        if provisional and cells["booked_on"] <= classified.covers[bank].to_day:
            continue
        known, names = scope.read(cells)
        if not known and not names:
            continue
        entry_no = (
            f"{cells['entry_no']}/{cells['part']}" if cells["part"] else str(cells["entry_no"])
        )
        # Reports of one day repeat what an earlier one had; a statement has each entry once.
        if provisional and (bank, entry_no) in reported:
            continue
        reported |= {(bank, entry_no)} if provisional else set()
        receipt = Receipt(
            bank=bank,
            iban=statement.iban,
            statement_no=statement.statement_no,
            year=statement.to_date[:4],
            entry_no=entry_no,
            names=names,
            booked_on=cells["booked_on"],
            value_on=cells["value_on"],
            currency=cells["currency"],
            amount=int(cells["amount"]),
            charges=int(cells["charges"]),
            instructed=_instructed(cells),
            from_gateway=known,
            provisional=provisional,
        )
        receipts.append(receipt)
    return tuple(sorted(receipts, key=lambda receipt: (receipt.place, receipt.amount)))


def _lists_of(
    source: BankSource, *, classified: ClassifiedStatements
) -> dict[tuple[str, int], list[dict[Any, Any]]]:
    """Return the payments that a camt.054 lists for an entry, by a reference of it and its amount.

    A single payment is given as the entry itself.
    """
    entries = source.entries
    mine = entries[entries["statement"].isin([*classified.details])]
    chunks: dict[tuple[Any, Any], list[dict[Any, Any]]] = {}
    for row in mine[mine["part"].gt(0)].to_dict("records"):
        chunks.setdefault((row["statement"], row["entry_no"]), []).append(row)
    lists: dict[tuple[str, int], list[dict[Any, Any]]] = {}
    for whole in mine[mine["part"].eq(0)].to_dict("records"):
        behind = chunks.get((whole["statement"], whole["entry_no"]), [whole])
        for name in references_of(whole):
            lists.setdefault((name, int(whole["amount"])), []).extend(behind)
    return lists


def references_of(row: Mapping[Any, Any]) -> set[str]:
    """Return the tokens by which a notification can name an entry."""
    return {token for token in (str(row["entry_no"]), *str(row["reference"]).split()) if token}


def _leaves(
    rows: pd.DataFrame, *, lists: Mapping[tuple[str, int], Sequence[Mapping[Any, Any]]]
) -> Iterable[dict[Any, Any]]:
    """Yield the entries, each replaced by the payments that it contains where they are known."""
    listed = {
        (statement, number)
        for statement, number, chunk in zip(
            rows["statement"].tolist(),
            rows["entry_no"].tolist(),
            rows["part"].tolist(),
            strict=True,
        )
        if chunk
    }
    for values in zip(*(rows[name].tolist() for name in _COLUMNS), strict=True):
        cells = dict(zip(_COLUMNS, values, strict=True))
        if not cells["part"] and (cells["statement"], cells["entry_no"]) in listed:
            continue
        amount = int(cells["amount"])
        named = next(
            (lists[key] for name in references_of(cells) if (key := (name, amount)) in lists), ()
        )
        if not cells["part"] and named and sum(int(one["amount"]) for one in named) == amount:
            for one in named:
                yield _listed(one, entry=cells)
        else:
            yield cells


def _listed(row: Mapping[Any, Any], *, entry: Mapping[Any, Any]) -> dict[Any, Any]:
    """Merge a payment listed by a notification with its entry; a single one only adds its texts."""
    if row["part"]:
        return {**row, **{name: entry[name] for name in _OF_ENTRY}}
    tokens = {
        name: f"{entry[name]}\n{row[name]}" for name in ("end_to_end_id", "reference", "text")
    }
    return {**entry, **tokens, "counterparty": entry["counterparty"] or row["counterparty"]}


_OF_ENTRY = ("statement", "entry_no", "booked_on", "value_on", "status")
"""Columns that a payment of a notification takes from the entry of the statement."""


class BatchNames:
    """Finds batch ids as separate tokens: without letter, digit, `_` or `-` next to them."""

    def __init__(self, folded: set[str]) -> None:
        self._plain = {one for one in folded if _TOKEN.fullmatch(one)}
        others = sorted(map(re.escape, folded - self._plain), key=len, reverse=True)
        self._others = re.compile(rf"(?<![\w-])(?={'|'.join(others)})") if others else None
        self._odd = [
            (one, re.compile(rf"(?<![\w-]){re.escape(one)}(?![\w-])"))
            for one in sorted(folded - self._plain)
        ]

    def named_in(self, cells: Mapping[Any, Any], *, known: bool) -> frozenset[str]:
        """Return the ids that an entry names; weak ones only where the gateway is counterparty."""
        named = "\n".join(str(cells[name]) for name in ("end_to_end_id", "reference", "text"))
        text = named.casefold()
        found = self._plain.intersection(_TOKEN.findall(text))
        if self._others is not None and self._others.search(text):
            found |= {one for one, pattern in self._odd if pattern.search(text)}
        return frozenset(
            one for one in found if known or (len(one) >= OWN_TOKEN_MIN and not one.isdecimal())
        )


def is_known(counterparty: str, *, tokens: Sequence[str]) -> bool:
    """Return whether the counterparty is the gateway, by a whole word or an IBAN."""
    text = counterparty.casefold()
    return any(re.search(rf"(?<![\w-]){re.escape(token)}(?![\w-])", text) for token in tokens)


def folded_token(token: str) -> str:
    """Case-fold a token; an IBAN also loses its blanks."""
    compact = token.replace(" ", "")
    return (
        compact if re.fullmatch(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}", compact) else token
    ).casefold()


def _instructed(cells: Mapping[Any, Any]) -> tuple[str, int] | None:
    currency, amount = str(cells["instructed_currency"]), cells["instructed_amount"]
    if not currency or pd.isna(amount):
        return None
    sign = -1 if int(cells["amount"]) < 0 else 1
    return currency, sign * abs(int(amount))


Listed = Collection[tuple[str, int]]
"""Reference and amount of entries whose payments a notification lists, where one is ours."""
_OF_OTHERS = ("end_to_end_id", "reference", "counterparty", "text")


def stored_of(
    source: BankSource, *, batches: Iterable[str], listed: Listed, rules: Rules
) -> BankSource:
    """Return the statements with only the entries in scope, each with the sum of the others.

    Args:
        source: as it was read.
        batches: every known batch id of ours.
        listed: from notifications read before.
        rules: the known counterparties at each bank.
    """
    statements, entries = source.statements, source.entries
    scope = _Scope.of(statements, batches=batches, rules=rules)
    mine = scope.mask_of(entries)
    known = {*listed, *_listed_in(entries, mine=mine, details=scope.details)}
    rows = _whole(entries, mine=mine | _is_listed(entries, listed=known))
    of_statements = dict(iter(entries.groupby("statement")))
    booked = rows[rows["part"].eq(0) & rows["status"].eq(BOOKED)]
    sums = booked.groupby("statement")["amount"].sum().to_dict()
    return replace(
        source,
        entries=rows,
        statements=tuple(
            replace(
                statement,
                others=statement.booked - int(sums.get(number, 0)),
                # One passed on or stored before already has the digest of all its entries.
                content=statement.content
                or content_digest(of_statements.get(number, entries.iloc[:0])),
            )
            for number, statement in enumerate(statements)
        ),
    )


def _whole(entries: pd.DataFrame, *, mine: Bools) -> pd.DataFrame:
    """Return the marked rows and the others of their entries, which keep only their amounts."""
    own = entries.groupby(["statement", "entry_no"], sort=False).ngroup().to_numpy()
    whole = np.isin(own, own[mine])
    rows = entries[whole].reset_index(drop=True)
    for name in _OF_OTHERS:
        rows.loc[~mine[whole], name] = ""
    return rows


def lists_of_ours(source: BankSource) -> set[tuple[str, int]]:
    """Return reference and amount of each entry for which a notification lists payments of ours.

    Args:
        source: a source whose listed entries are all ours.
    """
    every = np.ones(len(source.entries), dtype=np.bool_)
    return _listed_in(source.entries, mine=every, details=_details_of(source.statements))


def _listed_in(
    entries: pd.DataFrame, *, mine: Bools, details: Collection[int]
) -> set[tuple[str, int]]:
    if not details:
        return set()
    ours = entries[mine]
    ours = ours[ours["statement"].isin(details)]
    keys = {*zip(ours["statement"].tolist(), ours["entry_no"].tolist(), strict=True)}
    wholes = entries[entries["part"].eq(0)].to_dict("records") if keys else []
    return {
        (token, int(row["amount"]))
        for row in wholes
        if (row["statement"], row["entry_no"]) in keys
        for token in references_of(row)
    }


def _details_of(statements: Sequence[BankStatement]) -> list[int]:
    return [number for number, one in enumerate(statements) if one.form == DETAILS]


@dataclass(frozen=True, slots=True)
class _Scope:
    """Decides which entries are ours: by the gateway's names and by our batch ids."""

    ours: BatchNames
    tokens: list[list[str]]
    """The gateway's names at the bank of each statement."""
    details: list[int]

    @classmethod
    def of(
        cls, statements: Sequence[BankStatement], *, batches: Iterable[str], rules: Rules
    ) -> "_Scope":
        """Build the scope of some statements."""
        by_iban = {
            bank.iban: [*map(folded_token, bank.counterparty)] for bank in rules.bank.values()
        }
        tokens = [by_iban.get(statement.iban, []) for statement in statements]
        ours = BatchNames({batch.casefold() for batch in batches})
        return cls(ours, tokens, _details_of(statements))

    def read(self, cells: Mapping[Any, Any]) -> tuple[bool, frozenset[str]]:
        """Return whether an entry's counterparty is the gateway, and the batches that it names."""
        side = cells["counterparty"].strip() or cells["text"]
        known = is_known(side, tokens=self.tokens[cells["statement"]])
        return known, self.ours.named_in(cells, known=known)

    def mask_of(self, entries: pd.DataFrame) -> Bools:
        """Mark the rows that are ours."""
        names = ("statement", *_OF_OTHERS)
        rows = zip(*(entries[name].tolist() for name in names), strict=True)
        ours = (any(self.read(dict(zip(names, cells, strict=True)))) for cells in rows)
        return np.fromiter(ours, np.bool_, len(entries))


def _is_listed(entries: pd.DataFrame, *, listed: Listed) -> Bools:
    if not listed:
        return np.zeros(len(entries), dtype=np.bool_)
    rows = zip(*(entries[n].tolist() for n in ("entry_no", "reference", "amount")), strict=True)
    mask_of = (
        any(
            (token, amount) in listed
            for token in references_of({"entry_no": number, "reference": reference})
        )
        for number, reference, amount in rows
    )
    return np.fromiter(mask_of, np.bool_, len(entries))
