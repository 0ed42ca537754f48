"""Page one, for the signatories: verdict, what needs a person, money by currency, sign-off.

One A4 page with what is due, waiting, broken, and held by gateway and bank, per currency, each
amount once. Entries with the same text share a line with their number and money: a stopped run does
not repeat its reason for each order. Proofs are on Assurance.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from itertools import chain, groupby
from operator import itemgetter
from typing import Any
from zoneinfo import ZoneInfo

from recon.matching.classifying.severity import risk_of_break
from recon.model.figures import Attention, NightFigures
from recon.model.gateway_holds import Holding
from recon.model.resolutions import answered_text, lacking, still_there
from recon.model.terms import SEVERE, ControlTotal, SetState, Verdict
from reports.drawing.blocks import Block, Column, Listing, Row, Sheet, SideBySide, TextLine, rows_of
from reports.drawing.look import (
    NAVY,
    CellLink,
    grouped_amount,
    local_instant,
    with_currency,
)
from reports.sheets.assurance import ASSURANCE_AT, HOLDS_AT, SOURCES_AT, Checks, failing
from reports.sheets.bank_sheet import PAYOUTS_AT, on_the_way, payout_rows
from reports.sheets.breaks_sheet import AREAS, area_of, place_of
from reports.sheets.labels import TABLES, VERDICT_LABELS, label_of, proof_label
from reports.sheets.totals import AMOUNT_NAMES, GROUP_ORDER, NOT_VERIFIED, RISK, Rows, kinds_of

TITLE = "Summary"
LAST = 16
"""Number of equally wide columns of the page."""
WIDTHS_FROM, WIDTHS_TO = 11, 20
"""Column width in characters, depending on the longest amount."""
CURRENCIES_DISPLAYED, CURRENCIES_ACROSS = 10, 6
"""Maximum number of currencies in rows and in columns; Assurance has the others."""
ATTENTION_DISPLAYED, ROUTINE_DISPLAYED = 5, 1
"""Maximum number of lines that need a person, and those reserved for routine waiting ones."""
NIGHTS_MIN, NIGHTS_ACROSS = 5, 14
"""Minimum number of nights for a trend of breaks, and maximum shown, this one included."""
CAUSES_DISPLAYED, NOT_COVERED_DISPLAYED = 3, 3
PROOFS_DISPLAYED, RECORDS_DISPLAYED = 5, 3
NEXT = "Next: "
NOT_SENT, NO_OWNER = " not sent", "No owner yet"
SEVERE_LINE = re.compile(rf"({'|'.join(sorted(SEVERE)).lower()}) break: ")
"""Matches the line of a break, whose owner precedes what to do."""
NOTHING = "No break is open, no instruction is in doubt, and none waits for a person."
VERDICT_TONES = {Verdict.BREAKS_OPEN: "verdict warn", Verdict.RECONCILED: "verdict good"}
SIGN_OFF = {"reviewer": "Reviewed", "approver": "Approved"}
"""Role -> its sign-off line; a signed copy fills in name and time."""
NOT_SIGNED = "not signed"
SIGNED_FILE = (
    "Two people sign this file, by the form sign-off or `recon sign-off`;",
    "a copy beside it then says who did. Nothing is signed here.",
)
"""Two lines below the sign-off, which the signed copy replaces."""
OF_PLAIN_FILES = (
    "Of plain files: no history keeps this workbook, and no command signs it.",
    "Sign it on paper, or file it with its SHA-256.",
)
"""The same two lines when the workbook was made from plain files without a run."""
OF_A_NIGHT: Mapping[str, str] = {
    "again": "Start the night of this date again.",
    "stored": "`recon verify --compare` compares what is stored.",
    "stopped": " (`recon stop-sending`)",
    "written": "This file is not what the database holds: `recon workbook` writes it again.",
}
"""Placeholder in the `to_do` texts of words.toml -> the command for a run."""
_FILES_AGAIN = "Run `recon reconcile` over the same files again; where it says the same, inform IT."
WITHOUT_A_NIGHT: Mapping[str, str] = dict.fromkeys(OF_A_NIGHT, _FILES_AGAIN) | {"stopped": ""}
NOTIFY_IT = "Tell IT, and sign nothing: the rows of this workbook do not add up there."
_REFERENCE = re.compile(r",? \bT[0-9]+[A-C]?\b")
"""Reference of a control total, which only Assurance shows."""
INSTRUCTIONS_AT, PENDING_AT = "'Instructions'!A4", "'Pending'!A4"
_NAMES = ("order_no", "transaction_id", "entry_id", "about")


@dataclass(frozen=True, slots=True)
class Page:
    """Input of every block of the page."""

    figures: NightFigures
    rows: Rows
    checks: Checks

    @property
    def is_proven(self) -> bool:
        """Whether all proofs of the engine and all checks of the sheets hold."""
        return self.verdict is not Verdict.NOT_PROVEN

    @property
    def verdict(self) -> Verdict:
        """The verdict on page one: never better than the checks of the sheets."""
        totals = self.figures.control_totals
        holds = not failing(self.checks) and all(total.passed for total in totals)
        return self.figures.verdict if holds else Verdict.NOT_PROVEN


def page_one(figures: NightFigures, rows: Rows, checks: Checks) -> Sheet:
    """All blocks of the page, top to bottom."""
    page = Page(figures, rows, checks)
    money = [*_by_currency(page)]
    columns = _money_columns(figures)
    amounts = [str(each.value) for each in columns if each.kind == "money"]
    texts = [grouped_amount(row[name], row["currency"]) for row in money for name in amounts]
    widest = max((len(text) + 2 for text in texts), default=0)
    shown = Listing(
        columns,
        money[:CURRENCIES_DISPLAYED],
        total=ADDS_UP if money else None,
        nothing="No amounts.",
    )
    return Sheet(
        TITLE,
        [*_blocks(page, shown, left=len(money[CURRENCIES_DISPLAYED:]))],
        widths=(min(max(WIDTHS_FROM, widest), WIDTHS_TO),) * LAST,
        frozen=(0, 0),
        pages=(1, 1),
        colour=NAVY,
    )


def _blocks(page: Page, money: Listing, *, left: int) -> Iterator[Block]:
    figures, verdict = page.figures, page.verdict
    tone = VERDICT_TONES.get(verdict, "verdict bad")
    yield TextLine(f"{verdict.value} · {verdict_sentence(page)}", tone, LAST)
    if step := _next_step(page):
        yield TextLine(CellLink(step, place_of(0)), "heading", LAST)
    keys, zone = [row["break_id"] for row in page.rows.breaks], ZoneInfo(figures.timezone)
    if current := still_there(keys, figures.answers, night=figures.generated_at, zone=zone):
        labels = f"{current}: Why on Breaks says when, and by whom."
        yield TextLine(CellLink(labels, place_of(0)), "amber", LAST)
    as_of = local_instant(figures.as_of, timezone=figures.timezone)
    account = f" · account {figures.account_id}" if figures.account_id else ""
    yield TextLine(
        f"Merchant {figures.merchant_name or figures.merchant_id} ({figures.merchant_id})"
        f"{account} · business day {figures.business_date} · {figures.mode} · run "
        f"{figures.run_id} · data as of {as_of:%Y-%m-%d %H:%M} {figures.timezone}",
        "muted",
        LAST,
    )
    for note in figures.notes:
        yield TextLine(note, "warn", LAST)
    yield from _unproven(page)
    yield from _attention(page)
    yield money
    if left:
        yield TextLine(CellLink(f"and {left} more currencies on Assurance", ASSURANCE_AT))
    yield TextLine(ADDS_UP_LABELS, "note", LAST)
    yield SideBySide(_areas(page.rows.breaks), _sign_off(figures), at=12)
    for sentence in OF_PLAIN_FILES if figures.of_plain_files else SIGNED_FILE:
        yield TextLine(sentence, "note")
    yield from _causes(page.rows.breaks)
    yield from _trend(figures)
    if moved := _moved(page.rows):
        yield TextLine(CellLink(moved, INSTRUCTIONS_AT), span=LAST)
    yield TextLine(CellLink(_sources_sentence(figures), ASSURANCE_AT), span=LAST)
    for sentence in figures.not_covered[:NOT_COVERED_DISPLAYED]:
        yield TextLine(f"Not covered: {_REFERENCE.sub('', sentence)}", "note", LAST)
    if left := len(figures.not_covered[NOT_COVERED_DISPLAYED:]):
        yield TextLine(CellLink(f"and {left} more on Assurance", ASSURANCE_AT))


def verdict_sentence(page: Page) -> str:
    """What the verdict means, the matched share of what is due, and what needs a person."""
    labels = VERDICT_LABELS[page.verdict]
    if not page.is_proven:
        return labels
    due = dict.fromkeys(DUE, 0)
    for row in _of_gateway(page):
        if row["state"] in due:
            due[row["state"]] += row["count"]
    count, matched = sum(due.values()), due[SetState.MATCHED.value]
    if count:
        # Rounded down: 99.99 % must not read as 100.
        share = Decimal(matched * 1_000 // count).scaleb(-1)
        due_ones = f"{count:,} payments due are" if count > 1 else "one payment due is"
        labels += f" {share} % of the {due_ones} matched"
    else:
        labels += " No payment is due"
    breaks, unverified_rows = len(page.rows.breaks), page.rows.open.count(NOT_VERIFIED)
    open_ones = []
    if breaks:
        since = _since_yesterday(page.figures)
        open_ones.append(f"{breaks:,} break{'s' * (breaks != 1)}{since}")
    if unverified_rows:
        open_ones.append(f"{unverified_rows:,} not verified")
    if not open_ones:
        return f"{labels}."
    are = "needs" if breaks + unverified_rows == 1 else "need"
    return f"{labels}; {' and '.join(open_ones)} {are} a person."


def _since_yesterday(figures: NightFigures) -> str:
    if figures.opening_breaks is None:
        return ""
    change = len(figures.breaks) - figures.opening_breaks
    labels = f"{abs(change):,} {'more' if change > 0 else 'fewer'} than" if change else "as many as"
    return f" ({labels} the night before)"


def _next_step(page: Page) -> str:
    """The signatory's next step; "" where no break is open."""
    breaks = {str(row["break_id"]): str(row["severity"]) for row in page.rows.breaks}
    if not page.is_proven or not breaks:
        return ""
    then = "" if page.figures.of_plain_files else ", then sign"
    answers = page.figures.answers
    severe, left = lacking(breaks, answers)
    each = f"each of the {severe:,} high and critical breaks" if severe > 1 else "the severe break"
    answered = f"{sum(key in answers for key in breaks):,} of {len(breaks):,} answered."
    if not severe:
        return f"{NEXT}look through Breaks{then}. {answered}"
    if left == severe:
        return f"{NEXT}give {each} an owner and a comment on Breaks{then}. {answered}"
    step = "complete Breaks, then sign" if left else "sign"
    return f"{NEXT}{step}; {answered_text(breaks, answers)}."


