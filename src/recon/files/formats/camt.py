"""Bank statements in XML: camt.053 (v02 to v14), camt.052 and camt.054 of ISO 20022.

No document type is accepted, size and depth are bounded. Names are taken without their namespace,
which only has to be that of one of these messages; versions differ in where a state or a party
stands, and both places are read.
"""

import re
from collections.abc import Iterator
from typing import Any

from lxml import etree

from recon.files.formats.bank_records import (
    ENTRIES_MAX,
    STATEMENTS_MAX,
    TEXT_CHARACTERS_MAX,
    RawBalance,
    RawEntry,
    RawStatement,
    glued,
)
from recon.files.formats.format_limits import XML_DEPTH_MAX
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_table import refuse
from recon.files.formats.xml_records import FOREIGN, refuse_unfit_xml
from recon.matching.frames.bank_sources import DETAILS, REPORT, STATEMENT
from recon.privacy.shown_text import redacted

_MESSAGE = re.compile(r"urn:iso:std:iso:20022:tech:xsd:camt\.05([234])\.001\.(0[2-9]|1[0-4])")
_FORMS = {"3": STATEMENT, "2": REPORT, "4": DETAILS}
_CONTAINERS = {"Stmt": STATEMENT, "Rpt": REPORT, "Ntfctn": DETAILS}
_AWAITED = ("{*}Ntry", *(f"{{*}}{tag}" for tag in _CONTAINERS))
_TOO_DEEP = etree.XPath(f"boolean(descendant-or-self::*[count(ancestor::*) >= {XML_DEPTH_MAX}])")
_OPENING, _PREVIOUS, _CLOSING = "OPBD", "PRCD", "CLBD"
_BOOKED = "BOOK"
_CREDIT, _DEBIT = "CRDT", "DBIT"
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
FULL_LINE = 140
"""Characters of a line of remittance information; a longer text goes on in the next."""
FED_BYTES = 64 * 1024
"""What the parser of XML is given at once: the trees of so many bytes stand in memory together."""
DETAILS_MAX = 100_000
"""Payments of one entry."""


def camt_statements(file: FileBytes) -> list[RawStatement]:
    """Every statement, report or notification of a document.

    Raises:
        SourceUnreadableError: it is no such document, or an entry lacks what every entry has.
    """
    name = file.path.name
    refuse_unfit_xml(file)
    statements: list[RawStatement] = []
    try:
        for statement in _statements(file.content, name=name):
            statements.append(statement)
            if len(statements) > STATEMENTS_MAX:
                refuse(name, f"has more than {STATEMENTS_MAX} statements; split it")
    except (etree.XMLSyntaxError, ValueError) as error:
        refuse(name, f"is not well-formed XML: {redacted(str(error))}")
    if not statements:
        refuse(name, "has no statement (Stmt, Rpt or Ntfctn) in it")
    return statements


def _statements(content: bytes, *, name: str) -> Iterator[RawStatement]:
    form, entries, count = "", list[RawEntry](), 0
    # An element that nobody waits for is never an object of Python: there are twenty an entry.
    parser = etree.XMLPullParser(events=("end",), tag=_AWAITED, **FOREIGN)
    for element in _elements(parser, content=content):
        form = form or _form_of(element.getroottree().getroot(), name=name)
        _refuse_too_deep(element, name=name)
        tag, above = _local(element.tag), element.getparent()
        if tag in _CONTAINERS:
            if _CONTAINERS[tag] != form:
                refuse(name, f"has a {tag} in a message of another kind")
            yield _statement(element, entries=entries, form=form, name=name)
            entries = []
            element.clear()
        elif above is not None and _local(above.tag) in _CONTAINERS:
            entries.append(_entry(element, name=name))
            count += 1
            if count > ENTRIES_MAX:
                refuse(name, f"has more than {ENTRIES_MAX} entries; split it")
            # The line ends before an entry would become one text without a bound.
            before = element.getprevious()
            if before is None:
                above.text = None
            else:
                before.tail = None
            above.remove(element)
    root = parser.close()
    form = form or _form_of(root, name=name)
    _refuse_too_deep(root, name=name)


def _refuse_too_deep(element: Any, *, name: str) -> None:
    if _TOO_DEEP(element):
        refuse(name, f"is nested deeper than {XML_DEPTH_MAX} elements")


def _elements(parser: Any, *, content: bytes) -> Iterator[Any]:
    for start in range(0, len(content), FED_BYTES):
        parser.feed(content[start : start + FED_BYTES])
        for _, element in parser.read_events():
            yield element


