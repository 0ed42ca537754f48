"""Page one, for whoever signs: the verdict, what needs a person, money by currency, tonight, names.

One A4 page. Things that say the same are one line, with how many they are and what money they are
about: a stopped night does not repeat its reason for each order.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

from recon.matching.judging.severity import risk_of_break
from recon.model.figures import Attention, NightFigures
from recon.model.gateway_holds import BEFORE_FIRST, HeldPart
from recon.model.words import BreakCode, ControlTotal, Verdict
from reports.drawing.blocks import Beside, Column, Listing, Part, Row, Sheet, TextLine, rows_of
from reports.drawing.look import NAVY, CellLink, amount_text, local_instant, with_currency
from reports.sheets.bank_sheet import in_transit, to_be_taken
from reports.sheets.breaks_sheet import is_grave, place_of
from reports.sheets.control_totals import (
    LEG_NAMES,
    TOTALS_AT,
    Ways,
    books_sentence,
    leg_rows,
    results_of,
)
from reports.sheets.instructions_sheet import kinds_of
from reports.sheets.proof_words import proof_words
from reports.sheets.sources_sheet import whole
from reports.sheets.totals import AMOUNT_NAMES, NOT_VERIFIED, RISK, WAITING, Rows
from reports.sheets.words import VERDICT_WORDS, words_of

TITLE = "Summary"
WIDTHS = (15, 14, 13, 13, 13, 12, 13, 14, 14, 14, 14, 14)
LAST = len(WIDTHS)
CURRENCIES_SHOWN = 6
"""The others stand on Control totals and in the result files."""
ATTENTION_SHOWN, CALM_SHOWN = 8, 2
"""Lines of things that need a person; of what only waits, however much is urgent."""
CODES_SHOWN, CAUSES_SHOWN, ASSURANCE_SHOWN = 9, 3, 6
PROOFS_SHOWN, RECORDS_SHOWN = 5, 3
NOT_SENT = " not sent"
NOTHING = "No break is open, no instruction is in doubt, and none waits for a person."
UNJUDGED = "No break is open; what was not verified or rejected needs a person."
"""The verdict BREAKS OPEN, where that is all that keeps the night from being reconciled."""
TO_BE_TAKEN = (
    "Batches that came to less than nothing, which the gateway will take from the bank account "
    "(see that it holds as much)"
)
VERDICT_TONES = {Verdict.BREAKS_OPEN: "verdict warn", Verdict.RECONCILED: "verdict good"}
SIGN_OFF = {"reviewer": "Reviewed", "approver": "Approved"}
"""Role -> its line of the sign-off; a signed copy fills in who and when."""
NOT_SIGNED = "not signed"
SIGNED_FILE = (
    "Signed with `recon sign-off`, which binds the SHA-256 of this file;",
    "a copy beside it then says who signed. Nothing is signed here.",
)
"""Two lines under the names, which the signed copy replaces."""
OF_PLAIN_FILES = (
    "Of plain files: no history keeps this workbook, and no command signs it.",
    "Sign it on paper, or file it with its SHA-256.",
)
"""The same two where no night stands behind the file."""
KINDS = {"capture": "Captures", "refund": "Refunds", "cancel": "Cancels"}
MOVES = ("instructed", "confirmed", "rejected", "in doubt", "waiting", "withdrawn")
BUCKETS: tuple[tuple[str, int, int], ...] = (
    ("0–1 d", 0, 1),  # noqa: RUF001 - an en dash is how a range is written
    ("2–3 d", 2, 3),  # noqa: RUF001 - as above
    ("4–7 d", 4, 7),  # noqa: RUF001 - as above
    ("8–30 d", 8, 30),  # noqa: RUF001 - as above
    ("> 30 d", 31, 10**9),
)
"""Business days, first and last."""
AGAIN, STORED, STOPPED, WRITTEN = "{again}", "{stored}", "{stopped}", "{written}"
OF_A_NIGHT: Mapping[str, str] = {
    AGAIN: "Start the night of this date again.",
    STORED: "`recon verify --compare` compares what is stored.",
    STOPPED: " (`recon stop-sending`)",
    WRITTEN: "This file is not what the database holds: `recon workbook` writes it again.",
}
"""Where TO_DO names a command -> that of a night."""
_FILES_AGAIN = "Run `recon reconcile` over the same files again; where it says the same, tell IT."
WITHOUT_A_NIGHT: Mapping[str, str] = {**dict.fromkeys(OF_A_NIGHT, _FILES_AGAIN), STOPPED: ""}
TO_DO: Mapping[str, str] = {
    "T0": "Compare the file on Sources with what its sender says, and the ways on Control totals.",
    "T1": f"See Sources, Difference: rows of a file were lost. {AGAIN}",
    "T2": f"Rows were lost on their way to the database. {AGAIN}",
    "T3": f"Not every order has one answer of the gateway. {AGAIN}",
    "T4": f"A record is lost or counted twice. {STORED}",
    **dict.fromkeys(("T5A", "T5B", "T5C"), f"No row explains this money. {STORED}"),
    "T6": f"A record stands twice. {STORED}",
    "T7": "A break got lost between two nights: compare Breaks with the night before.",
    "T8": "See Instructions: one has no result, or two.",
    "T9": f"Stop refunds of these orders{STOPPED}, and look them up in the portal.",
    "T10": "Hold the write-offs of the books against those that two people agreed to, on Breaks.",
    "T11": "Hold the settlement file against what was paid out; ask the gateway.",
    "T12": "Import no journal of this night; tell IT.",
    "T13": WRITTEN,
    "T14": "SQL over the same files finds another figure: tell IT, and keep the files as they are.",
    **dict.fromkeys(
        ("T15", "T16"),
        "An entry of a statement is lost: `recon order-file check --as bank` reads it by itself.",
    ),
    "T17": "A pay-out or an entry of the bank is lost: compare Breaks with the statement.",
    "T18": "A line or a pay-out of the settlement is lost: compare it with what is held back.",
    "T19": "A fee, reserve, pay-out or arrival is lost: compare source and ledger with Breaks.",
}
"""Reference of a control total -> what to do and where."""
TELL_IT = "Tell IT, and sign nothing: the rows of this workbook do not add up there."
_NAMES = ("order_no", "transaction_id", "entry_id", "about")


@dataclass(frozen=True, slots=True)
class Page:
    """What every block of the page needs."""

    figures: NightFigures
    rows: Rows
    ways: Ways

    @property
    def is_proven(self) -> bool:
        """No proof of the engine fails, and no check of the sheets."""
        return self.verdict is not Verdict.NOT_PROVEN

    @property
    def verdict(self) -> Verdict:
        """What page one says: never better than what the sheets come to."""
        totals = self.figures.control_totals
        holds = not self.ways.failing() and all(total.passed for total in totals)
        return self.figures.verdict if holds else Verdict.NOT_PROVEN


def page_one(figures: NightFigures, rows: Rows, ways: Ways) -> Sheet:
    """All blocks of the page, top to bottom."""
    page = Page(figures, rows, ways)
    return Sheet(
        TITLE,
        [*_blocks(page)],
        widths=WIDTHS,
        frozen=(0, 0),
        pages=(1, 1),
        colour=NAVY,
    )


def _blocks(page: Page) -> Iterator[Part]:
    figures, verdict = page.figures, page.verdict
    text = VERDICT_WORDS[verdict]
    if verdict is Verdict.BREAKS_OPEN and not page.rows.breaks:
        text = UNJUDGED
    tone = VERDICT_TONES.get(verdict, "verdict bad")
    yield TextLine(f"{verdict.value} · {text}", tone, LAST)
    as_of = local_instant(figures.as_of, timezone=figures.timezone)
    account = f" · account {figures.account_id}" if figures.account_id else ""
    yield TextLine(
        f"Merchant {figures.merchant_name or figures.merchant_id} ({figures.merchant_id})"
        f"{account} · business day {figures.business_date} · {figures.mode} · run "
        f"{figures.run_id} · data as of {as_of:%Y-%m-%d %H:%M} {figures.timezone}",
        "muted",
    )
    yield TextLine()
    yield _figures(page)
    yield from _notes(figures)
    yield TextLine()
    yield from _unproven(page)
    yield from _attention(page)
    yield TextLine()
    yield from _legs(page)
    yield TextLine()
    yield from _holds(figures)
    yield from _matrix(page.rows.breaks)
    yield TextLine()
    yield Beside(_tonight(page.rows), _sign_off(figures), at=8)
    for sentence in OF_PLAIN_FILES if figures.of_plain_files else SIGNED_FILE:
        yield TextLine(sentence, "note")
    yield TextLine(CellLink(_sources_sentence(figures), "'Sources'!A4"))
    yield from _assurance(figures)


def _figures(page: Page) -> Listing:
    """The verdict and how many sets came to what, in one row."""
    rows, figures = page.rows, page.figures
    counts = results_of(rows)
    every = sum(counts.values())
    # Rounded down: 99.999 % must not read as 100.
    share = Decimal(counts["Matched"] * 10_000 // every if every else 0).scaleb(-4)
    columns = (
        Column("Verdict", 15, "verdict", tone=VERDICT_TONES.get(page.verdict, "bad").split()[-1]),
        Column("Matched", 14, "share", "share", tone="strong"),
        Column("Matched sets", 13, "Matched", "count"),
        Column("Of sets", 13, "every", "count"),
        Column(WAITING, 13, WAITING, "count"),
        Column(NOT_VERIFIED, 12, NOT_VERIFIED, "count"),
        Column("Open breaks", 13, "Breaks", "count", tone="strong"),
        Column("Since the night before", 14, "since"),
        Column("High or critical", 14, "grave", "count"),
        Column("Oldest, business days", 14, "oldest", "count"),
        Column(
            "Instructions in doubt",
            14,
            "doubtful",
            "count",
            tone=lambda row: "bad" if row["doubtful"] else "",
        ),
    )
    row = {
        **counts,
        "verdict": page.verdict.value,
        "share": share,
        "every": every,
        "since": _since_yesterday(figures),
        "grave": sum(map(is_grave, rows.breaks)),
        "oldest": max((each["age_days"] or 0 for each in rows.breaks), default=0),
        "doubtful": sum(each["group"] == "in doubt" for each in rows.instructions),
    }
    return Listing(columns, [row])


def _since_yesterday(figures: NightFigures) -> str:
    if figures.opening_breaks is None:
        return "no night before"
    change = len(figures.breaks) - figures.opening_breaks
    return "as many" if not change else f"{abs(change):,} {'more' if change > 0 else 'fewer'}"


def _notes(figures: NightFigures) -> Iterator[Part]:
    """What was paid out and is not at the bank yet, what will be taken, and what must be said."""
    if figures.bank:
        yield TextLine()
        on_its_way = _since(in_transit(figures)) or "nothing"
        yield TextLine(CellLink(f"Cash in transit: {on_its_way}", "'Bank'!A4"), span=LAST)
        if taken := _since(to_be_taken(figures)):
            yield TextLine(CellLink(f"{TO_BE_TAKEN}: {taken}", "'Bank'!A4"), span=LAST)
    for note in figures.notes:
        yield TextLine(note, "warn", LAST)


def _since(waiting: Mapping[str, tuple[int, str]]) -> str:
    return " · ".join(
        f"{with_currency(abs(amount), currency)}, the oldest settled on {since}"
        for currency, (amount, since) in sorted(waiting.items())
    )


def _unproven(page: Page) -> Iterator[Part]:
    """Why the night is not proven: what does not tie, whose it may be, what to do."""
    if page.is_proven:
        return
    failing = [total for total in page.figures.control_totals if not total.passed]
    shown = [_unproven_row(proof, page=page) for proof in failing[:PROOFS_SHOWN]]
    blank = {"currency": "", "of": "", "left": None, "right": None, "difference": None}
    shown += [{**blank, "what": title, "to_do": TELL_IT} for title in page.ways.failing()]
    columns = (
        Column("What does not tie", 42, "what", span=3, tone="grave", wrap=True),
        Column("Ccy", 13, "currency"),
        Column("First figure", 13, "left", "money", currency="of"),
        Column("Second figure", 12, "right", "money", currency="of"),
        Column("Difference", 13, "difference", "money", currency="of"),
        Column("What to do", 70, "to_do", span=5, wrap=True),
    )
    yield Listing(columns, shown, title="Why this night is not proven", nothing="")
    if left := len(failing[PROOFS_SHOWN:]):
        yield TextLine(CellLink(f"and {left} more, first on the list of every check", TOTALS_AT))
    if page.figures.of_plain_files:
        ending = "Sign nothing of this: no figure of it is known to be whole."
    else:
        ending = (
            "Nobody can sign this night, and it holds refunds and payouts of later ones: start it "
            f"again, or two people release it (`recon release {page.figures.run_id}`). Captures "
            "go on."
        )
    yield TextLine(ending, "bad", LAST)
    yield TextLine()


def _unproven_row(proof: ControlTotal, *, page: Page) -> dict[str, Any]:
    to_do = TO_DO.get(proof.id, "See Control totals, and tell IT.")
    commands = WITHOUT_A_NIGHT if page.figures.of_plain_files else OF_A_NIGHT
    for name, command in commands.items():
        to_do = to_do.replace(name, command)
    records = list(_records_of(page, proof))
    if records:
        to_do = f"{to_do} Records of exactly this money: {', '.join(records)}."
    elif proof.measure == "amount":
        to_do = f"{to_do} No single record is of exactly this money."
    return {
        "what": proof_words(proof.name),
        "currency": proof.currency,
        "to_do": to_do,
        "left": proof.left,
        "right": proof.right,
        "difference": proof.difference,
        "of": proof.currency if proof.measure == "amount" else "",
    }


def _records_of(page: Page, proof: ControlTotal) -> Iterator[str]:
    """Records whose money is exactly the difference: where a person looks first."""
    wanted = abs(proof.difference)
    if proof.measure != "amount" or not wanted:
        return
    named: list[str] = []
    for row in _every_row(page):
        if row["currency"] != proof.currency or len(named) == RECORDS_SHOWN:
            continue
        if any(abs(row.get(name) or 0) == wanted for name in AMOUNT_NAMES):
            name = next((str(row[name]) for name in _NAMES if row.get(name)), "")
            if name and name not in named:
                named.append(name)
                yield f"{name} ({amount_text(wanted, proof.currency)} {proof.currency})"


def _every_row(page: Page) -> Iterator[Row]:
    """What is open, what is not verified, then what matched."""
    yield from page.rows.breaks
    for frame in (page.figures.unverified, page.figures.pending):
        yield from rows_of(frame)
    for batch in page.figures.matches.batches():
        yield from rows_of(batch)


ATTENTION = (
    Column("What", 29, "what", span=2, wrap=True, tone=lambda row: row["tone"]),
    Column("Order no", 26, "about", span=2, wrap=True),
    Column("Ccy", 13, "currency"),
    Column("Money at risk", 12, "amount", "money"),
    Column("Known since", 13, "since"),
    Column("What to do", 70, "to_do", span=5, wrap=True),
)


def _attention(page: Page) -> Iterator[Part]:
    """Doubt first, then the breaks as a whole, then what waits."""
    lines = _lines_of(page.figures)
    of_night = [line for line in lines if line["of_night"]]
    urgent = [line for line in lines if line["urgent"]]
    calm = [line for line in lines if not line["urgent"] and not line["of_night"]]
    breaks, doubtful = page.rows.breaks, _doubtful(page.rows)
    unjudged = [*_unjudged(page)]
    if not (lines or breaks or unjudged or doubtful):
        yield TextLine("Needs a person", "heading")
        yield TextLine(NOTHING, "good", LAST)
        return
    room = ATTENTION_SHOWN - len(of_night) - bool(breaks) - min(CALM_SHOWN, len(calm))
    calm_shown = calm[: max(CALM_SHOWN, CALM_SHOWN + room - len(urgent))]
    shown = [*of_night, *urgent[:room], *_all_breaks(page), *unjudged, *calm_shown]
    if doubtful and not urgent:
        # A missing list of people does not turn a doubt into good news.
        text = "Instructions are in doubt: see the sheet Instructions."
        shown.insert(0, _line({"what": text, "tone": "bad"}))
    yield Listing(ATTENTION, shown, title="Needs a person")
    left = sum(line["count"] for line in [*urgent[room:], *calm[len(calm_shown) :]])
    if left or not page.figures.instructions.empty:
        text = f"and {left:,} more: see Instructions and Breaks" if left else "All instructions"
        yield TextLine(CellLink(text, "'Instructions'!A4"))


def _line(known: Mapping[str, Any]) -> dict[str, Any]:
    blank = {"about": "", "currency": "", "amount": None, "since": "", "to_do": ""}
    return {**blank, "count": 1, "tone": "amber", **known}


def _lines_of(figures: NightFigures) -> list[dict[str, Any]]:
    """In the order of the first of each; what lapses stays one line each, it has its own hour."""
    groups: dict[tuple[object, ...], list[Attention]] = {}
    for each in figures.attention:
        own = each.order_no if each.lapses or each.code else ""
        of_night = "" if each.what.endswith(NOT_SENT) else each.what
        key = (of_night, each.next_step, each.is_urgent, each.code, own)
        groups.setdefault(key, []).append(each)
    return [_line_of(alike, timezone=figures.timezone) for alike in groups.values()]


def _line_of(alike: Sequence[Attention], *, timezone: str) -> dict[str, Any]:
    """Things that say the same."""
    money: Counter[str] = Counter()
    for each in alike:
        if each.currency:
            money[each.currency] += each.amount
    entry = replace(alike[0], since=min(each.since for each in alike))
    kinds = Counter(each.what for each in alike).most_common()
    since = local_instant(entry.since, timezone=timezone)
    to_do = f"{_whose(entry)}{words_of(entry.code).to_do}" if entry.code else entry.next_step
    known = {
        "what": _what(entry, kinds),
        "since": f"{entry.since:%d %b %Y}" if entry.code else f"{since:%d %b %H:%M}",
        "to_do": to_do,
        "tone": "grave",
        "count": len(alike),
        "urgent": entry.is_urgent,
        "of_night": len(kinds) > 1,
    }
    if len(alike) == 1:
        known |= {"about": entry.order_no or entry.transaction_id or entry.subject}
        known |= {"currency": entry.currency, "amount": entry.amount if entry.currency else None}
    else:
        known["about"] = _sums(money)
    return _line(known)


def _what(entry: Attention, kinds: Sequence[tuple[str, int]]) -> str:
    """Several of one kind by their number; such as "395 capture, 21 cancel not sent"."""
    if len(kinds) > 1:
        parts = (f"{count:,} {what.removesuffix(NOT_SENT)}" for what, count in kinds)
        return ", ".join(parts) + NOT_SENT
    what = f"{entry.what}: {words_of(entry.code).title.lower()}" if entry.code else entry.what
    count = kinds[0][1]
    return what if count == 1 else f"{count:,} × {what}"  # noqa: RUF001 - times


def _whose(entry: Attention) -> str:
    """Who looks after a break, and until when: "Jo Hill, due 23 Nov: "."""
    due = f", due {entry.due:%d %b}" if entry.due else ""
    return f"{entry.owner or 'No owner yet'}{due}: "


def _doubtful(rows: Rows) -> bool:
    return any(instruction["group"] == "in doubt" for instruction in rows.instructions)


def _sums(money: Mapping[str, int]) -> str:
    """Such as "12.00 EUR · 3,400 JPY"."""
    return " · ".join(with_currency(money[currency], currency) for currency in sorted(money))


def _all_breaks(page: Page) -> Iterator[dict[str, Any]]:
    """All open breaks in one line: how many, how much per currency, since when."""
    breaks = page.rows.breaks
    if not breaks:
        return
    money: Counter[str] = Counter()
    for row in breaks:
        if row["currency"]:
            money[row["currency"]] += risk_of_break(row)
    answered = sum(row["break_id"] in page.figures.answers for row in breaks)
    first = min((str(row["first_seen"]) for row in breaks if row["first_seen"]), default="")
    to_do = "Answer them on Breaks, most urgent first: who looks after each, and what was done."
    yield _line(
        {
            "what": f"{len(breaks):,} open break{'s' * (len(breaks) != 1)}, "
            f"{sum(map(is_grave, breaks)):,} high, {answered:,} of {len(breaks):,} answered",
            "about": _sums(money),
            "since": f"{date.fromisoformat(first):%d %b %Y}" if first else "",
            "to_do": CellLink(to_do, place_of(0)),
        }
    )


def _unjudged(page: Page) -> Iterator[dict[str, Any]]:
    """Sets that nobody could judge and rows that could not be read: no night is reconciled then."""
    sets, rejected = page.rows.open.count(NOT_VERIFIED), len(page.figures.rejects)
    if not sets and not rejected:
        return
    money: Counter[str] = Counter()
    for group in page.rows.open.groups:
        if group["result"] == NOT_VERIFIED and group["currency"] and group[RISK]:
            money[str(group["currency"])] += group[RISK]
    to_do = "Why stands on Pending and Sources: correct the row or entry, the next night judges it."
    yield _line(
        {
            "what": f"{sets:,} not verified, {rejected:,} rejected",
            "about": _sums(money),
            "to_do": CellLink(to_do, "'Pending'!A4"),
        }
    )


LEGS = (
    Column("Compared", 29, "name", span=2),
    Column("Currency", 13, "currency", tone="strong"),
    Column("Gateway", 13, "gateway", "money"),
    Column("Other side", 13, "other", "money"),
    Column("Difference", 12, "difference", "money"),
    Column("Explained", 13, "explained", "money"),
    Column("Unexplained", 14, "unexplained", "money"),
    Column("Check", 14, "check", "check"),
)


def _legs(page: Page) -> Iterator[Part]:
    """Control totals per currency, and how the ledger file comes to the ledger compared."""
    every = [
        {**row, "name": LEG_NAMES[row["leg"]]} for row in leg_rows(page.figures, page.ways.legs)
    ]
    currencies = sorted({leg.currency for leg in page.ways.legs})
    shown = [row for row in every if row["currency"] in currencies[:CURRENCIES_SHOWN]]
    yield Listing(LEGS, shown, title=CellLink("Control totals", TOTALS_AT), nothing="No amounts.")
    if left := len(currencies[CURRENCIES_SHOWN:]):
        yield TextLine(f"and {left} more currencies on Control totals", "note")
    sentences = [books_sentence(page.figures, currency=each) for each in page.figures.books]
    for sentence in [each for each in sentences if each][:CURRENCIES_SHOWN]:
        yield TextLine(CellLink(f"The books: {sentence}", TOTALS_AT), span=LAST)


HELD = (
    Column("Currency", 15, "currency", tone="strong"),
    Column("Payable", 14, "payable", "money"),
    Column("Oldest", 13, "payable since", tone="muted"),
    Column("Held back", 13, "held_back", "money"),
    Column("Oldest", 13, "held_back since", tone="muted"),
    Column("Reserve", 12, "reserve", "money"),
    Column("Oldest", 13, "reserve since", tone="muted"),
    Column("Fees charged", 14, "charged", "money"),
)


def _holds(figures: NightFigures) -> Iterator[Part]:
    """What the gateway holds and the fees it took, per currency."""
    if figures.gateway_holds is None:
        return
    by_currency = figures.gateway_holds.by_currency()
    shown = []
    for held, fees in [*by_currency.values()][:CURRENCIES_SHOWN]:
        row: dict[str, Any] = {"currency": held.currency, "charged": fees.charged}
        for name in ("payable", "held_back", "reserve"):
            part: HeldPart = getattr(held, name)
            row |= {name: part.amount, f"{name} since": _age(part, day=figures.business_date)}
        shown.append(row | {"booked": fees.booked, "difference": fees.difference})
    covered = all(row["booked"] is not None for row in shown)
    fees_booked = (
        Column("Fees booked", 14, "booked", "money", is_covered=covered),
        Column("Difference", 14, "difference", "money", is_covered=covered),
    )
    title = "The gateway holds, and the fees that it took"
    yield Listing((*HELD, *fees_booked), shown, title=title, nothing="Nothing, and no fee.")
    if left := len(by_currency) - len(shown):
        yield TextLine(f"and {left} more currencies", "note")
    yield TextLine()


def _age(part: HeldPart, *, day: date) -> str:
    """How many days the oldest piece is held."""
    if part.since in {"", BEFORE_FIRST}:
        return part.since
    days = (day - date.fromisoformat(part.since)).days
    return f"{days} day{'s' * (days != 1)}"


def _matrix(breaks: Sequence[Row]) -> Iterator[Part]:
    """Open breaks by code and age; each code, and each shared cause, leads to its first break."""
    counts = Counter(str(row["code"]) for row in breaks)
    order = [code.value for code in BreakCode]
    rank = {code: order.index(code) if code in order else len(order) for code in counts}
    codes = sorted(counts, key=lambda code: (-counts[code], rank[code]))
    places = {row["code"]: number for number, row in reversed([*enumerate(breaks)])}
    lines = []
    for code in codes[:CODES_SHOWN]:
        about = CellLink(words_of(code).title, place_of(places[code]))
        lines.append(_aged(about, [row for row in breaks if row["code"] == code]))
    if others := codes[CODES_SHOWN:]:
        about = CellLink(f"{len(others)} other causes", place_of(0))
        lines.append(_aged(about, [row for row in breaks if row["code"] in others]))
    columns = (
        Column("What is wrong", 42, "about", span=3),
        *(Column(label, 13, label, "count") for label, _, _ in BUCKETS),
        Column("Total", 14, "total", "count", tone="strong"),
    )
    yield Listing(
        columns,
        lines,
        title="Open breaks by cause and age (business days)",
        total=_aged("All breaks", breaks),
        nothing="No open breaks.",
    )
    causes = [str(row["cause"] or "") for row in breaks]
    for cause, count in Counter(filter(None, causes)).most_common(CAUSES_SHOWN):
        yield TextLine(CellLink(f"{count:,} breaks: {cause}", place_of(causes.index(cause))))


def _aged(about: str | CellLink, breaks: Sequence[Row]) -> dict[str, Any]:
    ages = [row["age_days"] or 0 for row in breaks]
    by_age = {label: sum(first <= age <= last for age in ages) for label, first, last in BUCKETS}
    return {"about": about, **by_age, "total": len(breaks)}


def _tonight(rows: Rows) -> Listing:
    """What moved tonight, by kind and result."""
    kinds = dict.fromkeys([*KINDS, *kinds_of(rows.instructions)])
    lines = []
    for kind in kinds:
        own = [row for row in rows.instructions if row["kind"] == kind]
        words = KINDS.get(kind, kind.replace("_", " ").capitalize())
        groups = Counter(row["group"] for row in own)
        lines.append({"kind": words, "instructed": len(own)})
        lines[-1] |= {move: groups[move] for move in MOVES[1:]}
    columns = (
        Column("Tonight", 15, "kind"),
        *(Column(move.capitalize(), 13, move, "count") for move in MOVES),
    )
    return Listing(columns, lines)


def _sign_off(figures: NightFigures) -> Listing:
    """Who prepared, reviewed and approved; a signed copy of the file names the last two."""
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
    return f"Sources: {count} · {read:,} rows read · {rejected:,} rejected{ledger}"


def _assurance(figures: NightFigures) -> Iterator[Part]:
    """What was proven and what cannot be seen: one line per statement, then what had no source."""
    by_statement: dict[str, list[Mapping[str, str | int]]] = {}
    for line in figures.scope_of_assurance:
        by_statement.setdefault(str(line.get("statement", "")), []).append(line)
    sentences = [_assured(statement, lines=lines) for statement, lines in by_statement.items()]
    sentences += [f"Not covered: {sentence}" for sentence in figures.not_covered]
    if not sentences:
        return
    yield TextLine()
    yield TextLine(CellLink("Scope of assurance", "'Sources'!A4"), "heading")
    for sentence in sentences[:ASSURANCE_SHOWN]:
        yield TextLine(sentence)
    if left := len(sentences[ASSURANCE_SHOWN:]):
        yield TextLine(f"and {left} more on Sources and Control totals", "note")


def _assured(statement: str, *, lines: Sequence[Mapping[str, str | int]]) -> str:
    """A statement with its figures; beside currencies a count without one says that it has none."""
    alone = not any(line.get("currency") for line in lines)
    figures = [text for line in lines if (text := _figure_of(line, alone=alone))]
    sentence = f"{statement[:1].upper()}{statement[1:]}"
    return f"{sentence}: {' · '.join(figures)}" if figures else sentence


def _figure_of(line: Mapping[str, str | int], *, alone: bool) -> str:
    """Count and amount of a line; nothing where it counts nothing."""
    count, amount = whole(line.get("count")), whole(line.get("amount")) or 0
    currency = str(line.get("currency", "") or "")
    if not count:
        return ""
    if currency:
        return f"{count:,} ({with_currency(amount, currency)})"
    return f"{count:,}" if alone else f"{count:,} whose currency nothing tells"
