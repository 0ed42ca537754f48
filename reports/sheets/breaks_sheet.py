"""The sheet Breaks: what is wrong, what to do, and cells for the answer; the rest is collapsed.

It has sixteen columns, because a register that fits a screen is answered and one of thirty is not.
Only the cream input cells are read back, by the key in the last column; a row whose other cells
were changed is not accepted (`read_back`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from recon.matching.breaks.result import alike_by, subject_of
from recon.matching.classifying.severity import owed_text, risk_of_break
from recon.model.figures import NightFigures
from recon.model.resolutions import (
    COMMENT_CHARACTERS_MAX,
    OWNER_CHARACTERS_MAX,
    RESOLUTIONS,
    SCOPES,
    StoredAnswer,
)
from recon.model.terms import SEVERE
from reports.drawing.blocks import Column, Listing, Row, Sheet
from reports.drawing.look import NOT_COVERED, Tone, grouped_amount
from reports.sheets.labels import OWED_LABELS, flag_labels, label_of, state_label
from reports.sheets.totals import Rows

TITLE, KEY = "Breaks", "Key"
HEADER_ROW = 4
"""Counted from 1, as in Excel."""
ANSWERS = ("Resolution", "Owner", "Comment", "Resolved on", "Applies to")
"""Titles of the input columns."""
ANSWERED_BY, CODE = "Answered by", "Code, severity, since"
EFFECT = "Gateway − orders"  # noqa: RUF001 - a minus
AREAS = {
    "moves": "Money still to move, or in doubt",
    "bank": "Bank and payouts",
    "settlement": "Settlement, fees, reserve",
    "ledger": "Ledger wrong or incomplete",
    "orders": "Orders and gateway differ",
}
"""Areas of breaks in codes.toml."""
_SIDES = (
    ("orders", "order_amount", "state_orders"),
    ("gateway", "gateway_amount", "state_gateway"),
    ("ledger", "ledger_amount", ""),
    ("bank", "bank_amount", ""),
)


def is_severe(row: Row) -> bool:
    """Whether a person must answer it before the run is signed."""
    return row["severity"] in SEVERE


def _tone(row: Row) -> Tone:
    return "severe" if is_severe(row) else ""


def what_is_wrong(row: Row) -> str:
    """The title of a break, with its severity if high and the number of similar breaks."""
    marks = [str(row["severity"]).lower()] if is_severe(row) else []
    marks += [f"{row['alike']:,} alike"] if row["alike"] > 1 else []
    title = label_of(row["code"]).title
    return f"{title} ({', '.join(marks)})" if marks else title


def _why(row: Row) -> str:
    labels = ": ".join(str(row[name]) for name in ("cause", "reason") if row[name])
    if older := row.get("reopens"):
        labels = f"Open again, it was closed as break {older}. {labels}"
    return (
        f"{row['answered'][0].upper()}{row['answered'][1:]}. {labels}"
        if row["answered"]
        else labels
    )


def _answered(name: str) -> Any:
    def value(row: Row) -> Any:
        stored: StoredAnswer | None = row["stored"]
        return getattr(stored.answer, name) if stored else None

    return value


def _applies_to(row: Row) -> str | None:
    stored: StoredAnswer | None = row["stored"]
    return (stored.scope or None) if stored else None


def answered_by(stored: StoredAnswer | None) -> str:
    """The person who gave the latest answer to a break."""
    if stored is None:
        return ""
    return f"{stored.by} (waits for a second person)" if stored.waits else stored.by


def _key(row: Row) -> str:
    """The break id with the number of its answers when the sheet was written."""
    stored: StoredAnswer | None = row["stored"]
    return f"{row['break_id']}.{stored.version if stored else 0}"


def _sides(row: Row) -> str:
    """The states and amounts of all sides, in one line."""
    currency = row["currency"] or ""
    parts = [f"payment {row['transaction_id']}"] if row["transaction_id"] else []
    for name, amount, state in _SIDES:
        if name == "ledger" and not row["is_covered"]:
            parts.append(f"ledger {NOT_COVERED}")
            continue
        known = row.get(amount)
        # A group of payouts, fees or reserves has an amount on this side and no state.
        is_group = known is not None and row[state] == "none" if state else False
        text = state_label(str(row[state] or "")) if state and not is_group else ""
        if known is not None or (state and row[state] not in {"", "none", None}):
            shown = grouped_amount(known, currency) if known is not None else ""
            parts.append(" ".join(filter(None, (name, text, shown))))
    for name, effect in (("ledger", "effect_ledger"), ("paid out", "effect_bank")):
        if row.get(effect) and (name != "ledger" or row["is_covered"]):
            first = "gateway" if name == "ledger" else "bank"
            difference = grouped_amount(row[effect], currency)
            parts.append(f"{first} − {name} {difference}")  # noqa: RUF001 - a minus
    if row["exposure"] != risk_of_break(row):
        parts.append(f"whole amount {grouped_amount(row['exposure'], currency)}")
    if row.get("risk"):
        parts.append(f"risk, says the gateway: {row['risk']}")
    return " · ".join(parts)


def area_of(row: Row) -> str:
    """The area of a break: its code's, or the bank where a payout at a bank is meant."""
    return "bank" if row.get("effect_bank") is not None else label_of(str(row["code"])).area


