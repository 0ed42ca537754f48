"""The Control totals sheet: does everything tie, per currency, and which proofs hold.

Every check is one of ours over the rows that the sheets show, beside the proofs of the engine: page
one is never better than any of them (`failing`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from recon.model.figures import NightFigures
from recon.model.gateway_holds import BEFORE_FIRST, HeldPart
from recon.model.words import ControlTotal, SetState, SourceKind
from recon.proof.books_bridge import (
    BOOK_STEPS,
    STEPS,
)
from reports.drawing.blocks import Beside, Column, Listing, Part, Row, Sheet, TextLine, check_of
from reports.drawing.look import CHECK, NAVY, NOT_COVERED
from reports.sheets.totals import (
    CLOSED,
    NOT_VERIFIED,
    OPENED,
    STILL_OPEN,
    WAITING,
    LegTotal,
    Rows,
    legs_of,
    sum_of,
)
from reports.sheets.words import QUESTIONS, TABLES, measure_words, proof_words

TITLE = "Control totals"
TOTALS_AT = f"'{TITLE}'!A4"
WIDTHS = (13, 22, 16, 16, 16, 18, 15, 15, 18, 17, 16, 15, 10, 19)
NIGHTS_BEFORE = 13
"""With tonight: two weeks."""
LEG_NAMES = {"orders": "Gateway − orders", "ledger": "Gateway − ledger"}  # noqa: RUF001 - a minus
LEGS = (
    Column("Currency", 13, "currency", tone="strong"),
    Column("Compared", 22, lambda row: LEG_NAMES[row["leg"]]),
    *(
        Column(title, 16, name, "money")
        for title, name in (
            ("Gateway", "gateway"),
            ("Other side", "other"),
            ("Difference", "difference"),
            ("Explained by breaks", "breaks"),
            ("by what waits", "waiting"),
            ("by not verified", "not verified"),
            ("by flagged matches", "matched"),
            ("elsewhere (below)", "elsewhere"),
            ("All explained", "explained"),
            ("Unexplained", "unexplained"),
        )
    ),
    Column("Check", 10, "check", "check"),
    Column("Breaks without signs", 19, "gross", "money"),
)
STATES = {
    SetState.MATCHED.value: "Matched",
    SetState.PENDING.value: WAITING,
    SetState.BREAK.value: "Breaks",
    SetState.UNVERIFIED.value: NOT_VERIFIED,
}
SIDE_WORDS = {"settlement": "settlement files"}
SIDES = (
    Column("Source", 13, lambda row: SIDE_WORDS.get(row["source"], row["source"])),
    Column("Account", 22, "account_id"),
    Column("Currency", 16, "currency"),
    Column("Records", 16, "records", "count"),
    *(Column(word, 16, state, "money") for state, word in STATES.items()),
    Column("All", 16, "every", "money"),
)
ELSEWHERE = (
    Column("Account", 13, "account_id"),
    Column("Break key", 22, "break_id"),
    Column("Compared", 16, "leg"),
    Column("Currency", 16, "currency"),
    Column("Amount", 16, "amount", "money"),
)
BRIDGE_WORDS = {SourceKind.ORDERS: "Orders", SourceKind.LEDGER: "Ledger"}
BOOKS = (
    Column("Currency", 13, "currency", tone="strong"),
    *(Column(TABLES["books"][step], 16, step, "money") for step in BOOK_STEPS),
    Column("Come to", 16, "come_to", "money"),
    Column("Ledger compared", 16, "compared", "money"),
    Column("Check", 10, "check", "check"),
)
ROLL_TITLES = (
    *("Open the night before", "New", "Open again", "Changed amount", "Matched late", "Resolved"),
    *("Written off", "Ended otherwise", "Open now", "Rows on Breaks", "Difference"),
)
HELD = (
    Column("Currency", 13, "currency", tone="strong"),
    Column("Payable, held back included", 22, "payable", "money"),
    Column("Oldest", 16, "payable since", tone="muted"),
    Column("Held back", 16, "held_back", "money"),
    Column("Oldest", 16, "held_back since", tone="muted"),
    Column("Reserve", 18, "reserve", "money"),
    Column("Oldest", 15, "reserve since", tone="muted"),
    Column("Fees charged", 15, "charged", "money"),
)
QUESTION_COLUMNS = (
    Column("What was proven", 101, "question", span=6),
    Column("Checks", 15, "count", "count"),
    Column("Failing", 15, "failing", "count"),
    Column("Check", 18, "check", "check"),
    Column("Ref.", 17, "id", tone="muted"),
    Column("Why not", 60, "why_not", span=4, tone="note"),
)
PROOF_COLUMNS = (
    Column("What must be equal", 67, lambda row: proof_words(row["name"]), span=4),
    Column("Account", 16, "account_id"),
    Column("Currency", 18, "currency"),
    Column("First figure", 15, "left", "money", currency="of"),
    Column("Second figure", 15, "right", "money", currency="of"),
    Column("Difference", 18, "difference", "money", currency="of"),
    Column("Check", 17, "check", "check"),
    Column("Counted in", 16, lambda row: measure_words(row["measure"])),
    Column("Ref.", 15, "id", tone="muted"),
)
_REFERENCE = re.compile(r"\bT[0-9]+[A-C]?\b")


@dataclass(frozen=True, slots=True)
class Ways:
    """The checks that the sheets make of their own rows."""

    legs: Sequence[LegTotal]
    bridge: list[dict[str, Any]]
    roll: list[dict[str, Any]]
    books: list[dict[str, Any]]

    def failing(self) -> dict[str, int]:
        """Title of the block on Control totals -> how many of its checks fail."""
        failing = {
            "Differences per currency, and what explains them": sum(
                leg.unexplained != 0 for leg in self.legs
            )
        }
        for title, rows in (
            ("From the rows accepted to the records compared", self.bridge),
            ("Breaks from the night before to tonight", self.roll),
            ("From the ledger file to the ledger compared, in money", self.books),
        ):
            failing[title] = sum(row["check"] == CHECK for row in rows)
        return {title: count for title, count in failing.items() if count}


def ways_of(figures: NightFigures, rows: Rows) -> Ways:
    """What ties, and what does not."""
    return Ways(
        legs_of(rows, ledger_covered=figures.ledger_covered),
        [*_bridge(figures, rows)],
        [*_roll_forward(rows)],
        [*_books(figures, rows)] if figures.ledger_covered else [],
    )


def totals_sheet(figures: NightFigures, rows: Rows, ways: Ways) -> Sheet:
    """All blocks of the sheet, top to bottom."""
    every = sorted(figures.control_totals, key=_proof_order)
    single = "Every single check, per account and currency, what fails first"
    return Sheet(
        TITLE,
        [
            Listing(
                LEGS,
                [*leg_rows(figures, ways.legs)],
                title="Differences per currency, and what explains them",
                nothing="No amounts in any source.",
            ),
            TextLine(),
            Listing(
                QUESTION_COLUMNS,
                [*_questions(figures, every)],
                title="Proofs: each figure is computed twice, separately",
            ),
            *(
                TextLine(f"Not covered: {sentence}", "note")
                for sentence in figures.not_covered
                if not _REFERENCE.search(sentence)
            ),
            TextLine(),
            Beside(_results(rows), _nights(figures), at=4),
            TextLine(),
            *_bridge_block(ways.bridge),
            *_ways(figures, ways),
            *_holds(figures),
            Listing(SIDES, _side_rows(rows.sides), title="What each source says (net of refunds)"),
            TextLine(),
            Listing(
                ELSEWHERE,
                rows.elsewhere,
                title="Elsewhere: effects of a break in a second currency or account",
            ),
            TextLine(),
            Listing(
                PROOF_COLUMNS,
                [_proof_row(proof) for proof in every],
                title=single,
                nothing="",
                is_list=True,
            ),
        ],
        heading=TITLE,
        about="Every check must say OK; unexplained must be nothing in each currency.",
        widths=WIDTHS,
        colour=NAVY,
    )


def _holds(figures: NightFigures) -> Iterator[Part]:
    """What the gateway holds and the fees it took, per currency."""
    if figures.gateway_holds is None:
        return
    shown = []
    for held, fees in figures.gateway_holds.by_currency().values():
        row: dict[str, Any] = {"currency": held.currency, "charged": fees.charged}
        for name in ("payable", "held_back", "reserve"):
            part: HeldPart = getattr(held, name)
            row |= {name: part.amount, f"{name} since": _age(part, day=figures.business_date)}
        shown.append(row | {"booked": fees.booked, "difference": fees.difference})
    covered = all(row["booked"] is not None for row in shown)
    columns = (
        *HELD,
        Column("Fees booked", 15, "booked", "money", is_covered=covered),
        Column("Difference", 15, "difference", "money", is_covered=covered),
    )
    title = "The gateway holds, and the fees that it took"
    yield Listing(columns, shown, title=title, nothing="Nothing, and no fee.")
    yield TextLine()


def _age(part: HeldPart, *, day: date) -> str:
    """How many days the oldest piece is held."""
    if part.since in {"", BEFORE_FIRST}:
        return part.since
    days = (day - date.fromisoformat(part.since)).days
    return f"{days} day{'s' * (days != 1)}"


def leg_rows(figures: NightFigures, legs: Sequence[LegTotal]) -> Iterator[dict[str, Any]]:
    """Each leg of each currency, and that there is none of a ledger that was not given."""
    for leg in legs:
        yield {
            "currency": leg.currency,
            "leg": leg.leg,
            "gateway": leg.gateway,
            "other": leg.other,
            "difference": leg.difference,
            **leg.parts,
            "elsewhere": leg.elsewhere,
            "explained": leg.explained,
            "gross": leg.gross,
            "unexplained": leg.unexplained,
            "check": check_of(holds=not leg.unexplained),
        }
        if not figures.ledger_covered:
            blank = dict.fromkeys([str(column.value) for column in LEGS])
            yield blank | {"currency": leg.currency, "leg": "ledger", "check": NOT_COVERED}


def _questions(
    figures: NightFigures, proofs: Sequence[ControlTotal]
) -> Iterator[dict[str, str | int]]:
    """One line per question, in their order, then what has no question of its own."""
    asked: dict[str, list[ControlTotal]] = {}
    for proof in proofs:
        asked.setdefault(proof.id, []).append(proof)
    for reference in [*QUESTIONS, *(each for each in asked if each not in QUESTIONS)]:
        own = asked.get(reference, [])
        failing = sum(not proof.passed for proof in own)
        yield {
            "question": QUESTIONS.get(reference) or proof_words(own[0].name),
            "count": len(own),
            "failing": failing,
            "id": reference,
            "check": check_of(holds=not failing) if own else NOT_COVERED,
            "why_not": _why_not(figures, reference=reference),
        }


def _why_not(figures: NightFigures, *, reference: str) -> str:
    """Why a question was not asked, or only in part; "" for those that were."""
    if reference == "T7" and figures.opening_breaks is None:
        return "no night before this one"
    reasons = (each for each in figures.not_covered if reference in _REFERENCE.findall(each))
    return "; ".join(sentence.partition(": ")[2] or sentence for sentence in reasons)


def _proof_row(proof: ControlTotal) -> dict[str, Any]:
    return {
        **{name: getattr(proof, name) for name in ("id", "name", "account_id", "currency")},
        **{name: getattr(proof, name) for name in ("left", "right", "difference", "measure")},
        "of": proof.currency if proof.measure == "amount" else "",
        "check": check_of(holds=proof.passed),
    }


def _proof_order(proof: ControlTotal) -> tuple[bool, int, str, str, str, str]:
    """What fails first, then T0 to T19."""
    digits = re.search(r"[0-9]+", proof.id)
    number = int(digits.group()) if digits else 0
    return (proof.passed, number, proof.id, proof.account_id, proof.name, proof.currency)


def _results(rows: Rows) -> Listing:
    counts = {
        "Matched": rows.matched.count(),
        **{result: rows.open.count(result) for result in (WAITING, NOT_VERIFIED)},
        "Breaks": len(rows.breaks),
    }
    listed = [{"name": name, "count": count} for name, count in counts.items()]
    columns = (
        Column("Result", 13, "name", tone="strong"),
        Column("Sets", 22, "count", "count"),
    )
    total = {"name": "All", "count": sum(counts.values())}
    return Listing(columns, listed, title="Sets by result", total=total)


def _nights(figures: NightFigures) -> Listing:
    """Open breaks of the last nights, tonight last."""
    points = [
        *((point.business_date, point.open_breaks) for point in figures.trend[-NIGHTS_BEFORE:]),
        (figures.business_date, len(figures.breaks)),
    ]
    columns = (
        Column("Business day", 16, "day"),
        Column("Open breaks", 18, "count", "count"),
    )
    nights = [{"day": f"{day:%d %b}", "count": count} for day, count in points]
    return Listing(columns, nights, title="Open breaks by night")


def _bridge(figures: NightFigures, rows: Rows) -> Iterator[dict[str, Any]]:
    """From the rows of the files to the records compared."""
    for kind, name in BRIDGE_WORDS.items():
        if kind in figures.bridge:
            steps = figures.bridge[kind]
            accepted, come_to = _accepted(figures, kind), _come_to(figures, kind)
            compared = sum(row["count"] for row in rows.sides if row["source"] == kind.value)
            yield {
                "name": name,
                "accepted": accepted,
                **steps,
                "come_to": come_to,
                "compared": compared,
                "check": check_of(holds=come_to == compared),
            }


def _bridge_block(bridge: Sequence[Row]) -> Iterator[Part]:
    if not bridge:
        return
    taken = [step for step in STEPS if any(row.get(step) for row in bridge)]
    columns = (
        Column("Source", 13, "name", tone="strong"),
        Column("Rows accepted (Sources)", 22, "accepted", "count"),
        *(Column(_capital(step), 16, _step(step), "count") for step in taken),
        Column("Come to", 16, "come_to", "count"),
        Column("Records compared", 16, "compared", "count"),
        Column("Check", 16, "check", "check"),
    )
    yield Listing(columns, bridge, title="From the rows accepted to the records compared")
    yield TextLine()


def _step(name: str) -> Any:
    return lambda row: row.get(name, 0)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _accepted(figures: NightFigures, kind: SourceKind) -> int:
    return sum(file.rows_accepted for file in figures.files if file.kind == kind)


def _come_to(figures: NightFigures, kind: SourceKind) -> int:
    return _accepted(figures, kind) + sum(figures.bridge.get(kind, {}).values())


def bridge_sentence(figures: NightFigures, *, kind: SourceKind) -> str:
    """The same steps in one line: "1,748 rows accepted − 4 repeats … = 1,702 compared"."""  # noqa: RUF002 - a minus
    steps = figures.bridge.get(kind, {})
    parts = [f"{_accepted(figures, kind):,} rows accepted"]
    parts += [
        f"{_sign(steps[step])} {abs(steps[step]):,} {step}" for step in STEPS if steps.get(step)
    ]
    return f"{BRIDGE_WORDS[kind]}: {' '.join(parts)} = {_come_to(figures, kind):,} compared"


def _sign(number: int) -> str:
    return "+" if number > 0 else "−"  # noqa: RUF001 - a minus


def _ways(figures: NightFigures, ways: Ways) -> Iterator[Part]:
    """From the night before to tonight, and from the ledger file to the ledger compared."""
    if ways.roll:
        amounts = [
            Column(title, 16, str(number), "money") for number, title in enumerate(ROLL_TITLES)
        ]
        columns = (
            Column("Currency", 13, "name", tone="strong"),
            Column("Measured by", 22, "measure"),
            *amounts,
            Column("Check", 19, "check", "check"),
        )
        yield Listing(columns, ways.roll, title="Breaks from the night before to tonight")
        yield TextLine()
    if figures.ledger_covered:
        yield Listing(
            BOOKS,
            ways.books,
            title="From the ledger file to the ledger compared, in money",
            nothing="No money in the ledger file.",
        )
        unread = sum(
            reject.kind is SourceKind.LEDGER and not reject.currency for reject in figures.rejects
        )
        none = f" {unread} rejected rows say no sum that can be read and are in none."
        about = "Captures, refunds, chargebacks and adjustments, as booked."
        yield TextLine(f"{about}{none if unread else ''}", "note")
        yield TextLine()


def _roll_forward(rows: Rows) -> Iterator[dict[str, Any]]:
    """Open last night, new, open again, ended, open now: by count, then in each currency."""
    counted = {
        word: sum(row["counts_as"] == word for row in rows.movements)
        for word in (*OPENED, STILL_OPEN, *CLOSED)
    }
    before = len(rows.movements) - sum(counted[word] for word in OPENED)
    came = [before, *(counted[word] for word in OPENED), 0, *(-counted[word] for word in CLOSED)]
    yield _rolled({"name": "", "measure": "breaks"}, came, len(rows.breaks))
    names = {row[name] for row in rows.movements for name in ("currency", "currency_before")}
    for currency in sorted((names | {row["currency"] for row in rows.breaks}) - {"", None}):
        on_breaks = sum_of(rows.breaks, name="exposure", currency=currency)
        about = {"name": currency, "currency": currency, "measure": "whole amount"}
        yield _rolled(about, _rolled_money(rows, currency=currency), on_breaks)


def _rolled(about: Row, came: Sequence[int], on_breaks: int) -> dict[str, Any]:
    figures = [*came, sum(came), on_breaks, sum(came) - on_breaks]
    named = {str(number): figure for number, figure in enumerate(figures)}
    return {**about, **named, "check": check_of(holds=sum(came) == on_breaks)}


def _rolled_money(rows: Rows, *, currency: str) -> list[int]:
    """Whole amounts of one currency; a break that changed its currency leaves one for another."""
    before = [{**movement, "currency": movement["currency_before"]} for movement in rows.movements]

    def was(word: str) -> int:
        chosen = [movement for movement in before if word in {"", movement["counts_as"]}]
        return sum_of(chosen, name="exposure_before", currency=currency)

    def now(word: str) -> int:
        chosen = [movement for movement in rows.movements if movement["counts_as"] == word]
        return sum_of(chosen, name="exposure", currency=currency)

    changed = now(STILL_OPEN) - was(STILL_OPEN)
    return [was(""), *map(now, OPENED), changed, *(-was(word) for word in CLOSED)]


def _books(figures: NightFigures, rows: Rows) -> Iterator[dict[str, Any]]:
    ledger = [row for row in rows.sides if row["source"] == "ledger"]
    for currency, steps in figures.books.items():
        written = {step: steps.get(step, 0) for step in BOOK_STEPS}
        come_to = sum(written.values())
        compared = sum_of(ledger, name="amount", currency=currency)
        yield {
            "currency": currency,
            **written,
            "come_to": come_to,
            "compared": compared,
            "check": check_of(holds=come_to == compared),
        }


def _side_rows(sides: Sequence[Row]) -> list[dict[str, Any]]:
    """What each source says per account and currency, by result."""
    groups: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in sides:
        key = (str(row["source"]), str(row["account_id"] or ""), str(row["currency"] or ""))
        groups.setdefault(key, {})[str(row["state"])] = row
    listed = []
    for (source, account_id, currency), by_state in sorted(groups.items()):
        money: Mapping[str, int | None] = {
            state: by_state[state]["amount"] if state in by_state else None for state in STATES
        }
        listed.append(
            {"source": source, "account_id": account_id, "currency": currency, **money}
            | {"records": sum(sums["count"] for sums in by_state.values())}
            | {"every": sum(sums["amount"] for sums in by_state.values())}
        )
    return listed
