"""Labels of reasons, verdicts, states, flags and codes for sheets and forms (words.toml)."""

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from recon.matching.codes import CODES, Code
from recon.model.money import format_minor_units
from recon.model.terms import BreakCode, Verdict
from recon.proof.totals_in_sql import BY_RULE

TABLES: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("words.toml").read_text("utf-8")
)
"""The contents of words.toml."""
VERDICT_LABELS = {Verdict(verdict): labels for verdict, labels in TABLES["verdicts"].items()}
UNVERIFIED_LABELS, OWED_LABELS = TABLES["unverified"], TABLES["owed_to"]
FLAG_LABELS, STATE_LABELS = TABLES["flags"], TABLES["states"]
QUESTIONS = TABLES["proves"]
"""Reference of a control total -> what it proves."""
LABELS_STORED_MAX = 1_024
"""Maximum number of distinct texts of a column whose labels are cached."""


def label_of(code: str) -> Code:
    """The texts of a break code; an unknown code is its own title."""
    try:
        return CODES[BreakCode(code)]
    except ValueError:
        meaning = "This code is newer than this report."
        return Code.model_construct(
            name=code, title=code, meaning=meaning, to_do="See docs/REFERENCE.md."
        )


def title_of(code: str) -> str:
    """The title of a break code; "" for none."""
    return label_of(code).title if code else ""


def as_text(sentence: str, *, code: str) -> str:
    """A sentence about a break with its title inserted before its code."""
    if not code:
        return sentence
    return sentence.removeprefix("Break ").replace(code, f"{label_of(code).title} ({code})", 1)


def state_label(state: str) -> str:
    """Label of an order's or payment's state, such as "partly refunded"."""
    return STATE_LABELS.get(state, state.replace("_", " "))


def rule_label(rule: str) -> str:
    """Label of the rule by which a match was found."""
    return rule.replace("_", " ")


def rule_of(labels: str) -> str:
    """The rule with this label: the inverse of `rule_label`."""
    return labels.replace(" ", "_")


def flag_labels(flags: str) -> str:
    """Labels of the flags of a row, in order; codes of breaks by their titles."""
    return "; ".join(_flag(flag) for flag in flags.split(";") if flag)


def _flag(flag: str) -> str:
    if flag in set(BreakCode):
        return label_of(flag).title.lower()
    return FLAG_LABELS.get(flag, flag)


def worded(name: str, labels: Callable[[str], str]) -> Callable[[Mapping[str, Any]], str]:
    """A column value that is the label of a field, cached."""
    known = lru_cache(LABELS_STORED_MAX)(labels)

    def value(row: Mapping[str, Any]) -> str:
        return known(str(row[name] or ""))

    return value


_MEASURES = {"count": "records", "amount": "money"}
_SOURCES = {"orders": "order files", "gateway": "gateway", "ledger": "ledger"}
_RULE = re.compile(rf"sheet = database, {BY_RULE}(\w+)")
_PATTERNS = tuple((re.compile(pattern), labels) for pattern, labels in TABLES["totals"].items())


def proof_label(name: str) -> str:
    """Label of a control total for people; a name without one is returned unchanged."""
    if rule := _RULE.fullmatch(name):
        return f"rows of this workbook = database: matched, {rule_label(rule[1])}"
    for pattern, labels in _PATTERNS:
        if match := pattern.fullmatch(name):
            return labels.format(*(_SOURCES.get(part, part) for part in match.groups()))
    return name


def figure_text(figure: int, *, of: Any) -> str:
    """A side of a control total: a plain count, or an amount in major units of its currency."""
    if of.measure == "count" or not of.currency:
        return str(figure)
    return format_minor_units(figure, currency=of.currency)


def measure_label(measure: str) -> str:
    """Label of a control total's measure."""
    return _MEASURES.get(measure, measure)
