"""The sheet Breaks: what is wrong and what to do, the answer beside it, all else folded away.

Sixteen columns: a register that fits a screen is answered, one of thirty is not. Only the cream
cells are read back, by the key in the last column; a row whose other cells are no longer as they
were drawn is not taken (`read_back`).
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
"""Counted from 1, as people count rows."""
ANSWERS = ("Resolution", "Owner", "Comment", "Resolved on", "Applies to")
"""Titles of the cream columns."""
ANSWERED_BY, CODE = "Answered by", "Code, severity, since"
EFFECT = "Gateway − orders"  # noqa: RUF001 - a minus
AREAS = {
    "moves": "Money still to move, or in doubt",
    "bank": "Bank and payouts",
    "settlement": "Settlement, fees, reserve",
    "books": "Books wrong or incomplete",
    "orders": "Orders and gateway differ",
}
"""What a break is about, by codes.toml."""
_SIDES = (
    ("orders", "order_amount", "state_orders"),
    ("gateway", "gateway_amount", "state_gateway"),
    ("ledger", "ledger_amount", ""),
    ("bank", "bank_amount", ""),
)


def is_severe(row: Row) -> bool:
    """Whether a person must answer it before the night is signed."""
    return row["severity"] in SEVERE


def _tone(row: Row) -> Tone:
    return "severe" if is_severe(row) else ""


def what_is_wrong(row: Row) -> str:
    """Its title, with how grave it is and how many are alike."""
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
        kept: StoredAnswer | None = row["kept"]
        return getattr(kept.answer, name) if kept else None

    return value


def _applies_to(row: Row) -> str | None:
    kept: StoredAnswer | None = row["kept"]
    return (kept.scope or None) if kept else None


def answered_by(kept: StoredAnswer | None) -> str:
    """Who gave the newest answer to a break."""
    if kept is None:
        return ""
    return f"{kept.by} (waits for a second person)" if kept.waits else kept.by


def _key(row: Row) -> str:
    """Which break it is, and how many answers the sheet knows of."""
    kept: StoredAnswer | None = row["kept"]
    return f"{row['break_id']}.{kept.version if kept else 0}"


def _sides(row: Row) -> str:
    """Both sides and what else is known, in one line."""
    currency = row["currency"] or ""
    parts = [f"payment {row['transaction_id']}"] if row["transaction_id"] else []
    for name, amount, state in _SIDES:
        if name == "ledger" and not row["is_covered"]:
            parts.append(f"ledger {NOT_COVERED}")
            continue
        known = row.get(amount)
        text = state_label(str(row[state] or "")) if state else ""
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


def _code(row: Row) -> str:
    """Such as "AMOUNT_OVER · HIGH · owed to shopper · 3 days old · Orders and gateway differ"."""
    owed_to = OWED_LABELS[owed_text(row)]
    parts = [row["code"], row["severity"], f"owed to {owed_to}", f"{row['age_days'] or 0} days old"]
    parts += [AREAS[label_of(row["code"]).area]]
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
    Column(ANSWERED_BY, 18, lambda row: answered_by(row["kept"]), is_hidden=True),
    Column("What each side says", 52, _sides, wrap=True, is_hidden=True),
    Column(EFFECT, 15, "effect_orders", "money", is_hidden=True),
    Column(CODE, 44, _code, wrap=True, is_hidden=True),
    Column(KEY, 36, _key, "key", is_hidden=True),
)
KEY_AT = next(number for number, column in enumerate(COLUMNS) if column.title == KEY)


def break_of(row: Sequence[Any]) -> str:
    """The break of a row as it was read back, without how often it was answered and its seal."""
    return str(row[KEY_AT]).partition(".")[0] if len(row) > KEY_AT else ""


PAPER_COLUMNS = sum(not column.is_hidden for column in COLUMNS)


def break_rows(
    rows: Rows, *, figures: NightFigures, answers: Mapping[str, StoredAnswer]
) -> list[dict[str, Any]]:
    """The breaks with what the sheet says of them beside what the result has."""
    alike, zone = Counter(map(alike_by, rows.breaks)), ZoneInfo(figures.timezone)
    return [
        {
            **row,
            "kept": (kept := answers.get(row["break_id"])),
            "answered": kept.valid_since(figures.generated_at, zone=zone) if kept else "",
            "alike": alike[alike_by(row)],
            "is_covered": figures.ledger_covered,
        }
        for row in rows.breaks
    ]


def breaks_sheet(figures: NightFigures, rows: Rows) -> Sheet:
    """The register of open breaks, the most urgent first."""
    shown = break_rows(rows, figures=figures, answers=figures.answers)
    severe = sum(map(is_severe, shown))
    about = (
        f"{len(shown):,} open, {severe:,} of them high or critical. The gravest stand first, then "
        "by currency, its largest money first. Answer in the cream columns; + shows the rest."
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
    """Where the break with this number stands."""
    return f"'{TITLE}'!A{HEADER_ROW + 1 + number}"
