"""Plays a scenario; what people got, and what truly moved, is held against what it states."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.scenarios.runner.folder import Expected, Scenario, ScenarioError, Step, Table
from tests.scenarios.runner.gateway import PlayedGateway
from tests.scenarios.runner.merchant import PlayedMerchant, Stated
from tests.scenarios.runner.sheets import Results, Row, read

ANY = "…"
"""In an expected cell: whatever stands there."""
UNITS = "[A-Z]{3}|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
"""What belongs to the figure before it: a currency, a month."""
UNEXPECTED = "unexpected"
"""What recon says of an error that nobody foresaw."""
SENTENCES = frozenset({"why", "what to do", "reason"})
"""Columns of sentences: their figures and names are compared, their wording may change."""
ORDER_COLUMNS = ("order", "order_no")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "breaks": ("order", "code", "at risk", "owed to", "severity", "why"),
    "unverified": ("order", "reason code", "why"),
    "rejected": ("file", "line", "column", "order", "reason"),
    "effects": ("act", "order", "amount"),
    "pending": ("order", "why"),
    "matched": ("order", "how it was matched", "what explains it"),
    "instructions": ("kind", "order", "amount", "state"),
    "attention": ("what", "order", "what to do"),
    "notes": ("why",),
}
"""What a reader wants to see of rows that nobody expected."""


@dataclass
class Played:
    """What a scenario came to."""

    scenario: Scenario
    differences: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    """Why something is not as it must be yet, as the scenario states it."""
    log: list[Stated] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    """Lines of the expect.toml that would make it green."""

    def add(self, differences: list[str], known: list[str]) -> None:
        """Note what a step came to."""
        self.differences += differences
        self.known += known

    def __str__(self) -> str:
        """The rule, what differs, and what was typed and printed on the way."""
        lines = [f"{self.scenario.name}: {self.scenario.rule}", ""]
        lines += self.differences
        lines += ["", "What was typed, and what it said:"]
        for said in self.log:
            lines += [f"  $ {said.words}   -> {said.exit_code}"]
            lines += [f"      {line}" for line in said.text.strip().splitlines()]
        return "\n".join(lines)


def play(scenario: Scenario, *, folder: Path, gateway: PlayedGateway, empty: Path) -> Played:
    """Play all steps; a night that came to something else does not end the play."""
    played = Played(scenario, seen=[f'rule = "{scenario.rule}"'])
    merchant = PlayedMerchant.opened(folder, scenario=scenario, gateway=gateway, empty=empty)
    played.log = merchant.log
    nights = 0
    for number, step in enumerate(scenario.steps, start=1):
        if step.expected is None:
            found = _wrong_words(step, said=merchant.act(step), number=number)
            played.add(*_expected_to_fail(step.stated.get("fails_until", ""), found))
            continue
        nights += 1
        said = merchant.night(step)
        effects = [] if scenario.plain else gateway.new_effects()
        night = Night(said, read(merchant.written), of_book(effects))
        played.seen += _as_expect(night, day=step.stated["night"])
        found, known = night.differences(step.expected)
        found = [f"Night {nights} ({step.stated['night']}): {line}" for line in found]
        played.add(*_expected_to_fail(step.expected.fails_until, found))
        played.known += known
    played.differences += _at_the_end(merchant)
    all_found, played.differences = played.differences, []
    played.add(*_expected_to_fail(scenario.fails_until, all_found))
    return played


@dataclass(frozen=True, slots=True)
class Night:
    """What one night printed, what people got, and what truly happened at the gateway."""

    said: Stated
    results: Results
    effects: Sequence[Row]

    def rows(self, table: str) -> Sequence[Row]:
        """The rows of one table."""
        return self.effects if table == "effects" else self.results.rows(table)

    def differences(self, expected: Expected) -> tuple[list[str], list[str]]:
        """What is not as it was written down, and why something is known to be wrong yet."""
        found = list(self._figures_differ(expected))
        wrong: set[str] = set()
        for name, table in expected.tables.items():
            drawn, orders = _table_differs(
                name, table=table, rows=self.rows(name), known=expected.wrong_orders.keys()
            )
            found += drawn
            wrong |= orders
        for order in expected.wrong_orders.keys() - wrong:
            found += [f"{order} is right now: take its mark fails_until off"]
        return found, [f"{order}: {expected.wrong_orders[order]}" for order in sorted(wrong)]

    def _figures_differ(self, expected: Expected) -> Iterator[str]:
        if self.said.exit_code != expected.ends:
            yield f"it ended with {self.said.exit_code}, not {expected.ends}."
        if self.results.verdict != expected.verdict:
            seen = self.results.verdict or "missing"
            yield f"the verdict is {seen}, not {expected.verdict or 'none'}."
        text = _flat(self.said.text)
        yield from (f"it does not say {one!r}." for one in expected.prints if one not in text)
        if UNEXPECTED in text:
            yield "recon met an error that nobody foresaw."
        if (failing := self.results.failing_totals()) != expected.failing_totals:
            yield f"control totals that fail: {failing}, not {expected.failing_totals}."


def of_book(effects: list[dict[str, str]]) -> list[Row]:
    """The gateway's own book: what truly happened, whatever anybody was told."""
    return [
        {
            "act": row["operation"],
            "order": row["order_no"],
            "amount": f"{row['amount']} {row['currency']}".strip(),
            "account": row["account_id"],
            "at": row["committed_at"],
            "request": row["request_id"],
        }
        for row in effects
    ]


