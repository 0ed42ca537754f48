"""What the sheets of a workbook come to, where drawing one is not what is tried."""

import pandas as pd

from recon.model.figures import NightFigures

SECTIONS = {"break": "breaks", "match": "matches", "pending": "pending", "unverified": "unverified"}


def listed(figures: NightFigures) -> dict[str, tuple[int, dict[str, int]]]:
    """Every list with its rows and its sums by currency; the matches also by their rule."""
    frames = {section: _frame_of(figures, name) for section, name in SECTIONS.items()}
    for rule, rows in frames["match"].groupby("rule", observed=True):
        frames[f"match by {rule}"] = rows
    return {section: (len(frame), _sums(frame)) for section, frame in frames.items()}


def _frame_of(figures: NightFigures, name: str) -> pd.DataFrame:
    """One of its frames; the matches come in parts, and a night of a test has few."""
    if name != "matches":
        frame: pd.DataFrame = getattr(figures, name)
        return frame
    none = pd.DataFrame({"rule": [], "currency": [], "effect_orders": []})
    return pd.concat([none, *figures.matches.batches()])


def _sums(frame: pd.DataFrame) -> dict[str, int]:
    sums = frame.groupby("currency", observed=True)["effect_orders"].sum()
    return {str(currency): int(total) for currency, total in sums.items()}
