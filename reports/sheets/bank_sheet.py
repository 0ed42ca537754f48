"""The sheet Bank: statements with their checks, every payout, and what is expected next.

Statements that do not count are marked as such.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Any

from recon.model.figures import BANK_DAYS_AHEAD, NightFigures
from reports.drawing.blocks import Column, Listing, Row, Sheet, check_of, rows_of
from reports.sheets.labels import flag_labels, title_of, worded

TITLE, PAYOUTS_AT = "Bank", "payouts"
"""`PAYOUTS_AT`: defined name of the list, for links."""
STATES = {
    "MATCHED": "At the bank",
    "PENDING": "In transit",
    "BREAK": "Break",
    "OPENING": "From before the first statement",
}


OPEN_FIRST = {"BREAK": 0, "PENDING": 1}
STATEMENTS = (
    Column("Bank", 14, "bank"),
    Column("Statement", 18, "statement_no"),
    Column("From", 13, "from_date", "date"),
    Column("To", 13, "to_date", "date"),
    Column("Ccy", 8, "currency"),
    Column("Opening", 16, "opening", "money"),
    Column("Movements", 16, "booked", "money"),
    Column("Closing", 16, "closing", "money"),
    Column("Counts", 16, "counts"),
    Column("Adds up", 14, "adds_up", "check"),
    Column("Follows", 12, "follows", "check"),
)
PAYOUTS = (
    Column("Bank", 14, "bank"),
    Column("Batch", 18, "batch_id"),
    Column("Settled on", 13, "settled_on", "date"),
    Column("Expected on", 13, "due_on", "date"),
    Column("Ccy", 8, "currency"),
    Column("Gross", 16, "gross", "money"),
    Column("Fees", 16, "fees", "money"),
    Column("Held back", 16, "held", "money"),
    Column("Announced", 16, "amount", "money"),
    Column("At the bank", 14, "bank_amount", "money"),
    Column("Value date", 12, "value_on", "date"),
    Column("Days", 7, "days", "days"),
    Column("Difference", 14, "difference", "money"),
    Column("State", 22, "shown"),
    Column("What it is", 24, worded("code", title_of)),
    Column("Beside", 20, worded("flags", flag_labels)),
)
BOOKED = Column("Booked", 14, "booked", "money")
"""Column shown where the ledger is compared with the bank."""
EXCHANGED = (
    Column("Came in", 9, "came_in"),
    Column("Came", 14, "came", "money", currency="came_in"),
)
"""Columns shown where the bank exchanged a payout: the amount on its statement."""
LEAST_ARRIVED = 5
"""Minimum number of arrived payouts of a currency for statistics of their days."""
HALF, MOST = 50, 90
EXPECTED = (
    Column("Expected on", 14, "due_on", "date"),
    Column("Payouts", 18, "count", "count"),
    Column("Half within", 13, "half", "days"),
    Column("90 % within", 13, "most", "days"),
    Column("Ccy", 8, "currency"),
    Column("Amount", 16, "amount", "money"),
)


def bank_sheet(figures: NightFigures) -> Sheet:
    """The sheet with statements, payouts and expected payouts."""
    statements, payouts = [*_statements(figures)], payout_rows(figures)
    booked = (BOOKED,) if "banked" in figures.bank else ()
    exchanged = EXCHANGED if any(row["came_in"] for row in payouts) else ()
    columns = (*PAYOUTS, *booked, *exchanged)
    ahead = f"Expected at the bank in the next {BANK_DAYS_AHEAD} working days"
    expected = _expected(payouts, until=figures.bank_until)
    return Sheet(
        TITLE,
        [
            Listing(
                STATEMENTS,
                statements,
                title=f"Statements ({len(statements)})",
                nothing="None that could be read.",
            ),
            Listing(columns, payouts, title=f"Payouts ({len(payouts)})", name=PAYOUTS_AT),
            Listing(EXPECTED, expected, title=ahead, nothing="Nothing."),
        ],
        heading=TITLE,
        about="What the gateway says it paid out, and what the bank has. Entries of other "
        "people are not listed here: only their sum is a part of the movements.",
        widths=[column.width for column in columns],
    )


def _statements(figures: NightFigures) -> Iterator[dict[str, Any]]:
    """Each statement with its checks: it adds up, and continues the one before."""
    before: dict[str, Any] = {}
    rows = rows_of(figures.bank["counted"])
    for row in sorted(rows, key=lambda row: (row["bank"], row["place"] < 0, row["place"])):
        opening, closing = row["opening"], row["closing"]
        is_known = None not in {opening, closing}
        follows = before.get("bank") == row["bank"] and row["place"] > 0
        is_next = follows and None not in {before.get("closing"), opening}
        yield {
            **row,
            "counts": "counts" if row["place"] >= 0 else "does not count",
            "adds_up": check_of(holds=opening + row["booked"] == closing) if is_known else None,
            "follows": check_of(holds=before["closing"] == opening) if is_next else None,
        }
        before = row


def payout_rows(figures: NightFigures) -> list[dict[str, Any]]:
    """Payouts of the account, open ones first, then the newest."""
    own = (figures.merchant_id, figures.account_id)
    several = "several" in own or "" in own
    arrived = _arrived(figures)
    # The bank amounts in the ledger, on the first payout of each group.
    names = ("merchant_id", "account_id", "key")
    banked = rows_of(figures.bank["banked"]) if "banked" in figures.bank else []
    booked = {tuple(row[name] for name in names): row["booked"] for row in banked}
    rows = []
    for row in rows_of(figures.bank["paid"]):
        of = (row["merchant_id"], row["account_id"])
        if not several and of != own:
            continue
        whole = None if row["gross"] is None else row["gross"] - row["fees"] - row["amount"]
        received = row["bank_amount"]
        # The first payout of a result carries the amount that arrived for all of them.
        is_received, amount = arrived.pop(row["result_id"], ("", 0))
        exchanged = is_received not in {"", row["currency"]}
        rows.append(
            {
                **row,
                "held": whole,
                "difference": None if received is None else received - row["amount"],
                "booked": booked.get((*of, f"payout:{row['currency']}:{row['batch_id']}")),
                "came_in": is_received if exchanged else "",
                "came": amount if exchanged else None,
                "days": _days(row),
                "shown": STATES[row["state"]],
            }
        )
    newest = sorted(rows, key=lambda row: (row["settled_on"], row["batch_id"]), reverse=True)
    return sorted(newest, key=lambda row: OPEN_FIRST.get(row["state"], len(OPEN_FIRST)))


def _arrived(figures: NightFigures) -> dict[str, tuple[str, int]]:
    """Result -> currency and sum of its entries: a bank account has one currency."""
    sums: dict[str, tuple[str, int]] = {}
    for row in rows_of(figures.bank["received"]):
        if row["result_id"]:
            _, before = sums.get(row["result_id"], ("", 0))
            sums[row["result_id"]] = row["currency"], before + row["amount"]
    return sums


def on_the_way(payouts: Sequence[Row]) -> tuple[Counter[str], Counter[str]]:
    """By currency the amount of payouts in transit, and of negative payouts to be taken.

    The second amounts are negative.
    """
    in_transit, to_be_taken = Counter[str](), Counter[str]()
    for row in payouts:
        if row["state"] == "PENDING" and row["amount"]:
            (in_transit if row["amount"] > 0 else to_be_taken)[row["currency"]] += row["amount"]
    return in_transit, to_be_taken


def _days(row: Row) -> int | None:
    if not row["value_on"]:
        return None
    settled, received = (date.fromisoformat(row[name]) for name in ("settled_on", "value_on"))
    return (received - settled).days


def _expected(payouts: Iterable[Row], *, until: date) -> list[dict[str, Any]]:
    """Pending payouts by their latest expected day, and how long arrived ones took."""
    payouts = [*payouts]
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for row in payouts:
        if row["state"] == "PENDING" and row["due_on"] <= until.isoformat():
            key = (row["due_on"], row["currency"])
            count, amount = sums.get(key, (0, 0))
            sums[key] = count + 1, amount + row["amount"]
    arrived = [row for row in payouts if row["state"] == "MATCHED" and row["days"] is not None]
    took = {
        currency: sorted(row["days"] for row in arrived if row["currency"] == currency)
        for _, currency in sums
    }
    return [
        {"due_on": due, "currency": currency, "count": count, "amount": amount}
        | {
            "half": _within(took[currency], percent=HALF),
            "most": _within(took[currency], percent=MOST),
        }
        for (due, currency), (count, amount) in sorted(sums.items())
    ]


def _within(days: Sequence[int], *, percent: int) -> int | None:
    """Days within which this share of payouts arrived; None when there are too few."""
    return days[-(-percent * len(days) // 100) - 1] if len(days) >= LEAST_ARRIVED else None
