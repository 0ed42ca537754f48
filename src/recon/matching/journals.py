"""Journals that would put the books right, proposed for people to import. Nothing here books.

A journal comes from the ledger's effect of a break whose money is proven and whose answer is to
book it. Two lines, equal and opposite, between the clearing account of the gateway and the account
that the code names. Its id is the break's id and a version: while an exported one waits to be
booked, nothing is proposed for its break.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from recon.matching.result import JOURNAL_COLUMNS
from recon.matching.sources import Exported
from recon.matching.total_rows import compared_sums
from recon.model import BreakCode, ControlTotal
from recon.rules import JournalAccounts, Rules

_C = BreakCode
COUNTER_ACCOUNT: Mapping[BreakCode, str] = {
    _C.MISSING_IN_LEDGER: "sales",
    _C.LEDGER_AMOUNT_MISMATCH: "sales",
    _C.DUPLICATE_LEDGER_POSTING: "sales",
    _C.BOOKED_NOT_AT_GATEWAY: "sales",
    _C.REFUND_NOT_BOOKED: "refunds",
    _C.CHARGEBACK_NOT_BOOKED: "chargebacks",
    _C.CHARGEBACK_REVERSED_NOT_BOOKED: "chargebacks",
    _C.PAYOUT_NOT_BOOKED: "payouts",
    _C.PAYOUT_AMOUNT_MISMATCH: "payouts",
}
"""Codes that are answered by booking what the gateway shows, and the account on the other side.

Others need a decision or evidence first: whether to refund, whose a movement is, what a status
means.
"""


def propose(
    breaks: pd.DataFrame,
    *,
    effects: pd.DataFrame,
    rules: Rules,
    date: str,
    exported: Sequence[Exported] = (),
) -> pd.DataFrame:
    """The journals of tonight's breaks, one row per line (JOURNAL_COLUMNS); two lines each.

    Args:
        breaks: tonight's breaks.
        effects: what they mean on the leg of the ledger.
        rules: the accounts; without them nothing is proposed.
        date: ISO business date that the journals are dated.
        exported: what was handed out before, booked or not.
    """
    rows = (
        []
        if rules.journal.accounts is None
        else [
            line
            for row in _bookable(breaks, effects=effects)
            for line in _lines(row, accounts=rules.journal.accounts, date=date, exported=exported)
        ]
    )
    frame = pd.DataFrame(rows, columns=[*JOURNAL_COLUMNS])
    texts = {name: "str" for name in JOURNAL_COLUMNS if name not in {"debit", "credit"}}
    return frame.astype({**texts, "debit": "int64", "credit": "int64"})


def shown_in_the_books(effects: pd.DataFrame, *, exported: Sequence[Exported]) -> list[Exported]:
    """Exported journals whose break has no effect on the ledger any more in their currency."""
    legs = effects[effects["leg"].eq("ledger")]
    open_still = set(zip(legs["break_id"], legs["currency"], strict=True))
    return [
        one for one in exported if not one.booked and (one.break_id, one.currency) not in open_still
    ]


def journal_totals(
    journals: pd.DataFrame, *, effects: pd.DataFrame, rules: Rules
) -> Iterator[ControlTotal]:
    """T12: debits = credits, and what the clearing account moves = the effects that are booked."""
    accounts = rules.journal.accounts
    if accounts is None:
        return
    left, right = (journals.assign(amount=journals[side]) for side in ("debit", "credit"))
    name = "proposed journals: debits = credits"
    yield from compared_sums("T12", name, left=left, right=right)
    clearing = journals[journals["account"].eq(accounts.clearing)]
    moved = clearing.assign(amount=clearing["debit"] - clearing["credit"])
    legs = effects[effects["leg"].eq("ledger")]
    named = set(zip(journals["break_id"], journals["currency"], strict=True))
    pairs = zip(legs["break_id"], legs["currency"], strict=True)
    chosen = np.array([pair in named for pair in pairs], dtype=np.bool_)
    name = "proposed journals = effects of their breaks"
    yield from compared_sums("T12", name, left=moved, right=legs[chosen])


def _bookable(breaks: pd.DataFrame, *, effects: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Effects on the ledger of the breaks that booking answers."""
    wanted = breaks[breaks["code"].isin([code.value for code in COUNTER_ACCOUNT])]
    # A second code of another account would have to share the amount: a person splits it.
    others = wanted["flags"].map(lambda text: {*COUNTER_ACCOUNT} & {*text.split(";")})
    fits = np.array(
        [
            len({COUNTER_ACCOUNT[BreakCode(one)] for one in {code, *also}}) == 1
            for code, also in zip(wanted["code"], others, strict=True)
        ],
        dtype=np.bool_,
    )
    wanted = wanted[fits]
    cells = wanted[["break_id", "code", "order_no", "transaction_id"]]
    legs = effects[effects["leg"].eq("ledger") & effects["amount"].ne(0)]
    joined = legs.merge(cells, on="break_id")
    by = ["merchant_id", "account_id", "break_id", "currency"]
    for row in joined.sort_values(by, kind="stable").to_dict("records"):
        yield {str(name): value for name, value in row.items()}


def _lines(
    row: Mapping[str, Any], *, accounts: JournalAccounts, date: str, exported: Sequence[Exported]
) -> Iterator[dict[str, Any]]:
    """Debit and credit of one journal; none while an exported one waits for the books."""
    before = [
        one
        for one in exported
        if (one.break_id, one.currency) == (row["break_id"], row["currency"])
    ]
    if any(not one.booked for one in before):
        return
    version = 1 + max((one.version for one in before), default=0)
    code = BreakCode(row["code"])
    effect, counter = int(row["amount"]), getattr(accounts, COUNTER_ACCOUNT[code])
    debited, credited = accounts.clearing, counter
    if effect < 0:
        debited, credited = credited, debited
    named = row["order_no"] or row["transaction_id"]
    shared = {
        "journal_id": f"{row['break_id']}-{row['currency']}-{version}",
        "date": date,
        "text": f"{code.value.lower().replace('_', ' ')} {named}",
        **{name: row[name] for name in _NAMED},
    }
    yield {**shared, "account": debited, "debit": abs(effect), "credit": 0}
    yield {**shared, "account": credited, "debit": 0, "credit": abs(effect)}


_NAMED = ("merchant_id", "account_id", "currency", "order_no", "transaction_id", "break_id")