def _of_gateway(page: Page) -> Iterator[Row]:
    return (row for row in page.rows.sides if row["source"] == "gateway")


def _unproven(page: Page) -> Iterator[Block]:
    """Why the run is not proven: what does not tie, which records to check, what to do."""
    if page.is_proven:
        return
    untied = [total for total in page.figures.control_totals if not total.passed]
    shown = [_unproven_row(proof, page=page) for proof in untied[:PROOFS_DISPLAYED]]
    blank = {"currency": "", "of": "", "left": None, "right": None, "difference": None}
    shown += [{**blank, "what": title, "to_do": NOTIFY_IT} for title in failing(page.checks)]
    columns = (
        Column("What does not tie", 42, "what", span=4, tone="severe", wrap=True),
        Column("Ccy", 13, "currency"),
        Column("First figure", 13, "left", "money", currency="of"),
        Column("Second figure", 12, "right", "money", currency="of"),
        Column("Difference", 13, "difference", "money", currency="of"),
        Column("What to do", 70, "to_do", span=8, wrap=True),
    )
    yield Listing(columns, shown, title="Why this night is not proven", nothing="")
    if left := len(untied[PROOFS_DISPLAYED:]):
        yield TextLine(CellLink(f"and {left} more, first on the list of every check", ASSURANCE_AT))
    if page.figures.of_plain_files:
        ending = "Sign nothing of this: no figure of it is known to be whole."
    else:
        ending = (
            "Nobody can sign this night, and it holds refunds and payouts of later ones: start it "
            f"again, or two people release it (`recon approve --hold {page.figures.run_id}`). "
            "Captures go on."
        )
    yield TextLine(ending, "bad", LAST)


