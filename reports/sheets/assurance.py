"""The sheet Assurance: why the figures can be relied on.

It shows what explains every difference, which proofs hold, what was read and what of it was
compared, the scope, and the rules that applied. Besides the engine's proofs there are checks of our
own over the rows on the sheets; page one is never better than the worst of them (`failing`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from typing import Any

from recon.model.figures import ListFile, NightFigures
from recon.model.gateway_holds import BEFORE_FIRST, HeldBalance
from recon.model.terms import ControlTotal, SetState, SourceKind
from recon.proof.ledger_bridge import LEDGER_STEPS, STEPS
from reports.drawing.blocks import Block, Column, Listing, Row, Sheet, TextLine, check_of
from reports.drawing.look import CHECK, NAVY, NOT_COVERED, REPLACEMENT
from reports.sheets.labels import QUESTIONS, TABLES, measure_label, proof_label
from reports.sheets.totals import (
    CLOSED,
    NOT_VERIFIED,
    OPENED,
    STILL_OPEN,
    WAITING,
    Rows,
    sum_of,
)

TITLE = "Assurance"
ASSURANCE_AT = f"'{TITLE}'!A4"
SOURCES_AT, HOLDS_AT = "sources_say", "gateway_holds"
"""Defined names of two lists, for links."""
WIDTH, COLUMNS = 16, 14
"""Characters of a column of the page, and its number of columns."""
LEGS = ("orders", "ledger")
"""The sides that the gateway is compared with."""
PARTS = ("breaks", "waiting", "not verified", "matched")
GATEWAY_SIDES = {"orders": ("gateway",), "ledger": ("gateway", "payouts", "fees", "reserves")}
"""Leg -> the sources on its gateway side: the ledger also has payouts, orders do not (T5B)."""
DIFFERENCES = "Differences per currency, and what explains them"
FILES = "Files and answers"
BRIDGE = "From the rows accepted to the records compared"
MONEY = "From the ledger file to the ledger compared, in money"
ROLL = "Breaks from the night before to tonight"
Checks = Mapping[str, list[dict[str, Any]]]
"""Title of a block -> its rows, each with the result of its `check`."""
CHECKED = Column("Check", WIDTH, "check", "check")
CURRENCY = Column("Currency", WIDTH, "currency", tone="strong")
STATES = {
    SetState.MATCHED.value: "Matched",
    SetState.PENDING.value: WAITING,
    SetState.BREAK.value: "Breaks",
    SetState.UNVERIFIED.value: NOT_VERIFIED,
}
COUNTED = ("rows_accepted", "rows_rejected", "rows_skipped")
BRIDGE_LABELS = {SourceKind.ORDERS: "Orders", SourceKind.LEDGER: "Ledger"}
SIDE_LABELS = {"settlement": "settlement files"}
KINDS: Mapping[str, str] = {
    "match": "matched",
    "unverified": "not verified",
    "pending": "waiting",
}
"""Section -> label of its file."""
_REFERENCE = re.compile(r"\bT[0-9]+[A-C]?\b")


def _amounts(*named: tuple[str, str], currency: str = "currency") -> tuple[Column, ...]:
    """Amount columns by title and field."""
    return tuple(Column(title, WIDTH, name, "money", currency=currency) for title, name in named)


def _counts(*named: tuple[str, str]) -> tuple[Column, ...]:
    return tuple(Column(title, WIDTH, name, "count") for title, name in named)


def checks_of(figures: NightFigures, rows: Rows) -> Checks:
    """The checks over the rows of the sheets, by block."""
    return {
        DIFFERENCES: [*_differences(figures, rows)],
        # Rows read must be accepted, rejected or skipped by a named rule.
        FILES: [
            asdict(each)
            | {"check": check_of(holds=each.rows_read == sum(getattr(each, n) for n in COUNTED))}
            for each in figures.files
        ],
        BRIDGE: [*_bridge(figures, rows)],
        MONEY: [*_money_of_ledger(figures, rows)] if figures.ledger_covered else [],
        ROLL: [*_roll_forward(rows)],
    }


def failing(checks: Checks) -> dict[str, int]:
    """Title of a block -> number of its checks that fail."""
    each = {title: sum(row["check"] == CHECK for row in rows) for title, rows in checks.items()}
    return {title: count for title, count in each.items() if count}


def assurance_sheet(figures: NightFigures, rows: Rows, checks: Checks) -> Sheet:
    """All blocks of the sheet, top to bottom."""
    return Sheet(
        TITLE,
        [*_blocks(figures, rows, checks)],
        heading=TITLE,
        about="Every check must say OK; unexplained must be nothing in each currency.",
        widths=(WIDTH,) * COLUMNS,
        colour=NAVY,
    )


def _blocks(figures: NightFigures, rows: Rows, checks: Checks) -> Iterator[Block]:
    every = sorted(figures.control_totals, key=_proof_order)
    differences = (
        CURRENCY,
        Column("Compared", WIDTH, lambda row: f"Gateway − {row['leg']}"),  # noqa: RUF001 - a minus
        *_amounts(
            *(("Gateway", "gateway"), ("Other side", "other"), ("Difference", "difference")),
            *(("Explained by breaks", "breaks"), ("by what waits", "waiting")),
            *(("by not verified", "not verified"), ("by flagged matches", "matched")),
            *(("elsewhere (below)", "other_effects"), ("All explained", "explained")),
            ("Unexplained", "unexplained"),
        ),
        CHECKED,
        *_amounts(("Breaks without signs", "gross")),
    )
    none = "No amounts in any source."
    yield Listing(differences, checks[DIFFERENCES], title=DIFFERENCES, nothing=none)
    questions = (
        Column("What was proven", WIDTH, "question", span=5),
        *_counts(("Checks", "count"), ("Failing", "failing")),
        CHECKED,
        Column("Ref.", WIDTH, "id", tone="muted"),
        Column("Why not", WIDTH, "why_not", span=5, tone="note"),
    )
    title = "Proofs: each figure is computed twice, separately"
    yield Listing(questions, [*_questions(figures, every)], title=title)
    for sentence in figures.not_covered:
        if not _REFERENCE.search(sentence):
            yield TextLine(f"Not covered: {sentence}", "note")
    yield from _read(figures, checks)
    yield from _ways(figures, checks)
    yield from _scope(figures)
    yield from _holds(figures)
    sides = (
        Column("Source", WIDTH, lambda row: SIDE_LABELS.get(row["source"], row["source"])),
        Column("Account", WIDTH, "account_id"),
        Column("Currency", WIDTH, "currency"),
        *_counts(("Records", "records")),
        *_amounts(*((label, state) for state, label in STATES.items()), ("All", "every")),
    )
    title = "What each source says (net of refunds)"
    yield Listing(sides, _side_rows(rows.sides), title=title, name=SOURCES_AT)
    other_effects = (
        Column("Account", WIDTH, "account_id"),
        Column("Break key", WIDTH, "break_id"),
        Column("Compared", WIDTH, "leg"),
        Column("Currency", WIDTH, "currency"),
        *_amounts(("Amount", "amount")),
    )
    title = "Elsewhere: effects of a break in a second currency or account"
    yield Listing(other_effects, rows.other_effects, title=title)
    yield from _digests(figures)
    what = f"unprintable characters of foreign text were shown as {REPLACEMENT}."
    yield TextLine(lambda replaced: f"{replaced} {what}", "note")
    single = (
        Column("What must be equal", WIDTH, lambda row: proof_label(row["name"]), span=5),
        Column("Account", WIDTH, "account_id"),
        Column("Currency", WIDTH, "currency"),
        *_amounts(
            *(("First figure", "left"), ("Second figure", "right"), ("Difference", "difference")),
            currency="of",
        ),
        CHECKED,
        Column("Counted in", WIDTH, lambda row: measure_label(row["measure"])),
        Column("Ref.", WIDTH, "id", tone="muted"),
    )
    title = "Every single check, per account and currency, what fails first"
    names = ("id", "name", "account_id", "currency", "left", "right", "difference", "measure")
    proofs = [
        {name: getattr(proof, name) for name in names}
        | {"of": proof.currency if proof.measure == "amount" else ""}
        | {"check": check_of(holds=proof.passed)}
        for proof in every
    ]
    yield Listing(single, proofs, title=title, nothing="", is_list=True)


def _digests(figures: NightFigures) -> Iterator[Block]:
    """The digests of what decided, of what the sentences are made of, and of the history."""
    digests = [
        {"name": "Rules", "digest": f"Digest of the rules: {figures.rules_digest or 'not given'}"},
        {"name": "Words", "digest": f"Digest of the words: {figures.words_digest or 'not given'}"},
        {"name": "History", "digest": f"Head: {figures.history_head or 'not given'}"},
    ]
    named = (Column("Decided by", WIDTH, "name"), Column("Which", WIDTH, "digest", span=5))
    yield Listing(named, digests)


def _scope(figures: NightFigures) -> Iterator[Block]:
    """The scope of assurance of the figures."""
    if not figures.scope_of_assurance:
        return
    scope = (
        Column("Currency", WIDTH, "currency"),
        Column("What", WIDTH, "statement", span=5),
        *_counts(("Count", "count")),
        *_amounts(("Amount", "amount")),
    )
    listed = [
        {"currency": str(line.get("currency", "") or ""), "statement": line.get("statement")}
        | {name: whole(line.get(name)) for name in ("count", "amount")}
        for line in figures.scope_of_assurance
    ]
    yield Listing(scope, listed, title="Scope of assurance")


def _differences(figures: NightFigures, rows: Rows) -> Iterator[dict[str, Any]]:
    """Each leg of each currency, marked as not covered where no ledger was given."""
    everything = (
        rows.sides,
        rows.breaks,
        rows.open.groups,
        rows.matched.groups,
        rows.other_effects,
    )
    names = {row["currency"] for part in everything for row in part}
    for currency in sorted(names - {"", None}):
        for leg in LEGS:
            is_covered = leg == "orders" or figures.ledger_covered
            known = _difference(rows, currency=currency, leg=leg) if is_covered else {}
            blank = dict.fromkeys(
                ("gateway", "other", "difference", *PARTS, "other_effects", "explained"),
            )
            blank |= {"unexplained": None, "gross": None, "check": NOT_COVERED}
            yield {**blank, **known, "currency": currency, "leg": leg}


def _difference(rows: Rows, *, currency: str, leg: str) -> dict[str, Any]:
    """One currency on one leg, minor units: gateway less the other side, and what explains it."""
    effect = f"effect_{leg}"
    waiting, unverified = (
        [group for group in rows.open.groups if group["result"] == result]
        for result in (WAITING, NOT_VERIFIED)
    )
    shown = (rows.breaks, waiting, unverified, rows.matched.groups)
    parts = {
        part: sum_of(amounts, name=effect, currency=currency)
        for part, amounts in zip(PARTS, shown, strict=True)
    }
    gateway, other = (
        sum_of(
            [row for row in rows.sides if row["source"] in sources],
            name="amount",
            currency=currency,
        )
        for sources in (GATEWAY_SIDES[leg], (leg,))
    )
    # Effects of breaks whose row shows another currency or account.
    of_leg = [row for row in rows.other_effects if row["leg"] == leg]
    other_effects = sum_of(of_leg, name="amount", currency=currency)
    explained = sum(parts.values()) + other_effects
    unexplained = gateway - other - explained
    own = (row for row in rows.breaks if row["currency"] == currency)
    return {
        "gateway": gateway,
        "other": other,
        "difference": gateway - other,
        **parts,
        "other_effects": other_effects,
        "explained": explained,
        "unexplained": unexplained,
        "check": check_of(holds=not unexplained),
        # A net of 0 can hide two large breaks.
        "gross": sum(abs(row[effect] or 0) for row in own),
    }


def _questions(
    figures: NightFigures, proofs: Sequence[ControlTotal]
) -> Iterator[dict[str, str | int]]:
    """One line per question in their order, then totals without a question of their own."""
    questions: dict[str, list[ControlTotal]] = {}
    for proof in proofs:
        questions.setdefault(proof.id, []).append(proof)
    for reference in [*QUESTIONS, *(each for each in questions if each not in QUESTIONS)]:
        own = questions.get(reference, [])
        failed = sum(not proof.passed for proof in own)
        yield {
            "question": QUESTIONS.get(reference) or proof_label(own[0].name),
            "count": len(own),
            "failing": failed,
            "id": reference,
            "check": check_of(holds=not failed) if own else NOT_COVERED,
            "why_not": _why_not(figures, reference=reference),
        }


def _why_not(figures: NightFigures, *, reference: str) -> str:
    """Why a question was not answered, or only in part; "" otherwise."""
    if reference == "T7" and figures.opening_breaks is None:
        return "no night before this one"
    reasons = (each for each in figures.not_covered if reference in _REFERENCE.findall(each))
    return "; ".join(sentence.partition(": ")[2] or sentence for sentence in reasons)


def _proof_order(proof: ControlTotal) -> tuple[bool, int, str, str, str, str]:
    """Sort key: failing totals first, then T0 to T19."""
    digits = re.search(r"[0-9]+", proof.id)
    number = int(digits.group()) if digits else 0
    return (proof.passed, number, proof.id, proof.account_id, proof.name, proof.currency)


def _read(figures: NightFigures, checks: Checks) -> Iterator[Block]:
    """The files of the run, and those with the lists that are too long for a sheet."""
    files = (
        Column("Kind", WIDTH, "kind"),
        Column("Name", WIDTH, "name", span=4),
        *_counts(("Rows read", "rows_read"), ("Accepted", "rows_accepted")),
        *_counts(("Rejected", "rows_rejected"), ("Skipped", "rows_skipped")),
        CHECKED,
        Column("SHA-256", WIDTH, "sha256", span=4),
    )
    rows = checks[FILES]
    total: dict[str, Any] = dict.fromkeys(str(column.value) for column in files)
    total |= {name: sum(row[name] for row in rows) for name in total if name.startswith("rows_")}
    total |= {"kind": "All"}
    none = "No file was read."
    yield Listing(files, rows, title=FILES, total=total if rows else None, nothing=none)
    for file in figures.files:
        if file.skipped_by:
            yield TextLine(f"Skipped by the layout of {file.name}: {file.skipped_by}.")
    if named := figures.files_named():
        lists = (
            *files[:2],
            *_counts(("Rows", "rows"), ("Bytes", "size_bytes")),
            Column("SHA-256", WIDTH, "sha256", span=4),
        )
        listed = [{**asdict(file), "kind": KINDS[section]} for section, file in named.items()]
        title = "Lists that are too long for their sheets, in files of the run"
        yield Listing(lists, listed, title=title)


def named_in(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, int, str]]:
    """Section, rows and SHA-256 of each file with a long list, from rows of the sheet."""
    sections = {kind: section for section, kind in KINDS.items()}
    for row in rows:
        kind = str(row["Kind"])
        yield sections.get(kind, kind), int(row["Rows"]), str(row["SHA-256"])


def added_up(sets: str, *, named: Iterable[ListFile], where: str = f"on {TITLE}") -> str:
    """The sentence of a sheet with sums in place of `sets`; `where` their files are listed."""
    files = " and ".join(file.name for file in named) or "the files of the run"
    return f"{sets}, added up; each row is listed in {files} (rows and SHA-256 {where})."


def _bridge(figures: NightFigures, rows: Rows) -> Iterator[dict[str, Any]]:
    """From the rows of the files to the records compared."""
    for kind, name in BRIDGE_LABELS.items():
        if kind in figures.bridge:
            steps = figures.bridge[kind]
            accepted = sum(file.rows_accepted for file in figures.files if file.kind == kind)
            come_to = accepted + sum(steps.values())
            compared = sum(row["count"] for row in rows.sides if row["source"] == kind.value)
            yield {
                "name": name,
                "accepted": accepted,
                **dict.fromkeys(STEPS, 0),
                **steps,
                "come_to": come_to,
                "compared": compared,
                "check": check_of(holds=come_to == compared),
            }


def _money_of_ledger(figures: NightFigures, rows: Rows) -> Iterator[dict[str, Any]]:
    ledger = [row for row in rows.sides if row["source"] == "ledger"]
    for currency, steps in figures.ledger_sums.items():
        written = {step: steps.get(step, 0) for step in LEDGER_STEPS}
        come_to = sum(written.values())
        compared = sum_of(ledger, name="amount", currency=currency)
        yield {
            "currency": currency,
            **written,
            "come_to": come_to,
            "compared": compared,
            "check": check_of(holds=come_to == compared),
        }


ROLL_TITLES = (
    *("Open the night before", "New", "Open again", "Changed amount", "Matched late", "Resolved"),
    *("Written off", "Ended otherwise", "Open now", "Rows on Breaks", "Difference"),
)


def _ways(figures: NightFigures, checks: Checks) -> Iterator[Block]:
    """From what was read to what was compared, and the roll-forward of breaks."""
    if bridge := checks[BRIDGE]:
        taken = [step for step in STEPS if any(row[step] for row in bridge)]
        columns = (
            Column("Source", WIDTH, "name", tone="strong"),
            *_counts(("Rows accepted", "accepted")),
            *_counts(*((f"{step[:1].upper()}{step[1:]}", step) for step in taken)),
            *_counts(("Come to", "come_to"), ("Records compared", "compared")),
            CHECKED,
        )
        yield Listing(columns, bridge, title=BRIDGE)
    if figures.ledger_covered:
        columns = (
            CURRENCY,
            *_amounts(*((TABLES["ledger"][step], step) for step in LEDGER_STEPS)),
            *_amounts(("Come to", "come_to"), ("Ledger compared", "compared")),
            CHECKED,
        )
        yield Listing(
            columns,
            checks[MONEY],
            title=MONEY,
            nothing="No money in the ledger file.",
        )
        unread = sum(
            reject.kind is SourceKind.LEDGER and not reject.currency for reject in figures.rejects
        )
        none = f" {unread} rejected rows say no sum that can be read and are in none."
        about = "Captures, refunds, chargebacks and adjustments, as booked."
        yield TextLine(f"{about}{none if unread else ''}", "note")
    columns = (
        CURRENCY,
        Column("Measured by", WIDTH, "measure"),
        *_amounts(*((title, str(number)) for number, title in enumerate(ROLL_TITLES))),
        CHECKED,
    )
    yield Listing(columns, checks[ROLL], title=ROLL)


def _roll_forward(rows: Rows) -> Iterator[dict[str, Any]]:
    """Breaks open before, new, reopened, ended, open now: by count, then in each currency."""
    counted = {
        label: sum(row["counts_as"] == label for row in rows.movements)
        for label in (*OPENED, STILL_OPEN, *CLOSED)
    }
    before = len(rows.movements) - sum(counted[label] for label in OPENED)
    received = [
        before,
        *(counted[label] for label in OPENED),
        0,
        *(-counted[label] for label in CLOSED),
    ]
    yield _rolled({"currency": "", "measure": "breaks"}, received, len(rows.breaks))
    names = {row[name] for row in rows.movements for name in ("currency", "currency_before")}
    for currency in sorted((names | {row["currency"] for row in rows.breaks}) - {"", None}):
        on_breaks = sum_of(rows.breaks, name="exposure", currency=currency)
        about = {"currency": currency, "measure": "whole amount"}
        yield _rolled(about, _rolled_money(rows, currency=currency), on_breaks)


def _rolled(about: Row, received: Sequence[int], on_breaks: int) -> dict[str, Any]:
    figures = [*received, sum(received), on_breaks, sum(received) - on_breaks]
    named = {str(number): figure for number, figure in enumerate(figures)}
    return {**about, **named, "check": check_of(holds=sum(received) == on_breaks)}


def _rolled_money(rows: Rows, *, currency: str) -> list[int]:
    """Whole amounts of one currency; a break that changed currency leaves one for another."""
    before = [{**movement, "currency": movement["currency_before"]} for movement in rows.movements]

    def was(label: str) -> int:
        chosen = [movement for movement in before if label in {"", movement["counts_as"]}]
        return sum_of(chosen, name="exposure_before", currency=currency)

    def now(label: str) -> int:
        chosen = [movement for movement in rows.movements if movement["counts_as"] == label]
        return sum_of(chosen, name="exposure", currency=currency)

    changed = now(STILL_OPEN) - was(STILL_OPEN)
    return [was(""), *map(now, OPENED), changed, *(-was(label) for label in CLOSED)]


def _holds(figures: NightFigures) -> Iterator[Block]:
    """Money that the gateway holds and fees that it took, per currency."""
    if figures.gateway_holds is None:
        return
    shown = []
    for held, fees in figures.gateway_holds.by_currency().values():
        row: dict[str, Any] = {"currency": held.currency, "charged": fees.charged}
        for name in ("payable", "held_back", "reserve"):
            part: HeldBalance = getattr(held, name)
            since = part.since
            if since not in {"", BEFORE_FIRST}:
                days = (figures.business_date - date.fromisoformat(since)).days
                since = f"{days} day{'s' * (days != 1)}"
            row |= {name: part.amount, f"{name} since": since}
        shown.append(row | {"booked": fees.booked, "difference": fees.difference})
    covered = all(row["booked"] is not None for row in shown)
    columns = (
        CURRENCY,
        *_amounts(("Payable, held back included", "payable")),
        Column("Oldest", WIDTH, "payable since", tone="muted"),
        *_amounts(("Held back", "held_back")),
        Column("Oldest", WIDTH, "held_back since", tone="muted"),
        *_amounts(("Reserve", "reserve")),
        Column("Oldest", WIDTH, "reserve since", tone="muted"),
        *_amounts(("Fees charged", "charged")),
        Column("Fees booked", WIDTH, "booked", "money", is_covered=covered),
        Column("Difference", WIDTH, "difference", "money", is_covered=covered),
    )
    title = "The gateway holds, and the fees that it took"
    yield Listing(columns, shown, title=title, nothing="Nothing, and no fee.", name=HOLDS_AT)


def _side_rows(sides: Sequence[Row]) -> list[dict[str, Any]]:
    """Amounts of each source per account and currency, by result."""
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


def whole(value: object) -> int | None:
    """A count from a mapping of figures; None when it is not given."""
    return None if value in {None, ""} else int(str(value))
