"""The Bank sheet: statements proven line by line, every pay-out, and what is expected next.

Movements, closings and gaps are formulas; a statement that does not count says so in words.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any

from recon.model.figures import BANK_DAYS_AHEAD, NightFigures
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.highlight import CHECK, OK, colour_checks
from reports.drawing.listing import Column, Row, field, put_list, rows_of
from reports.drawing.page import print_on, protect, put_header, put_heading, set_widths
from reports.sheets.state_words import flag_words, in_words
from reports.sheets.words import words_of

TITLE = "Bank"
STATES = {
    "MATCHED": "At the bank",
    "PENDING": "In transit",
    "BREAK": "Break",
    "OPENING": "From before the first statement",
}


def _title(code: str) -> str:
    return words_of(code).title if code else ""


OPEN_FIRST = {"BREAK": 0, "PENDING": 1}
STATEMENTS = (
    *("Bank", "Statement", "From", "To", "Ccy", ">Opening", ">Movements", ">Closing", "Counts"),
    *("Adds up", "Follows"),
)
COUNTS, ADDS_UP, FOLLOWS = 9, 10, 11

PAYOUTS = (
    Column("Bank", 14, "text", field("bank")),
    Column("Batch", 16, "text", field("batch_id")),
    Column("Settled on", 12, "day", field("settled_on")),
    Column("Expected on", 12, "day", field("due_on")),
    Column("Ccy", 6, "text", field("currency"), "bnkCcy"),
    Column("Gross", 16, "amount", field("gross")),
    Column("Fees", 16, "amount", field("fees")),
    Column("Held back", 16, "amount", field("held")),
    Column("Announced", 16, "amount", field("amount"), "bnkPaid"),
    Column("At the bank", 14, "amount", field("bank_amount")),
    Column("Value date", 12, "day", field("value_on")),
    Column("Days", 7, "days", field("days")),
    Column("Difference", 14, "amount", field("difference")),
    Column("State", 22, "text", field("shown"), "bnkState"),
    Column("What it is", 24, "text", in_words("code", _title)),
    Column("Beside", 20, "text", in_words("flags", flag_words)),
)
BOOKED = Column("Booked", 14, "amount", field("booked"))
"""Where the books are held against the bank."""
EXCHANGED = (
    Column("Came in", 9, "text", field("came_in")),
    Column("Came", 14, "amount", field("came"), currency="came_in"),
)
"""Where the bank exchanged a pay-out: what stands on its statement."""
LEAST_ARRIVED = 5
"""Pay-outs of a currency that must have arrived before their days say anything."""
HALF, MOST = 50, 90
EXPECTED = (
    Column("Expected on", 14, "day", field("due_on")),
    Column("Pay-outs", 16, "count", field("count")),
    Column("Half within", 12, "days", field("half")),
    Column("90 % within", 12, "days", field("most")),
    Column("Ccy", 6, "text", field("currency")),
    Column("Amount", 16, "amount", field("amount")),
)


def draw_bank(draft: Draft, sheet: Any, *, figures: NightFigures) -> None:
    """Statements, pay-outs, what is expected."""
    put_heading(
        draft,
        sheet,
        title=TITLE,
        sentence="What the gateway says it paid out, and what the bank has. Entries of other "
        "people stand nowhere here: only their sum is a part of the movements.",
    )
    row = _put_statements(draft, sheet, rows=_in_order(figures), top=4)
    payouts = payout_rows(figures)
    draft.text(sheet, (row, 1), f"Pay-outs ({len(payouts)})", looks.HEADING)
    columns = _columns(figures, payouts)
    _, last = put_list(draft, sheet, columns=columns, rows=payouts, top=row + 1)
    if not payouts:
        draft.text(sheet, (last, 1), "None.", looks.NOTE)
    row = last + 2
    title = f"Expected at the bank in the next {BANK_DAYS_AHEAD} working days"
    draft.text(sheet, (row, 1), title, looks.HEADING)
    expected = _expected(payouts, until=figures.bank_until)
    _, last = put_list(draft, sheet, columns=EXPECTED, rows=expected, top=row + 1)
    if not expected:
        draft.text(sheet, (last, 1), "Nothing.", looks.NOTE)
    set_widths(sheet, [column.width for column in columns])
    sheet.freeze_panes = "A4"
    print_on(sheet, run_id=figures.run_id)
    protect(sheet)


def _columns(figures: NightFigures, payouts: Sequence[Row]) -> tuple[Column, ...]:
    booked = (BOOKED,) if "banked" in figures.bank else ()
    exchanged = EXCHANGED if any(row["came_in"] for row in payouts) else ()
    return (*PAYOUTS, *booked, *exchanged)


def payout_rows(figures: NightFigures) -> list[dict[str, Any]]:
    """Pay-outs of the account, what is open first, then the newest."""
    own = (figures.merchant_id, figures.account_id)
    several = "several" in own or "" in own
    booked, arrived = _booked(figures), _arrived(figures)
    rows = []
    for row in rows_of(figures.bank["paid"]):
        if not several and (row["merchant_id"], row["account_id"]) != own:
            continue
        whole = None if row["gross"] is None else row["gross"] - row["fees"] - row["amount"]
        came = row["bank_amount"]
        # The first pay-out of a result bears what came of all of them.
        came_in, amount = arrived.pop(row["result_id"], ("", 0))
        exchanged = came_in not in {"", row["currency"]}
        rows.append(
            {
                **row,
                "held": whole,
                "difference": None if came is None else came - row["amount"],
                "booked": booked.get(_group_of(row)),
                "came_in": came_in if exchanged else "",
                "came": amount if exchanged else None,
                "days": _days(row),
                "shown": STATES[row["state"]],
            }
        )
    newest = sorted(rows, key=lambda row: (row["settled_on"], row["batch_id"]), reverse=True)
    return sorted(newest, key=lambda row: OPEN_FIRST.get(row["state"], len(OPEN_FIRST)))


def _booked(figures: NightFigures) -> dict[tuple[str, ...], int]:
    """What the books have at the bank, under the first pay-out of each group."""
    names = ("merchant_id", "account_id", "key")
    rows = rows_of(figures.bank["banked"]) if "banked" in figures.bank else []
    return {tuple(row[name] for name in names): row["booked"] for row in rows}


def _arrived(figures: NightFigures) -> dict[str, tuple[str, int]]:
    """Result -> currency and sum of its entries: a bank has one currency."""
    sums: dict[str, tuple[str, int]] = {}
    for row in rows_of(figures.bank["received"]):
        if row["result_id"]:
            _, before = sums.get(row["result_id"], ("", 0))
            sums[row["result_id"]] = row["currency"], before + row["amount"]
    return sums


def _group_of(row: Row) -> tuple[str, ...]:
    return row["merchant_id"], row["account_id"], f"payout:{row['currency']}:{row['batch_id']}"


def in_transit(figures: NightFigures) -> dict[str, tuple[int, str]]:
    """Currency -> what was paid out and is not at the bank yet, and since when."""
    return _waiting(figures, of=lambda amount: amount > 0)


def to_be_taken(figures: NightFigures) -> dict[str, tuple[int, str]]:
    """The same of pay-outs below 0, which the gateway takes from the bank account; below 0."""
    return _waiting(figures, of=lambda amount: amount < 0)


def _waiting(figures: NightFigures, *, of: Callable[[int], bool]) -> dict[str, tuple[int, str]]:
    waiting: dict[str, tuple[int, str]] = {}
    for row in payout_rows(figures):
        if row["state"] == "PENDING" and of(row["amount"]):
            amount, since = waiting.get(row["currency"], (0, row["settled_on"]))
            total = amount + row["amount"]
            waiting[row["currency"]] = (total, min(since, row["settled_on"]))
    return waiting


def _days(row: Row) -> int | None:
    if not row["value_on"]:
        return None
    settled, came = (date.fromisoformat(row[name]) for name in ("settled_on", "value_on"))
    return (came - settled).days


def _in_order(figures: NightFigures) -> list[dict[str, Any]]:
    rows = rows_of(figures.bank["counted"])
    return sorted(rows, key=lambda row: (row["bank"], row["place"] < 0, row["place"]))


def _put_statements(draft: Draft, sheet: Any, *, rows: list[dict[str, Any]], top: int) -> int:
    """Each statement with its live check: it adds up, and begins where the one before ended."""
    draft.text(sheet, (top, 1), f"Statements ({len(rows)})", looks.HEADING)
    put_header(draft, sheet, row=top + 1, titles=STATEMENTS)
    before: dict[str, Any] = {}
    first = top + 2
    for at, row in enumerate(rows, start=first):
        _put_statement(draft, sheet, at, row)
        follows = before.get("bank") == row["bank"] and row["place"] > 0
        if follows and None not in {before["closing"], row["opening"]}:
            word = OK if before["closing"] == row["opening"] else CHECK
            formula = f'=IF(ROUND(H{at - 1}-F{at},3)=0,"{OK}","{CHECK}")'
            draft.formula(sheet, (at, FOLLOWS), (formula, word), looks.CHECK)
        before = row
    last = first + max(len(rows), 1) - 1
    colour_checks(sheet, f"J{first}:K{last}")
    if not rows:
        draft.text(sheet, (last, 1), "None that could be read.", looks.NOTE)
    return last + 2


def _put_statement(draft: Draft, sheet: Any, at: int, row: Row) -> None:
    names = ("bank", "statement_no", "from_date", "to_date", "currency")
    for column, name in enumerate(names, start=1):
        draft.text(sheet, (at, column), str(row[name]), looks.BODY_TEXT)
    for column, name in enumerate(("opening", "booked", "closing"), start=len(names) + 1):
        if row[name] is not None:
            draft.amount(sheet, (at, column), row[name], row["currency"])
    word = "counts" if row["place"] >= 0 else "does not count"
    draft.text(sheet, (at, COUNTS), word, looks.BODY_TEXT)
    if None not in {row["opening"], row["closing"]}:
        word = CHECK if row["opening"] + row["booked"] - row["closing"] else OK
        formula = f'=IF(ROUND(F{at}+G{at}-H{at},3)=0,"{OK}","{CHECK}")'
        draft.formula(sheet, (at, ADDS_UP), (formula, word), looks.CHECK)


def _expected(payouts: Iterable[Row], *, until: date) -> list[dict[str, Any]]:
    """What waits, by the day on which it is due at the latest, and how long its like took."""
    payouts = [*payouts]
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for row in payouts:
        if row["state"] == "PENDING" and row["due_on"] <= until.isoformat():
            key = (row["due_on"], row["currency"])
            count, amount = sums.get(key, (0, 0))
            sums[key] = count + 1, amount + row["amount"]
    took = {currency: _took(payouts, currency=currency) for _, currency in sums}
    return [
        {"due_on": due, "currency": currency, "count": count, "amount": amount}
        | {
            "half": _within(took[currency], percent=HALF),
            "most": _within(took[currency], percent=MOST),
        }
        for (due, currency), (count, amount) in sorted(sums.items())
    ]


def _took(payouts: Iterable[Row], *, currency: str) -> list[int]:
    """The days of every pay-out of a currency that arrived, as the list above has them."""
    arrived = (row for row in payouts if row["state"] == "MATCHED" and row["currency"] == currency)
    return sorted(row["days"] for row in arrived if row["days"] is not None)


def _within(days: Sequence[int], *, percent: int) -> int | None:
    """The days within which so many of them came, or more; None of too few."""
    return days[-(-percent * len(days) // 100) - 1] if len(days) >= LEAST_ARRIVED else None