def _unproven_row(proof: ControlTotal, *, page: Page) -> dict[str, Any]:
    commands = WITHOUT_A_NIGHT if page.figures.of_plain_files else OF_A_NIGHT
    to_do = TABLES["to_do"].get(proof.id, "See Assurance, and inform IT.").format(**commands)
    records = list(_records_of(page, proof))
    if records:
        to_do = f"{to_do} Records of exactly this money: {', '.join(records)}."
    elif proof.measure == "amount":
        to_do = f"{to_do} No single record is of exactly this money."
    return {
        "what": proof_label(proof.name),
        "currency": proof.currency,
        "to_do": to_do,
        "left": proof.left,
        "right": proof.right,
        "difference": proof.difference,
        "of": proof.currency if proof.measure == "amount" else "",
    }


def _records_of(page: Page, proof: ControlTotal) -> Iterator[str]:
    """Records whose amount is exactly the difference: where to look first."""
    difference = abs(proof.difference)
    if proof.measure != "amount" or not difference:
        return
    named: list[str] = []
    # Open ones first, then unverified, pending and matched ones.
    frames = chain((page.figures.unverified, page.figures.pending), page.figures.matches.batches())
    for row in chain(page.rows.breaks, chain.from_iterable(map(rows_of, frames))):
        if row["currency"] != proof.currency or len(named) == RECORDS_DISPLAYED:
            continue
        if any(abs(row.get(name) or 0) == difference for name in AMOUNT_NAMES):
            name = next((str(row[name]) for name in _NAMES if row.get(name)), "")
            if name and name not in named:
                named.append(name)
                yield f"{name} ({with_currency(difference, proof.currency)})"


