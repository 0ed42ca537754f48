"""How much is at risk in a break, who is owed, how old and how urgent it is."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from recon.config.rules import Rules, SeverityRules
from recon.matching.codes import CODES
from recon.matching.frames.arrays import Arrays
from recon.matching.frames.grouping import Ints
from recon.matching.sets.residuals import charged_by_lines, ints
from recon.model.money import exponent
from recon.model.words import BreakCode, Flag, Severity

AGE_RAISES_AFTER_DAYS = 3
"""More business days than this raise the severity by one step."""

LEVELS = tuple(Severity)


def owed_to(code: BreakCode, *, effect_orders: int) -> str:
    """`shopper`, `merchant` or `none`, by the sign of gateway minus order."""
    owed = CODES[code].owed_to
    if owed == "shopper":
        return owed
    if owed == "nobody" or effect_orders == 0:
        return "none"
    return "shopper" if effect_orders > 0 else "merchant"


_EFFECTS = ("effect_orders", "effect_ledger", "effect_bank")


def risk_of_break(row: Mapping[Any, Any]) -> int:
    """Money at risk of a break as it stands in a result (BREAK_COLUMNS), minor units."""
    known = [0 if pd.isna(row[name]) else int(row[name]) for name in _EFFECTS]
    effects = effects_in_question(known[0], known[1:], flags=str(row["flags"]))
    return money_at_risk(int(row["exposure"]), effects=effects)


def effects_in_question(on_orders: int, others: Sequence[int], *, flags: str) -> Sequence[int]:
    """The effects of a break without one that our own instruction explains to the cent.

    Where the books alone are wrong of a payment that we captured, what we captured is not at risk.

    Args:
        on_orders: 0 where none is known, as of the others.
        others: On ledger and bank, signed minor units.
        flags: Of the break, as its row has them.
    """
    if any(others) and Flag.INSTRUCTED in flags.split(";"):
        return others
    return (on_orders, *others)


def money_at_risk(exposure: int, *, effects: Iterable[int]) -> int:
    """What is at risk in a break: its effect where one is known, never more than the whole.

    The one rule behind its severity, the column on Breaks and the sums of page one.

    Args:
        exposure: The whole amount that may be at risk, minor units.
        effects: On orders, ledger and bank, signed minor units; 0 where none is known.
    """
    effect = max((abs(effect) for effect in effects), default=0)
    return min(effect, exposure) if effect else exposure


def severity_of(
    codes: Sequence[BreakCode], *, at_risk: int, currency: str, age_days: int, rules: Rules
) -> Severity:
    """Money at risk sets it, age raises it, `ignore` caps it; never below the floor of a code."""
    thresholds = rules.severity.get(currency, SeverityRules())
    unit = 10 ** (exponent(currency) if currency else 0)
    limits = (thresholds.medium, thresholds.high, thresholds.critical)
    level: int = sum(int(at_risk >= limit * unit) for limit in limits)
    if age_days > AGE_RAISES_AFTER_DAYS:
        level = min(level + 1, len(LEVELS) - 1)
    if at_risk < thresholds.ignore * unit:
        level = 0
    return LEVELS[max((level, *(LEVELS.index(CODES[code].lowest) for code in codes)))]


def graver(severity: str, other: str) -> str:
    """The worse of two severities."""
    return max(severity, other, key=lambda word: LEVELS.index(Severity(word)))


def urgency(row: Mapping[Any, Any]) -> tuple[int, Decimal, int, str]:
    """Sorts rows of breaks, wherever people read them: the gravest first, of these the largest.

    Amounts of two currencies are compared in major units, as the thresholds of severity are.
    """
    currency = str(row["currency"] or "")
    major = Decimal(risk_of_break(row)).scaleb(-exponent(currency) if currency else 0)
    age_days = int(row["age_days"] or 0)
    return (-LEVELS.index(Severity(row["severity"])), -major, -age_days, str(row["break_id"]))


def exposure_of(code: BreakCode) -> str:
    """The column of `exposures` that a code is measured by."""
    return CODES[code].risk


def exposures(
    sets: Arrays, *, effects: Ints, uncaptured: Ints, beyond_ours: Ints
) -> dict[str, Ints]:
    """What a set may put at risk, by what it is measured by; minor units, unsigned.

    No figure is a difference across currencies: of sides in two of them the whole is at risk.
    `uncaptured`: what our confirmed capture, which explains the set, left of the payment;
    `beyond_ours`: the same, and what one in doubt left.
    """
    columns = {
        "fee": sets["fee_gap"],
        "exchange": sets["exchange_gap"],
        "settled": sets["settled_gross"],
        "settlement gap": sets["settled_captured"] - sets["gateway_captured"],
        "captured": sets["gateway_captured"] - uncaptured,
    }
    sizes = {name: np.abs(column) for name, column in columns.items()}
    back = np.abs(sets["settled_refunded"] - sets["gateway_refunded"])
    sizes["settlement gap"] += np.where(sets["settled_refund_any"], back, 0)
    foreign = sets["settled_capture_any"] & (sets["settled_currency"] != sets["currency"])
    amounts = largest(
        sets["order_amount"],
        sets["gateway_amount_shown"],
        sets["instruction_amount"],
        sets["payout_amount"],
    )
    whole = np.where(
        sets["order_amount"] != 0,
        np.abs(sets["order_amount"]),
        np.abs(sets["gateway_amount_shown"]),
    )
    sizes["settlement gap"] = np.where(foreign, whole, sizes["settlement gap"])
    charged = np.where(ints(sets["ledger_chargeback"]) == 0, charged_by_lines(sets), 0)
    amounts = np.where(uncaptured > 0, np.minimum(amounts, sizes["captured"]), amounts)
    taken = np.abs(sets["gateway_captured"] - beyond_ours)
    sizes["taken"] = np.where(beyond_ours > 0, np.minimum(amounts, taken), amounts)
    return {**sizes, "whole": whole, "amount": amounts, "effect": np.maximum(effects, charged)}


def largest(*columns: Ints) -> Ints:
    """Row by row, the greatest absolute amount."""
    return np.asarray(np.maximum.reduce([np.abs(c) for c in columns]), dtype=np.int64)