def _code(row: Row) -> str:
    """Such as "AMOUNT_OVER · HIGH · owed to shopper · 3 days old · Orders and gateway differ"."""
    owed_to = OWED_LABELS[owed_text(row)]
    days = row["age_days"] or 0
    age = f"{days} day{'s' * (days != 1)} old"
    parts = [row["code"], row["severity"], f"owed to {owed_to}", age, AREAS[area_of(row)]]
    parts += [f"first seen {row['first_seen']}", f"account {row['account_id']}"]
    return " · ".join([*parts, *([flag_labels(row["flags"])] if row["flags"] else [])])


COLUMNS = (
    Column("Order or batch", 17, subject_of, wrap=True),
    Column("Ccy", 6, "currency"),
    Column("Money at risk", 13, risk_of_break, "money", tone=_tone),
    Column("What is wrong", 19, what_is_wrong, wrap=True, tone=_tone),
    Column("Why", 40, _why, wrap=True),
    Column("What to do", 27, lambda row: label_of(row["code"]).to_do, wrap=True),
    Column("Resolution", 15, _answered("resolution"), "input", choices=RESOLUTIONS),
    Column("Owner", 12, _answered("owner"), "input", characters_max=OWNER_CHARACTERS_MAX),
    Column("Comment", 18, _answered("comment"), "input", characters_max=COMMENT_CHARACTERS_MAX),
    Column("Resolved on", 11, _answered("resolved_on"), "input"),
    Column("Applies to", 12, _applies_to, "input", choices=SCOPES),
    Column(ANSWERED_BY, 18, lambda row: answered_by(row["stored"]), is_hidden=True),
    Column("What each side says", 52, _sides, wrap=True, is_hidden=True),
    Column(EFFECT, 15, "effect_orders", "money", is_hidden=True),
    Column(CODE, 44, _code, wrap=True, is_hidden=True),
    Column(KEY, 36, _key, "key", is_hidden=True),
)
KEY_AT = next(number for number, column in enumerate(COLUMNS) if column.title == KEY)


def break_of(row: Sequence[Any]) -> str:
    """The break id in the key of a row that was read back."""
    return str(row[KEY_AT]).partition(".")[0] if len(row) > KEY_AT else ""


PAPER_COLUMNS = sum(not column.is_hidden for column in COLUMNS)


def break_rows(
    rows: Rows, *, figures: NightFigures, answers: Mapping[str, StoredAnswer]
) -> list[dict[str, Any]]:
    """The breaks with further fields for the sheet."""
    alike, zone = Counter(map(alike_by, rows.breaks)), ZoneInfo(figures.timezone)
    return [
        {
            **row,
            "stored": (stored := answers.get(row["break_id"])),
            "answered": stored.valid_since(figures.generated_at, zone=zone) if stored else "",
            "alike": alike[alike_by(row)],
            "is_covered": figures.ledger_covered,
        }
        for row in rows.breaks
    ]


def breaks_sheet(figures: NightFigures, rows: Rows) -> Sheet:
    """The register of open breaks, most urgent first."""
    shown = break_rows(rows, figures=figures, answers=figures.answers)
    severe = sum(map(is_severe, shown))
    about = (
        f"{len(shown):,} open, {severe:,} of them high or critical. Sorted by severity, "
        "then currency, then money at risk. Answer in the cream columns; + shows the rest."
    )
    return Sheet(
        TITLE,
        [Listing(COLUMNS, shown, is_list=True, nothing="")],
        heading=f"Breaks · {figures.merchant_name or figures.merchant_id}",
        about=about,
        frozen=(HEADER_ROW, 4),
        paper_columns=PAPER_COLUMNS,
        is_locked=False,
        colour="C00000",
    )


def place_of(number: int) -> str:
    """The cell of the break with this number."""
    return f"'{TITLE}'!A{HEADER_ROW + 1 + number}"