ATTENTION = (
    Column("What", 29, "what", span=3, wrap=True, tone=lambda row: row["tone"]),
    Column("Order or batch", 26, "about", span=2, wrap=True),
    Column("Ccy", 13, "currency"),
    Column("At risk", 12, "amount", "money"),
    Column("Known since", 13, "since"),
    Column("What to do", 70, "to_do", span=8, wrap=True),
)


ATTENTION_AT = tuple(
    sum(column.span for column in ATTENTION[:number])
    for number, column in enumerate(ATTENTION)
    if column.value in {"what", "about", "to_do"}
)
"""Columns of the texts "what", "about" and "to do", counted from 0."""


def _attention(page: Page) -> Iterator[Block]:
    """Lines in doubt and severe breaks first, then unverified sets, then what waits."""
    lines = _lines_of(page.figures)
    of_night = [line for line in lines if line["of_night"]]
    urgent = [line for line in lines if line["urgent"]]
    routine = [line for line in lines if not line["urgent"] and not line["of_night"]]
    unverified_rows = [*_unverified(page)]
    if not urgent and any(each["group"] == "in doubt" for each in page.rows.instructions):
        # Without an attention list a doubt must still be shown.
        text = "Instructions are in doubt: see the sheet Instructions."
        of_night.insert(0, _line({"what": text, "tone": "bad"}))
    room = (
        ATTENTION_DISPLAYED
        - len(of_night)
        - len(unverified_rows)
        - min(ROUTINE_DISPLAYED, len(routine))
    )
    routine_shown = routine[: max(ROUTINE_DISPLAYED, ROUTINE_DISPLAYED + room - len(urgent))]
    shown = [*of_night, *urgent[: max(room, 0)], *unverified_rows, *routine_shown]
    if shown:
        yield Listing(ATTENTION, shown, title="Needs a person")
    elif not page.rows.breaks:
        yield TextLine("Needs a person", "heading")
        yield TextLine(NOTHING, "good", LAST)
    hidden = urgent[max(room, 0) :]
    yield from _left_out(
        [line for line in hidden if line["code"]],
        behind=sum(line["count"] for line in shown if line["code"]),
    )
    others = [line for line in [*hidden, *routine[len(routine_shown) :]] if not line["code"]]
    if others:
        yield _and_more("", others, where="see Instructions", at=INSTRUCTIONS_AT)


