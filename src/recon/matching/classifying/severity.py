"""Who is owed the money of a break, how much of it is at risk, and how severe the break is."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from recon.config.rules import Rules, SeverityRules
from recon.matching.codes import CODES
from recon.model.money import exponent
from recon.model.terms import BreakCode, Flag, Severity

AGE_RAISES_AFTER_DAYS = 3
"""More business days than this raise the severity by one step."""

LEVELS = tuple(Severity)


def owed_to(code: BreakCode, *, effect_orders: int) -> str:
    """Return `shopper`, `merchant` or `none`, by the sign of gateway minus order.

    A result has no other values; for display see `owed_text`.
    """
    owed = CODES[code].owed_to
    if owed == "shopper":
        return owed
    if owed == "nobody" or effect_orders == 0:
        return "none"
    return "shopper" if effect_orders > 0 else "merchant"


def owed_text(row: Mapping[Any, Any]) -> str:
    """Return who is owed, for display.

    Where a result has `none`, a payout that was too high is owed to the gateway.
    """
    owed = str(row["owed_to"])
    return CODES[BreakCode(str(row["code"]))].otherwise if owed == "none" else owed


_EFFECTS = ("effect_orders", "effect_ledger", "effect_bank")


def risk_of_break(row: Mapping[Any, Any]) -> int:
    """Return the money at risk of a break's row (BREAK_COLUMNS), in minor units."""
    known = [0 if pd.isna(row[name]) else int(row[name]) for name in _EFFECTS]
    effects = effects_in_question(known[0], known[1:], flags=str(row["flags"]))
    return money_at_risk(int(row["exposure"]), effects=effects)


def effects_in_question(on_orders: int, others: Sequence[int], *, flags: str) -> Sequence[int]:
    """Return the effects of a break, without one that our own instruction explains to the cent.

    Where only ledger or bank differ for a payment that we captured, that amount is not at risk.

    Args:
        on_orders: 0 where none is known, as of the others.
        others: On ledger and bank, signed minor units.
        flags: Of the break, as its row has them.
    """
    if any(others) and Flag.INSTRUCTED in flags.split(";"):
        return others
    return (on_orders, *others)


def money_at_risk(exposure: int, *, effects: Iterable[int]) -> int:
    """Return what is at risk in a break: its effect where one is known, at most the whole.

    The one rule behind the severity, the column on Breaks and the sums of page one.

    Args:
        exposure: The whole amount that may be at risk, minor units.
        effects: On orders, ledger and bank, signed minor units; 0 where none is known.
    """
    effect = max((abs(effect) for effect in effects), default=0)
    return min(effect, exposure) if effect else exposure


def severity_of(
    codes: Sequence[BreakCode], *, at_risk: int, currency: str, age_days: int, rules: Rules
) -> Severity:
    """Return the severity by money at risk, raised by age, capped by `ignore`, above the floors."""
    thresholds = rules.severity.get(currency, SeverityRules())
    unit = 10 ** (exponent(currency) if currency else 0)
    limits = (thresholds.medium, thresholds.high, thresholds.critical)
    level: int = sum(int(at_risk >= limit * unit) for limit in limits)
    if age_days > AGE_RAISES_AFTER_DAYS:
        level = min(level + 1, len(LEVELS) - 1)
    if at_risk < thresholds.ignore * unit:
        level = 0
    return LEVELS[max((level, *(LEVELS.index(CODES[code].lowest) for code in codes)))]


def worse(severity: str, other: str) -> str:
    """The worse of two severities."""
    return max(severity, other, key=lambda label: LEVELS.index(Severity(label)))


def urgency(row: Mapping[Any, Any]) -> tuple[int, bool, str, int, int, str]:
    """Return the sort key of a break's row for display: highest severity first, then by currency.

    Within a currency the largest amount comes first; amounts of two currencies are never compared.
    Rows without a currency come last.
    """
    currency, age_days = str(row["currency"] or ""), int(row["age_days"] or 0)
    level = -LEVELS.index(Severity(row["severity"]))
    return (level, not currency, currency, -risk_of_break(row), -age_days, str(row["break_id"]))