def _form_of(root: Any, *, name: str) -> str:
    namespace = str(root.tag).rpartition("}")[0].lstrip("{")
    known = _MESSAGE.fullmatch(namespace)
    if known is None or _local(root.tag) != "Document":
        refuse(name, "is XML, but no bank statement camt.052, .053 or .054 in versions 02 to 14")
    return _FORMS[known[1]]


def _statement(element: Any, *, entries: list[RawEntry], form: str, name: str) -> RawStatement:
    line = int(element.sourceline or 0)
    number = _text(element, "ElctrncSeqNb") or _text(element, "LglSeqNb") or _text(element, "Id")
    balances = [*_balances(element, name=name)]
    page, last = _page(element)
    return RawStatement(
        account=_account(element),
        number=number,
        currency=_text(element, "Acct", "Ccy"),
        form=form,
        page=page,
        last_page=last,
        from_day=_day(_text(element, "FrToDt", "FrDtTm") or _text(element, "FrToDt", "FrDt")),
        to_day=_day(_text(element, "FrToDt", "ToDtTm") or _text(element, "FrToDt", "ToDt")),
        created=_text(element, "CreDtTm"),
        opening=_balance_of(balances, _OPENING, _PREVIOUS),
        closing=_balance_of(balances, _CLOSING),
        entries=entries,
        line=line,
    )


def _page(element: Any) -> tuple[int, bool]:
    number = _text(element, "StmtPgntn", "PgNb") or _text(element, "RptPgntn", "PgNb")
    last = _text(element, "StmtPgntn", "LastPgInd") or _text(element, "RptPgntn", "LastPgInd")
    plain = number.isascii() and number.isdecimal() and len(number) <= len(str(ENTRIES_MAX))
    return int(number) if plain else 1, last != "false"


def _account(element: Any) -> str:
    other = _text(element, "Acct", "Id", "Othr", "Id")
    return (_text(element, "Acct", "Id", "IBAN") or other).replace(" ", "").upper()


def _balances(element: Any, *, name: str) -> Iterator[tuple[str, RawBalance]]:
    for balance in _children(element, "Bal"):
        kind = _text(balance, "Tp", "CdOrPrtry", "Cd")
        amount, currency = _amount(balance)
        sign = _text(balance, "CdtDbtInd")
        if sign not in {_CREDIT, _DEBIT} or not amount:
            refuse(name, f"line {balance.sourceline}: a balance has no amount or no CdtDbtInd")
        day = _day(_text(balance, "Dt", "Dt") or _text(balance, "Dt", "DtTm"))
        inner = _text(balance, "Tp", "SubTp", "Cd") == "INTM"
        yield kind, RawBalance(amount, currency, sign == _CREDIT, day, inner)


def _balance_of(balances: list[tuple[str, RawBalance]], *kinds: str) -> RawBalance | None:
    return next((balance for kind in kinds for code, balance in balances if code == kind), None)


def _entry(element: Any, *, name: str) -> RawEntry:
    amount, currency = _amount(element)
    sign, line = _text(element, "CdtDbtInd"), int(element.sourceline or 0)
    state = _text(element, "Sts", "Cd") or _text(element, "Sts")
    if sign not in {_CREDIT, _DEBIT} or not amount or not state:
        refuse(name, f"line {line}: an entry has no amount, no CdtDbtInd or no state (Sts)")
    booked = _when(element, "BookgDt")
    entry = RawEntry(
        line=line,
        amount=amount,
        currency=currency,
        credit=sign == _CREDIT,
        booked_on=booked,
        value_on=_when(element, "ValDt") or booked,
        reversal=_text(element, "RvslInd") in {"true", "1"},
        entry_no=_text(element, "NtryRef") or _text(element, "AcctSvcrRef"),
        booked=state == _BOOKED,
        reference=_text(element, "AcctSvcrRef"),
        text=_text(element, "AddtlNtryInf")[:TEXT_CHARACTERS_MAX],
        charges=tuple(_charges(element)),
    )
    inner = [*_transactions(element)]
    if len(inner) > DETAILS_MAX:
        refuse(name, f"line {line}: an entry has more than {DETAILS_MAX} payments in it")
    if len(inner) == 1:
        _take_words(entry, inner[0])
    elif inner:
        entry.details = tuple(_detail(detail, of=entry) for detail in inner)
    return entry


def _transactions(element: Any) -> Iterator[Any]:
    for details in _children(element, "NtryDtls"):
        yield from _children(details, "TxDtls")