def _left_out(breaks: Sequence[Row], *, behind: int) -> Iterator[TextLine]:
    """Breaks that do not fit, by severity; `behind`: the number of breaks above them on Breaks."""
    for what, group in groupby(breaks, key=itemgetter("level")):
        own = [*group]
        at = place_of(behind)
        where = f"on Breaks, from row {at.rpartition('A')[2]} on"
        yield _and_more(f" {what}s", own, where=where, at=at)
        behind += sum(line["count"] for line in own)


def _and_more(what: str, lines: Sequence[Row], *, where: str, at: str) -> TextLine:
    """Such as "and 12 more high breaks, 8,123.00 EUR · 44,048 JPY: on Breaks, from row 8 on"."""
    money = Counter[str]()
    for line in lines:
        money.update(line["money"])
    sums = f", {_sums(money)}" if money else ""
    count = sum(line["count"] for line in lines)
    return TextLine(CellLink(f"and {count:,} more{what}{sums}: {where}", at), span=LAST)


def _line(known: Mapping[str, Any]) -> dict[str, Any]:
    blank = {"about": "", "currency": "", "amount": None, "since": "", "to_do": "", "code": ""}
    return {**blank, "count": 1, "tone": "amber", **known}


def _lines_of(figures: NightFigures) -> list[dict[str, Any]]:
    """Grouped lines in order of their first entry; an entry that lapses has a line of its own."""
    groups: dict[tuple[object, ...], list[Attention]] = {}
    for each in figures.attention:
        own = (each.order_no or each.subject) if each.lapses or each.code else ""
        of_night = "" if each.what.endswith(NOT_SENT) else each.what
        key = (of_night, each.next_step, each.is_urgent, each.code, own)
        groups.setdefault(key, []).append(each)
    return [_line_of(alike, timezone=figures.timezone) for alike in groups.values()]


def _line_of(alike: Sequence[Attention], *, timezone: str) -> dict[str, Any]:
    """One line for entries with the same text."""
    money: Counter[str] = Counter()
    for each in alike:
        if each.currency:
            money[each.currency] += each.amount
    entry = replace(alike[0], since=min(each.since for each in alike))
    kinds = Counter(each.what for each in alike).most_common()
    since = local_instant(entry.since, timezone=timezone)
    to_do = f"{_whose(entry)}{label_of(entry.code).to_do}" if entry.code else entry.next_step
    known = {
        "what": _what(entry, kinds),
        "since": f"{entry.since:%d %b %Y}" if entry.code else f"{since:%d %b %H:%M}",
        "to_do": to_do,
        "tone": "severe",
        "count": len(alike),
        "money": money,
        "code": entry.code,
        "level": entry.what,
        "urgent": entry.is_urgent,
        "of_night": len(kinds) > 1,
    }
    if len(alike) == 1:
        known |= {"about": entry.order_no or entry.subject or entry.transaction_id}
        known |= {"currency": entry.currency, "amount": entry.amount if entry.currency else None}
    else:
        known["about"] = _sums(money)
    return _line(known)