def facts(sentence: str) -> str:
    """The figures and names of a sentence in their order: amounts, dates, ids, what is quoted.

    >>> facts("Gateway holds 4,900.00 EUR, the order A-1 says '12.5' since 4 Nov 2026.")
    "4900.00 EUR A-1 '12.5' 4 Nov 2026"
    """
    words = re.findall(rf"(?<!\w)'[^']+'(?!\w)|{ANY}|[^\s{ANY}]+", sentence)
    kept: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        bare = word if word.startswith("'") else word.strip('.,;:()"')
        after_figure = bool(re.fullmatch(r"[-\N{MINUS SIGN}]?[\d.,]+", before))
        if re.search(rf"[\d'{ANY}]", bare) or (after_figure and re.fullmatch(UNITS, bare)):
            kept.append(re.sub(r"(?<=\d),(?=\d{3}\b)", "", bare))
    return re.sub(rf" ?{ANY} ?", ANY, " ".join(kept))


def _table_differs(
    name: str, *, table: Table, rows: Sequence[Row], known: Collection[str]
) -> tuple[list[str], set[str]]:
    """The two tables as one, with - before what is missing and + before what is too much.

    Rows of orders that are known to be wrong yet stand aside; these orders are given back.
    """
    columns = table.columns or COLUMNS.get(name, tuple(rows[0]) if rows else ())
    if rows and (unknown := [one for one in table.columns if one not in rows[0]]):
        raise ScenarioError(f"{name} has no column {unknown[0]!r}, but {sorted(rows[0])}")
    order = next((columns.index(one) for one in ORDER_COLUMNS if one in columns), None)
    left = [tuple(row.get(column) or "" for column in columns) for row in rows]
    missing, same = [], []
    for row in table.rows:
        fitting = next((one for one in left if _row_fits(one, row, columns=columns)), None)
        if fitting is None:
            missing.append(row)
        else:
            left.remove(fitting)
            same.append(fitting)
    wrong = {row[order] for row in (*missing, *left) if order is not None} & set(known)
    marked = [("-", row) for row in missing] + [("+", row) for row in left]
    marked = [(mark, row) for mark, row in marked if order is None or row[order] not in wrong]
    if not marked:
        return [], wrong
    drawn = _drawn([(" ", columns), *marked, *((" ", row) for row in same)])
    return [f"{name} (- should be there, + should not):\n" + "\n".join(drawn)], wrong


def _row_fits(seen: Sequence[str], expected: Sequence[str], *, columns: Sequence[str]) -> bool:
    return all(
        _fits(facts(one), facts(other)) if column in SENTENCES else _fits(one, other)
        for column, one, other in zip(columns, seen, expected, strict=True)
    )


def _fits(seen: str, expected: str) -> bool:
    """Equal, or what stands beside each … is there in this order."""
    pattern = ".*".join(re.escape(part) for part in expected.split(ANY))
    return re.fullmatch(pattern, seen, re.DOTALL) is not None


def _drawn(marked: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    cells = [row for _, row in marked]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [f"{mark} {' | '.join(map(str.ljust, row, widths))}".rstrip() for mark, row in marked]


def _as_expect(night: Night, *, day: str) -> list[str]:
    """Lines of an expect.toml that this night would fit; hold each of them against the rule."""
    lines = ["", f"[[night]]  # {day}", *(f"# {line}" for line in night.said.text.splitlines())]
    lines += [f'verdict = "{night.results.verdict}"', f"ends = {night.said.exit_code}"]
    if failing := night.results.failing_totals():
        lines += [f"failing_totals = {list(failing)}"]
    for name, columns in COLUMNS.items():
        if rows := night.rows(name):
            cells = [tuple(row.get(column, "") for column in columns) for row in rows]
            drawn = _drawn([("", columns), *(("", row) for row in cells)])
            lines += [f'{name} = """', *(line.removeprefix(" ") for line in drawn), '"""']
    return lines


def _wrong_words(step: Step, *, said: Stated | None, number: int) -> list[str]:
    """Whether a person's command ended and said as its step states."""
    if said is None:
        return []
    where = f"Step {number} (`{said.words}`)"
    found = []
    if said.exit_code != (ends := int(step.stated.get("ends", 0))):
        found.append(f"{where} ended with {said.exit_code}, not {ends}.")
    text = _flat(said.text)
    return found + [
        f"{where} does not say {one!r}." for one in step.stated.get("prints", ()) if one not in text
    ]


def _at_the_end(merchant: PlayedMerchant) -> list[str]:
    """What holds after every scenario, without a word of it: the gateway's book, and the proof."""
    if merchant.scenario.plain:
        return []
    found = []
    broken = {name: count for name, count in merchant.gateway.invariants().items() if count}
    if broken:
        found.append(f"The gateway's book breaks what must hold: {broken}.")
    verified = merchant.run(["verify"])
    if verified.exit_code:
        found.append(f"`recon verify` ended with {verified.exit_code}: {verified.text.strip()}")
    return found


def _expected_to_fail(reason: str, found: list[str]) -> tuple[list[str], list[str]]:
    """What differs unforeseen, and what is known to be wrong yet; that it is right now is news."""
    if not reason:
        return found, []
    if found:
        return [], [reason, *found]
    return [f"This is right now: take the mark fails_until off ({reason})"], []


def _flat(text: str) -> str:
    return " ".join(text.split())
