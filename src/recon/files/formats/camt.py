"""Bank statements in XML: camt.053 (v02 to v14), camt.052 and camt.054 of ISO 20022.

Document types (DTD) are refused, and size and depth are limited. Elements are matched by local
name; the namespace only has to be that of one of these messages. Versions differ in where they
place an entry's status or a party's name, and both places are read.
"""

import io
import re
from collections.abc import Iterator
from functools import cache
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
from recon.files.formats.xml_records import FOREIGN, local_name, refuse_unfit_xml
from recon.matching.frames.bank_sources import DETAILS, REPORT, STATEMENT
from recon.privacy.displayed_text import redacted

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
"""Characters in a full remittance line; a longer text continues in the next line."""
DETAILS_MAX = 100_000
"""Maximum number of payments in one entry."""


def camt_statements(file: FileBytes) -> list[RawStatement]:
    """Return every statement, report or notification of a camt document.

    Raises:
        SourceUnreadableError: it is not such a document, or an entry lacks a required element.
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
    # Only the awaited tags become Python objects; an entry has some twenty other elements.
    found = etree.iterparse(io.BytesIO(content), tag=_AWAITED, **FOREIGN)
    for _, element in found:
        form = form or _form_of(element.getroottree().getroot(), name=name)
        _refuse_too_deep(element, name=name)
        tag, above = local_name(element.tag), element.getparent()
        if tag in _CONTAINERS:
            if _CONTAINERS[tag] != form:
                refuse(name, f"has a {tag} in a message of another kind")
            yield _statement(element, entries=entries, form=form, name=name)
            entries = []
            element.clear()
        elif above is not None and local_name(above.tag) in _CONTAINERS:
            entries.append(_entry(element, name=name))
            count += 1
            if count > ENTRIES_MAX:
                refuse(name, f"has more than {ENTRIES_MAX} entries; split it")
            # Otherwise the line ends between entries would pile up into one unlimited text.
            before = element.getprevious()
            if before is None:
                above.text = None
            else:
                before.tail = None
            above.remove(element)
    form = form or _form_of(found.root, name=name)
    _refuse_too_deep(found.root, name=name)


def _refuse_too_deep(element: Any, *, name: str) -> None:
    if _TOO_DEEP(element):
        refuse(name, f"is nested deeper than {XML_DEPTH_MAX} elements")


def _form_of(root: Any, *, name: str) -> str:
    namespace = str(root.tag).rpartition("}")[0].lstrip("{")
    known = _MESSAGE.fullmatch(namespace)
    if known is None or local_name(root.tag) != "Document":
        refuse(name, "is XML, but no bank statement camt.052, .053 or .054 in versions 02 to 14")
    return _FORMS[known[1]]


def _statement(element: Any, *, entries: list[RawEntry], form: str, name: str) -> RawStatement:
    page = _text(element, "StmtPgntn/PgNb", "RptPgntn/PgNb")
    is_page = page.isascii() and page.isdecimal() and len(page) <= len(str(ENTRIES_MAX))
    account = _text(element, "Acct/Id/IBAN", "Acct/Id/Othr/Id")
    balances: dict[str, RawBalance] = {}
    for own in element.iterchildren("{*}Bal"):
        amount, currency = _amount(own)
        sign = _text(own, "CdtDbtInd")
        if sign not in {_CREDIT, _DEBIT} or not amount:
            refuse(name, f"line {own.sourceline}: a balance has no amount or no CdtDbtInd")
        day = _day(_text(own, "Dt/Dt", "Dt/DtTm"))
        inner = _text(own, "Tp/SubTp/Cd") == "INTM"
        balance = RawBalance(amount, currency, sign == _CREDIT, day, inner)
        balances.setdefault(_text(own, "Tp/CdOrPrtry/Cd"), balance)
    return RawStatement(
        account=account.replace(" ", "").upper(),
        number=_text(element, "ElctrncSeqNb", "LglSeqNb", "Id"),
        currency=_text(element, "Acct/Ccy"),
        form=form,
        page=int(page) if is_page else 1,
        last_page=_text(element, "StmtPgntn/LastPgInd", "RptPgntn/LastPgInd") != "false",
        from_day=_day(_text(element, "FrToDt/FrDtTm", "FrToDt/FrDt")),
        to_day=_day(_text(element, "FrToDt/ToDtTm", "FrToDt/ToDt")),
        created=_text(element, "CreDtTm"),
        opening=balances.get(_OPENING) or balances.get(_PREVIOUS),
        closing=balances.get(_CLOSING),
        entries=entries,
        line=int(element.sourceline or 0),
    )


def _entry(element: Any, *, name: str) -> RawEntry:
    amount, currency = _amount(element)
    sign, line = _text(element, "CdtDbtInd"), int(element.sourceline or 0)
    state = _text(element, "Sts/Cd", "Sts")
    if sign not in {_CREDIT, _DEBIT} or not amount or not state:
        refuse(name, f"line {line}: an entry has no amount, no CdtDbtInd or no state (Sts)")
    booked = _day(_text(element, "BookgDt/Dt", "BookgDt/DtTm"))
    entry = RawEntry(
        line=line,
        amount=amount,
        currency=currency,
        credit=sign == _CREDIT,
        booked_on=booked,
        value_on=_day(_text(element, "ValDt/Dt", "ValDt/DtTm")) or booked,
        reversal=_text(element, "RvslInd") in {"true", "1"},
        entry_no=_text(element, "NtryRef", "AcctSvcrRef"),
        booked=state == _BOOKED,
        reference=_text(element, "AcctSvcrRef"),
        text=_text(element, "AddtlNtryInf")[:TEXT_CHARACTERS_MAX],
        charges=tuple(_charges(element)),
    )
    inner = [
        payment
        for details in element.iterchildren("{*}NtryDtls")
        for payment in details.iterchildren("{*}TxDtls")
    ]
    if len(inner) > DETAILS_MAX:
        refuse(name, f"line {line}: an entry has more than {DETAILS_MAX} payments in it")
    if len(inner) == 1:
        _take_words(entry, inner[0])
    elif inner:
        entry.details = tuple(_detail(detail, of=entry) for detail in inner)
    return entry


def _detail(element: Any, *, of: RawEntry) -> RawEntry:
    """Return one payment of a batched entry; its amount is "" if the file states none."""
    amount, currency = _amount(element)
    if currency != of.currency:
        # The instructed amount may be in another currency; the account's own is in AmtDtls.
        for tag in ("TxAmt", "CntrValAmt"):
            moved = _amount(element, f"AmtDtls/{tag}/Amt")
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
    """Add counterparty, remittance text, references and charges of a payment to its entry."""
    entry.end_to_end_id = _text(element, "Refs/EndToEndId")[:TEXT_CHARACTERS_MAX]
    others = [
        ref.text.strip()
        for ref in _children(element, "Refs")
        if local_name(ref.tag) != "EndToEndId" and ref.text
    ]
    entry.reference = " ".join(filter(None, (entry.reference, *others)))[:TEXT_CHARACTERS_MAX]
    # The counterparty is on the opposite side; a reversal may swap the sides, so both are read.
    sides = ("Dbtr", "UltmtDbtr") if entry.credit else ("Cdtr", "UltmtCdtr")
    for side in ("Dbtr", "UltmtDbtr", "Cdtr", "UltmtCdtr") if entry.reversal else sides:
        party = f"RltdPties/{side}"
        account = _text(element, f"{party}Acct/Id/IBAN").replace(" ", "")
        named = (entry.counterparty, _text(element, f"{party}/Nm", f"{party}/Pty/Nm"), account)
        entry.counterparty = " ".join(filter(None, named))[:TEXT_CHARACTERS_MAX]
    remittance = [
        glued([own.text or "" for own in _children(element, "RmtInf", "Ustrd")], full=FULL_LINE)
    ]
    for structured in _children(element, "RmtInf", "Strd"):
        remittance += [part.strip() for part in structured.itertext() if part.strip()]
    every = (*remittance, _text(element, "AddtlTxInf"), entry.text)
    entry.text = "\n".join(filter(None, every))[:TEXT_CHARACTERS_MAX]
    entry.charges = entry.charges or tuple(_charges(element))
    instructed = _amount(element, "AmtDtls/InstdAmt/Amt")
    if any(instructed):
        entry.instructed_amount, entry.instructed_currency = instructed


def _charges(element: Any) -> Iterator[tuple[str, str, bool]]:
    for charges in element.iterchildren("{*}Chrgs"):
        for record in (*charges.iterchildren("{*}Rcrd"), charges):
            amount, currency = _amount(record)
            if amount:
                yield amount, currency, _text(record, "CdtDbtInd") == _CREDIT


def _amount(element: Any, path: str = "Amt") -> tuple[str, str]:
    """Return amount and currency as written; "" for what is missing."""
    amount = _at(element, path)
    if amount is None:
        return "", ""
    return (amount.text or "").strip(), str(amount.get("Ccy", ""))


def _day(text: str) -> str:
    known = _DAY.match(text)
    return known[0] if known else ""


def _text(element: Any, *paths: str) -> str:
    """Return the text of the first of these paths that is not blank, or ""."""
    for path in paths:
        found = _at(element, path)
        if found is not None and (text := (found.text or "").strip()):
            return text
    return ""


def _children(element: Any, above: str, tag: str = "*") -> Iterator[Any]:
    """Iterate over the children called `tag` of the first child called `above`."""
    found = next(element.iterchildren(f"{{*}}{above}"), None)
    return iter(()) if found is None else found.iterchildren(f"{{*}}{tag}")


def _at(element: Any, path: str) -> Any:
    """Return the first element at a path in any namespace, or None."""
    for tag in _tags(path):
        element = next(element.iterchildren(tag), None)
        if element is None:
            return None
    return element


@cache
def _tags(path: str) -> tuple[str, ...]:
    return tuple(f"{{*}}{tag}" for tag in path.split("/"))