def _what(entry: Attention, kinds: Sequence[tuple[str, int]]) -> str:
    """Text of a line, with counts if it has several, such as "395 capture, 21 cancel not sent"."""
    if len(kinds) > 1:
        parts = (f"{count:,} {what.removesuffix(NOT_SENT)}" for what, count in kinds)
        return ", ".join(parts) + NOT_SENT
    what = f"{entry.what}: {label_of(entry.code).title.lower()}" if entry.code else entry.what
    count = kinds[0][1]
    return what if count == 1 else f"{count:,} × {what}"  # noqa: RUF001 - times


def _whose(entry: Attention) -> str:
    """Owner and due date of a break, such as "Jo Hill, due 23 Nov: "."""
    due = f", due {entry.due:%d %b}" if entry.due else ""
    return f"{entry.owner or NO_OWNER}{f', {entry.answered}' if entry.answered else due}: "


def _sums(money: Mapping[str, int]) -> str:
    """Such as "12.00 EUR · 3,400 JPY"."""
    return " · ".join(with_currency(money[currency], currency) for currency in sorted(money))


def _unverified(page: Page) -> Iterator[dict[str, Any]]:
    """A line for unverified sets and rejected rows, either of which prevents RECONCILED."""
    sets, rejected = page.rows.open.count(NOT_VERIFIED), len(page.figures.rejects)
    if not sets and not rejected:
        return
    to_do = "Why stands on Pending: correct the row or entry, the next night compares it."
    yield _line(
        {
            "what": f"{sets:,} not verified, {rejected:,} rejected",
            "to_do": CellLink(to_do, PENDING_AT),
        }
    )


_ON = {
    CellLink("Assurance", SOURCES_AT): ("due", "matched", "waiting"),
    CellLink("Pending", PENDING_AT): ("not_verified", "late_from"),
    CellLink("Breaks", place_of(0)): ("breaks", "at_risk", "oldest"),
    CellLink("Assurance", HOLDS_AT): ("owed", "held_back", "reserve"),
    CellLink("Bank", PAYOUTS_AT): ("on_its_way", "overdue", "to_be_taken"),
}
"""The sheet that lists or adds up figures of a currency -> those figures."""
ADDS_UP = {"currency": "Adds up on", "share": None} | {
    name: link for link, names in _ON.items() for name in names
}
ADDS_UP_LABELS = (
    "Due is matched, breaks and not verified of the row gateway under What each source says; "
    "Waiting stands there, too. Not verified: the money at risk by reason. At risk: filtered by "
    "Ccy, an area by Code, severity, since. Owed: payable less held back. Bank: payouts by state."
)
DUE = tuple(state.value for state in (SetState.MATCHED, SetState.BREAK, SetState.UNVERIFIED))
"""States of payments that are past their grace."""


def _money_columns(figures: NightFigures) -> tuple[Column, ...]:
    held, banked = figures.gateway_holds is not None, bool(figures.bank)
    wide = WIDTHS_FROM
    return (
        Column("Currency", wide, "currency", tone="strong"),
        *_under(
            "Payments that are due",
            Column("Due", wide, "due", "money"),
            Column("Matched", wide, "matched", "money"),
            Column("Share", wide, "share", "share", tone="strong"),
            Column("Not verified", wide, "not_verified", "money"),
        ),
        *_under(
            "Not late yet",
            Column("Waiting", wide, "waiting", "money"),
            Column("Late from", wide, "late_from", "date"),
        ),
        *_under(
            "Breaks",
            Column("Breaks", wide, "breaks", "count", tone="strong"),
            Column("At risk", wide, "at_risk", "money"),
            Column("Age, days", wide, "oldest", "days"),
        ),
        *_under(
            "Cash with the gateway and the bank (each amount once)",
            Column("Owed, not paid out", wide, "owed", "money", is_covered=held),
            Column("Held back", wide, "held_back", "money", is_covered=held),
            Column("Reserve", wide, "reserve", "money", is_covered=held),
            Column("On its way", wide, "on_its_way", "money", is_covered=banked),
            Column(
                *("Overdue at the bank", wide, "overdue", "money"),
                is_covered=banked,
                tone=lambda row: "severe" if row["overdue"] else "",
            ),
            Column(
                *("To be debited", wide, "to_be_taken", "money"),
                is_covered=banked,
                tone=lambda row: "severe" if row["to_be_taken"] else "",
            ),
        ),
    )


