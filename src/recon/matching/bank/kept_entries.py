"""What of a bank's statements is kept: entries that may be ours. Of all others only their sum.

An entry is in scope when the gateway is its other side, when it names a batch of ours, or when a
notification lists such payments for it. The text of everything else is other people's business.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.bank.receipts import BatchNames, folded_word, is_known, references_of
from recon.matching.frames.bank_sources import (
    BOOKED,
    DETAILS,
    BankSource,
    BankStatement,
    content_digest,
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
    mine = _in_scope(source, batches=batches, rules=rules)
    entries = source.entries
    listed = {*listed, *lists_of_ours(source, mine=mine)}
    mine |= _is_listed(entries, listed=listed)
    own = entries.groupby(["statement", "entry_no"], sort=False).ngroup().to_numpy()
    whole = np.isin(own, own[mine])
    rows = entries[whole].reset_index(drop=True)
    # Of the other payments of an entry that is partly ours, only the amounts are needed.
    beside = ~mine[whole]
    for name in _OF_OTHERS:
        rows.loc[beside, name] = ""
    statements = tuple(
        _less(statement, number=number, entries=entries, kept=rows)
        for number, statement in enumerate(source.statements)
    )
    return replace(source, entries=rows, statements=statements)


def lists_of_ours(source: BankSource, *, mine: Bools | None = None) -> set[tuple[str, int]]:
    """Reference and amount of each entry for which a notification lists payments of ours."""
    entries = source.entries if mine is None else source.entries[mine]
    details = [at for at, one in enumerate(source.statements) if one.form == DETAILS]
    ours = entries[entries["statement"].isin(details)]
    keys = {*zip(ours["statement"].tolist(), ours["entry_no"].tolist(), strict=True)}
    wholes = source.entries[source.entries["part"].eq(0)].to_dict("records") if keys else []
    return {
        (word, int(row["amount"]))
        for row in wholes
        if (row["statement"], row["entry_no"]) in keys
        for word in references_of(row)
    }


def _in_scope(source: BankSource, *, batches: Iterable[str], rules: Rules) -> Bools:
    """Which rows have the gateway as their other side, or name a batch."""
    ours = BatchNames({batch.casefold() for batch in batches})
    by_iban = {bank.iban: [*map(folded_word, bank.counterparty)] for bank in rules.bank.values()}
    words = [by_iban.get(statement.iban, []) for statement in source.statements]
    mine = [_named(part, words=words, ours=ours) for part in _in_parts(source.entries)]
    return np.concatenate([np.zeros(0, dtype=np.bool_), *mine])


def _in_parts(entries: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """So many rows as may be objects of Python together."""
    for start in range(0, len(entries), ROWS_AT_ONCE):
        yield entries.iloc[start : start + ROWS_AT_ONCE]


def _named(entries: pd.DataFrame, *, words: list[list[str]], ours: BatchNames) -> Bools:
    known: dict[tuple[int, str], bool] = {}
    for key in {*zip(entries["statement"].tolist(), entries["counterparty"].tolist(), strict=True)}:
        known[key] = is_known(key[1], words=words[key[0]])
    names = ("statement", "counterparty", *_TOLD)
    rows = zip(*(entries[name].tolist() for name in names), strict=True)
    return np.fromiter(
        (
            known[statement, other]
            or bool(ours.named_in(dict(zip(_TOLD, texts, strict=True)), known=False))
            for statement, other, *texts in rows
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


def _less(
    statement: BankStatement, *, number: int, entries: pd.DataFrame, kept: pd.DataFrame
) -> BankStatement:
    """A statement with the sum of the entries that are not kept.

    One that was handed on or stored before has less than it said, and the digest of all of it.
    """
    digest = statement.content or content_digest(entries[entries["statement"].eq(number)])
    own = kept[kept["statement"].eq(number) & kept["part"].eq(0) & kept["status"].eq(BOOKED)]
    return replace(statement, others=statement.booked - int(own["amount"].sum()), content=digest)
