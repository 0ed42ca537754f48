"""What a night moved and what is to be done now, in a few lines for its page in Prefect."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from flows.page_text import on_a_page
from recon.instructions.approval import sums_in_words
from recon.steps.people.people import attention, in_groups
from recon.store.money import instruction_sheet
from recon.store.nights import runs
from reports.sheets.totals import GROUPS

if TYPE_CHECKING:
    from recon.model.figures import Attention
    from recon.steps.ground.environment import Environment

ATTENTION_SHOWN_MAX = 20
"""More stand in the workbook and in `recon status`."""
CURRENCIES_A_ROW = 3
"""Prefect's page wraps no cell: a longer one is cut at the edge of the table."""
ORDER = ("in doubt", "confirmed", "waiting", "rejected", "withdrawn")
"""What the money came to, what needs people first."""


def standing_lines(run_id: str, *, environment: "Environment") -> list[str]:
    """Markdown: the money of a run by kind and outcome, and what needs a person."""
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
        instructions = instruction_sheet.sheet_frame(connection, run)
    counts: Counter[tuple[str, str]] = Counter()
    sums: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in instructions.to_dict("records"):
        key = (GROUPS.get(row["state"], ORDER[0]), row["kind"].replace("_", " "))
        counts[key] += 1
        sums[key][row["currency"]] += int(row["amount"])
    lines = ["## Money", ""]
    lines += ["| outcome | what | how many | how much |", "|---|---|---|---|"] if counts else []
    for outcome, kind in sorted(counts, key=lambda key: (ORDER.index(key[0]), key[1])):
        key = (outcome, kind)
        lines += money_rows(outcome, kind, count=counts[key], sums=sums[key])
    if not counts:
        lines.append("No instruction: no money was to move.")
    waiting = attention(run, environment=environment)
    return [*lines, "", "## What needs a person", "", *_needs(waiting), ""]


def money_rows(outcome: str, kind: str, *, count: int, sums: Mapping[str, int]) -> list[str]:
    """What became of one kind of movement; further currencies go on in rows below."""
    ordered = sorted(sums.items())
    pieces = range(0, len(ordered), CURRENCIES_A_ROW)
    first, *more = [sums_in_words(dict(ordered[at : at + CURRENCIES_A_ROW])) for at in pieces]
    return [
        f"| {outcome} | {kind} | {count} | {first} |",
        *(f"|  |  |  | {money} |" for money in more),
    ]


def _needs(waiting: "tuple[Attention, ...]") -> list[str]:
    lines: list[str] = []
    for next_step, entries in in_groups(waiting[:ATTENTION_SHOWN_MAX]):
        if len(entries) == 1:
            lines.append(f"- {_what(entries[0])}: {on_a_page(next_step)}")
        else:
            lines.append(f"- Each of these {len(entries)}: {on_a_page(next_step)}")
            lines += [f"    - {_what(entry)}" for entry in entries]
    if len(waiting) > ATTENTION_SHOWN_MAX:
        lines.append(f"- and {len(waiting) - ATTENTION_SHOWN_MAX} more: `recon status`")
    return lines or ["No instruction does."]


def _what(entry: "Attention") -> str:
    of_what = f", {entry.subject}" if entry.subject else ""
    money = f", {sums_in_words({entry.currency: entry.amount})}" if entry.currency else ""
    return on_a_page(f"{entry.what}{of_what}{money}")