def _under(over: str, *columns: Column) -> Iterator[Column]:
    return (replace(column, over=over) for column in columns)


def _by_currency(page: Page) -> Iterator[dict[str, Any]]:
    """Per currency what is due, waiting, broken, and held by gateway and bank, in minor units.

    What the gateway owes excludes what it holds back, which has a column of its own.
    """
    figures, breaks = page.figures, page.rows.breaks
    holds = figures.gateway_holds.by_currency() if figures.gateway_holds else {}
    payouts = payout_rows(figures) if figures.bank else []
    on_its_way, taken = on_the_way(payouts)
    overdue: Counter[str] = Counter()
    for payout in payouts:
        if label_of(payout["code"]).overdue:
            overdue[payout["currency"]] += payout["amount"]
    late_from, at_risk = _late_from(figures), _at_risk(breaks)
    not_verified: Counter[str] = Counter()
    for group in page.rows.open.groups:
        if group["result"] == NOT_VERIFIED and group["currency"]:
            not_verified[group["currency"]] += group[RISK]
    of: Counter[tuple[str, str]] = Counter()
    for row in _of_gateway(page):
        of[row["currency"], row["state"]] += row["amount"] or 0
    names = [*(currency for currency, _ in of), *(row["currency"] for row in breaks)]
    others = {*not_verified, *holds, *on_its_way, *taken, *overdue}
    for currency in sorted({*names, *others} - {"", None}):
        due, matched = sum(of[currency, each] for each in DUE), of[currency, SetState.MATCHED.value]
        own = [row for row in breaks if row["currency"] == currency]
        held, _ = holds.get(currency, (Holding("", "", currency), None))
        yield {
            "currency": currency,
            "due": due,
            "matched": matched,
            # Rounded down; amounts of both signs may have no share.
            "share": Decimal(matched * 10_000 // due).scaleb(-4) if due >= matched > 0 else None,
            "not_verified": not_verified[currency],
            "waiting": of[currency, SetState.PENDING.value],
            "late_from": late_from.get(currency),
            "breaks": len(own),
            "at_risk": at_risk[currency],
            "oldest": _oldest(own),
            "owed": held.payable.amount - held.held_back.amount,
            "held_back": held.held_back.amount,
            "reserve": held.reserve.amount,
            "on_its_way": on_its_way[currency],
            "overdue": overdue[currency],
            "to_be_taken": -taken[currency],
        }


def _at_risk(breaks: Sequence[Row]) -> Counter[str]:
    """Currency -> money at risk of its breaks, minor units."""
    money: Counter[str] = Counter()
    for row in breaks:
        if row["currency"]:
            money[row["currency"]] += risk_of_break(row)
    return money


def _oldest(breaks: Sequence[Row]) -> int | None:
    """Age of the oldest break in business days; None without breaks."""
    return max((row["age_days"] or 0 for row in breaks), default=None)


def _late_from(figures: NightFigures) -> dict[str, date]:
    """Currency -> the first day on which a pending set becomes late."""
    days: dict[str, date] = {}
    if figures.pending.empty:
        return days
    for row in rows_of(figures.pending[["currency", "due_at"]]):
        if row["currency"] and row["due_at"] is not None:
            day = local_instant(row["due_at"], timezone=figures.timezone).date()
            days[row["currency"]] = min(day, days.get(row["currency"], day))
    return days


def _areas(breaks: Sequence[Row]) -> Listing:
    """The breaks by area, with their money; each area links to its first break."""
    counts = Counter(str(row["currency"]) for row in breaks if row["currency"])
    shown = sorted(currency for currency, _ in counts.most_common(CURRENCIES_ACROSS))
    areas = [area_of(row) for row in breaks]
    lines = []
    for area in filter(areas.__contains__, AREAS):
        own = [row for row, its in zip(breaks, areas, strict=True) if its == area]
        about = CellLink(AREAS[area], place_of(areas.index(area)))
        lines.append(_area(about, own, currencies=shown))
    columns = (
        Column("Breaks by what they are about", 33, "about", span=3),
        Column("Breaks", 11, "count", "count", tone="strong"),
        Column("Age, days", 11, "oldest", "days"),
        *(Column(each, 11, each, "money", currency=f"of {each}") for each in shown),
    )
    left = len(counts) - len(shown)
    total = f"All breaks, money at risk{f', {left} more currencies on Breaks' * (left > 0)}"
    total_row = _area(total, breaks, currencies=shown) if breaks else None
    return Listing(columns, lines, total=total_row, nothing="No open breaks.")


def _area(
    about: str | CellLink, breaks: Sequence[Row], *, currencies: Sequence[str]
) -> dict[str, Any]:
    money = _at_risk(breaks)
    return {
        "about": about,
        "count": len(breaks),
        "oldest": _oldest(breaks),
        **{each: money[each] for each in currencies},
        **{f"of {each}": each for each in currencies},
    }


def _causes(breaks: Sequence[Row]) -> Iterator[Block]:
    """The most frequent causes of breaks, each linked to its first break."""
    causes = [str(row["cause"] or "") for row in breaks]
    for cause, count in Counter(filter(None, causes)).most_common(CAUSES_DISPLAYED):
        first = place_of(causes.index(cause))
        yield TextLine(CellLink(f"{count:,} breaks: {cause}", first), span=LAST)


def _trend(figures: NightFigures) -> Iterator[Block]:
    """Open breaks of the last nights, this one last."""
    points = [(point.business_date, point.open_breaks) for point in figures.trend]
    points = [*points[1 - NIGHTS_ACROSS :], (figures.business_date, len(figures.breaks))]
    if len(points) >= NIGHTS_MIN:
        days = (Column(f"{day:%-d %b}", 11, str(day), "count") for day, _ in points)
        row = {"what": "Open breaks"} | {str(day): count for day, count in points}
        yield Listing((Column("Night", 11, "what", tone="strong"), *days), [row])


def _moved(rows: Rows) -> str:
    """Results of the run's instructions, by kind: "Captures: 395 confirmed · Refunds: …"."""
    parts = []
    for kind in kinds_of(rows.instructions):
        groups = Counter(row["group"] for row in rows.instructions if row["kind"] == kind)
        counts = (f"{groups[group]:,} {group}" for group in GROUP_ORDER if groups[group])
        parts.append(f"{kind.replace('_', ' ').capitalize()}s: {', '.join(counts)}")
    return " · ".join(parts)


def _sign_off(figures: NightFigures) -> Listing:
    """Who prepared, reviewed and approved; a signed copy fills in the last two."""
    prepared = local_instant(figures.generated_at, timezone=figures.timezone)
    rows = [{"role": "Prepared", "name": "recon (automatic)", "at": f"{prepared:%-d %b %Y}"}]
    rows += [{"role": role, "name": NOT_SIGNED, "at": ""} for role in SIGN_OFF.values()]
    columns = (Column("Sign-off", 14, "role"), Column("Name", 28, "name", span=2))
    return Listing((*columns, Column("Date", 14, "at")), rows)


def _sources_sentence(figures: NightFigures) -> str:
    read = sum(file.rows_read for file in figures.files)
    rejected = sum(file.rows_rejected for file in figures.files)
    ledger = "" if figures.ledger_covered else " · no ledger: the ledger is not covered"
    count = len(figures.files)
    return f"Read: {count} files · {read:,} rows · {rejected:,} rejected{ledger}"