def _detail(element: Any, *, of: RawEntry) -> RawEntry:
    """One payment of several; without an amount it cannot add up, so "" is left to be seen."""
    amount, currency = _amount(element)
    if currency != of.currency:
        # The order may be in another currency; what of the account was moved stands beside it.
        for tag in ("TxAmt", "CntrValAmt"):
            moved = _amount(_child(_child(element, "AmtDtls"), tag))
            if moved[0] and (moved[1] == of.currency or not amount):
                amount, currency = moved
                break
    sign = _text(element, "CdtDbtInd")
    detail = RawEntry(
        line=int(element.sourceline or 0),
        amount=amount,
        currency=currency or of.currency,
        credit=sign == _CREDIT if sign in {_CREDIT, _DEBIT} else of.credit,
        booked_on=of.booked_on,
        value_on=of.value_on,
        reversal=of.reversal,
        entry_no=of.entry_no,
        booked=of.booked,
        charges=tuple(_charges(element)),
    )
    _take_words(detail, element)
    return detail


def _take_words(entry: RawEntry, element: Any) -> None:
    """Who paid, for what and under which reference, as the payment itself says it."""
    refs = _child(element, "Refs")
    entry.end_to_end_id = _text(refs, "EndToEndId")[:TEXT_CHARACTERS_MAX]
    others = [
        ref.text.strip()
        for ref in (refs if refs is not None else ())
        if _local(ref.tag) != "EndToEndId" and ref.text
    ]
    entry.reference = " ".join(filter(None, (entry.reference, *others)))[:TEXT_CHARACTERS_MAX]
    entry.counterparty = _other_side(entry, element)
    remittance = _remittance(element)
    entry.text = "\n".join(filter(None, (remittance, entry.text)))[:TEXT_CHARACTERS_MAX]
    entry.charges = entry.charges or tuple(_charges(element))
    instructed = _child(_child(element, "AmtDtls"), "InstdAmt")
    if instructed is not None:
        entry.instructed_amount, entry.instructed_currency = _amount(instructed)


def _other_side(entry: RawEntry, element: Any) -> str:
    """Name and account of who stands on the other side; of a reversal of both: it is turned."""
    parties = _child(element, "RltdPties")
    if parties is None:
        return ""
    sides: tuple[str, ...] = ("Dbtr", "UltmtDbtr") if entry.credit else ("Cdtr", "UltmtCdtr")
    if entry.reversal:
        sides = ("Dbtr", "UltmtDbtr", "Cdtr", "UltmtCdtr")
    words = []
    for side in sides:
        party = _child(parties, side)
        words += [_text(party, "Nm") or _text(party, "Pty", "Nm")]
        words += [_text(parties, f"{side}Acct", "Id", "IBAN").replace(" ", "")]
    return " ".join(filter(None, words))[:TEXT_CHARACTERS_MAX]


def _remittance(element: Any) -> str:
    element_found = _child(element, "RmtInf")
    if element_found is None:
        return _text(element, "AddtlTxInf")
    words = [glued([text.text or "" for text in _children(element_found, "Ustrd")], full=FULL_LINE)]
    for structured in _children(element_found, "Strd"):
        words += [part.strip() for part in structured.itertext() if part.strip()]
    return "\n".join(filter(None, (*words, _text(element, "AddtlTxInf"))))


def _charges(element: Any) -> Iterator[tuple[str, str, bool]]:
    for charges in _children(element, "Chrgs"):
        for record in (*_children(charges, "Rcrd"), charges):
            amount, currency = _amount(record)
            if amount:
                yield amount, currency, _text(record, "CdtDbtInd") == _CREDIT


def _amount(element: Any) -> tuple[str, str]:
    """Amount and currency as they stand; "" where there is neither."""
    amount = _child(element, "Amt")
    if amount is None:
        return "", ""
    return (amount.text or "").strip(), str(amount.get("Ccy", ""))


def _when(element: Any, name: str) -> str:
    return _day(_text(element, name, "Dt") or _text(element, name, "DtTm"))


def _day(text: str) -> str:
    known = _DAY.match(text)
    return known[0] if known else ""


def _text(element: Any, *path: str) -> str:
    for name in path:
        element = _child(element, name)
    return "" if element is None else (element.text or "").strip()


def _child(element: Any, name: str) -> Any:
    if element is None:
        return None
    return next(element.iterchildren(f"{{*}}{name}"), None)


def _children(element: Any, name: str) -> Any:
    return element.iterchildren(f"{{*}}{name}")


def _local(name: Any) -> str:
    return str(name).rpartition("}")[2]
