"""What of a bank's statements is kept: entries that may be ours. Of all others only their sum.

An entry is in scope when the gateway is its other side, when it names a batch of ours, or when a
notification lists such payments for it. The text of everything else is other people's business.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.bank.receipts import (
    BatchNames,
    folded_word,
    is_known,
    other_side,
    references_of,
)
from recon.matching.frames.bank_sources import (
    BOOKED,
    DETAILS,
    BankSource,
    BankStatement,
    Contents,
    no_entries,
)
from recon.matching.frames.grouping import Bools

Listed = Collection[tuple[str, int]]
"""Reference and amount of entries whose payments a notification lists, where one is ours."""
ROWS_AT_ONCE = 65_536
_OF_OTHERS = ("end_to_end_id", "reference", "counterparty", "text")
_TOLD = ("end_to_end_id", "reference", "text")


def kept_of(
    source: BankSource, *, batches: Iterable[str], listed: Listed, rules: Rules
) -> BankSource:
    """The statements with the entries in scope alone, each with the sum of the others.

    Args:
        source: as it was read.
        batches: every batch id of ours that is known.
        listed: of notifications that were read before.
        rules: who is known as the other side at which bank.
    """
    return kept_of_parts(
        source, parts=lambda: iter([source.entries]), batches=batches, listed=listed, rules=rules
    )


def kept_of_parts(
    source: BankSource,
    *,
    parts: Callable[[], Iterator[pd.DataFrame]],
    batches: Iterable[str],
    listed: Listed,
    rules: Rules,
) -> BankSource:
    """As `kept_of`, of entries that are never in memory together.

    Args:
        source: the statements; its entries are not looked at.
        parts: BANK_ENTRY_COLUMNS from the first row on, each time it is asked; an entry and its
            payments stand in one of them.
        batches: every batch id of ours that is known.
        listed: of notifications that were read before.
        rules: who is known as the other side at which bank.
    """
    statements = source.statements
    scope = _Scope.of(statements, batches=batches, rules=rules)
    known, contents, masks = {*listed}, Contents(), []
    for entries in parts():
        mine = scope.marks(entries)
        known |= _listed_in(entries, mine=mine, details=scope.details)
        contents.add(entries)
        masks.append(mine)
    kept = [
        _whole(entries, mine=mine | _is_listed(entries, listed=known))
        for entries, mine in zip(parts(), masks, strict=True)
        if known or mine.any()
    ]
    rows = pd.concat([no_entries(), *kept], ignore_index=True)
    booked = rows[rows["part"].eq(0) & rows["status"].eq(BOOKED)]
    sums = booked.groupby("statement")["amount"].sum().to_dict()
    return replace(
        source,
        entries=rows,
        statements=tuple(
            replace(
                statement,
                others=statement.booked - int(sums.get(number, 0)),
                # One that was handed on or stored before says the digest of all that it had.
                content=statement.content or contents.digest(number),
            )
            for number, statement in enumerate(statements)
        ),
    )


def _whole(entries: pd.DataFrame, *, mine: Bools) -> pd.DataFrame:
    """The marked rows with those of the same entries, of which only the amounts are needed."""
    own = entries.groupby(["statement", "entry_no"], sort=False).ngroup().to_numpy()
    whole = np.isin(own, own[mine])
    rows = entries[whole].reset_index(drop=True)
    for name in _OF_OTHERS:
        rows.loc[~mine[whole], name] = ""
    return rows


def lists_of_ours(source: BankSource) -> set[tuple[str, int]]:
    """Reference and amount of each entry for which a notification lists payments of ours.

    Args:
        source: of whose entries all that are listed are ours.
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
        (word, int(row["amount"]))
        for row in wholes
        if (row["statement"], row["entry_no"]) in keys
        for word in references_of(row)
    }


def _details_of(statements: Sequence[BankStatement]) -> list[int]:
    return [number for number, one in enumerate(statements) if one.form == DETAILS]


@dataclass(frozen=True, slots=True)
class _Scope:
    """Which rows have the gateway as their other side, or name a batch."""

    ours: BatchNames
    words: list[list[str]]
    """By which the gateway is known, of each statement."""
    details: list[int]

    @classmethod
    def of(
        cls, statements: Sequence[BankStatement], *, batches: Iterable[str], rules: Rules
    ) -> "_Scope":
        """That of these statements."""
        by_iban = {
            bank.iban: [*map(folded_word, bank.counterparty)] for bank in rules.bank.values()
        }
        words = [by_iban.get(statement.iban, []) for statement in statements]
        ours = BatchNames({batch.casefold() for batch in batches})
        return cls(ours, words, _details_of(statements))

    def marks(self, entries: pd.DataFrame) -> Bools:
        """Of some rows."""
        parts = (_named(part, words=self.words, ours=self.ours) for part in _in_parts(entries))
        return np.concatenate([np.zeros(0, dtype=np.bool_), *parts])


def _in_parts(entries: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """So many rows as may be objects of Python together."""
    for start in range(0, len(entries), ROWS_AT_ONCE):
        yield entries.iloc[start : start + ROWS_AT_ONCE]


def _named(entries: pd.DataFrame, *, words: list[list[str]], ours: BatchNames) -> Bools:
    sides = [
        *map(other_side, entries["counterparty"].tolist(), entries["text"].tolist()),
    ]
    known: dict[tuple[int, str], bool] = {}
    for key in {*zip(entries["statement"].tolist(), sides, strict=True)}:
        known[key] = is_known(key[1], words=words[key[0]])
    columns = (entries["statement"].tolist(), sides, *(entries[name].tolist() for name in _TOLD))
    return np.fromiter(
        (
            known[statement, other]
            or bool(ours.named_in(dict(zip(_TOLD, texts, strict=True)), known=False))
            for statement, other, *texts in zip(*columns, strict=True)
        ),
        np.bool_,
        len(entries),
    )


def _is_listed(entries: pd.DataFrame, *, listed: Listed) -> Bools:
    found = np.zeros(len(entries), dtype=np.bool_)
    if not listed:
        return found
    names = ("entry_no", "reference", "amount")
    at = 0
    for part in _in_parts(entries):
        for entry_no, reference, amount in zip(
            *(part[name].tolist() for name in names), strict=True
        ):
            row = {"entry_no": entry_no, "reference": reference}
            found[at] = any((word, int(amount)) in listed for word in references_of(row))
            at += 1
    return found
