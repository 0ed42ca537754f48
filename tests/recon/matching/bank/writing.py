"""The statements of a truth as banks write them: camt.053, MT940, CSV; nothing of the engine."""

import random
from datetime import date, timedelta
from xml.sax.saxutils import escape

from tests.recon.matching.bank.truth import IBAN, Entry, Truth, days, major, statement_number

OPENING = 123_456


def statements(truth: Truth) -> list[tuple[int, date, int, list[Entry], int]]:
    """Number, day, opening, entries and closing of each day."""
    found, balance = [], OPENING
    for day in days():
        mine = [one for one in truth.entries if one.day == day]
        closing = balance + sum(one.amount for one in mine)
        found.append((statement_number(day), day, balance, mine, closing))
        balance = closing
    return found


def _mark(amount: int) -> str:
    return "DBIT" if amount < 0 else "CRDT"


def _plain(amount: int) -> str:
    return major(abs(amount))


def _balance(kind: str, amount: int, day: date) -> str:
    return (
        f"<Bal><Tp><CdOrPrtry><Cd>{kind}</Cd></CdOrPrtry></Tp><Amt Ccy='EUR'>{_plain(amount)}</Amt>"
        f"<CdtDbtInd>{_mark(amount)}</CdtDbtInd><Dt><Dt>{day}</Dt></Dt></Bal>"
    )


def _camt_entry(one: Entry) -> str:
    side = "Cdtr" if one.amount < 0 else "Dbtr"
    ordered = ""
    if one.ordered:
        code, amount = one.ordered
        ordered = (
            f"<AmtDtls><InstdAmt><Amt Ccy='{code}'>{_plain(amount)}</Amt></InstdAmt></AmtDtls>"
        )
    taken = ""
    if one.charges:
        taken = (
            f"<Chrgs><Rcrd><Amt Ccy='EUR'>{_plain(one.charges)}</Amt>"
            f"<CdtDbtInd>{_mark(one.charges)}</CdtDbtInd></Rcrd></Chrgs>"
        )
    return (
        f"<Ntry><NtryRef>{one.number}</NtryRef><Amt Ccy='EUR'>{_plain(one.amount)}</Amt>"
        f"<CdtDbtInd>{_mark(one.amount)}</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>"
        f"<BookgDt><Dt>{one.day}</Dt></BookgDt><ValDt><Dt>{one.day}</Dt></ValDt>{taken}"
        f"<NtryDtls><TxDtls>{ordered}<RltdPties><{side}><Pty><Nm>{escape(one.party)}</Nm></Pty>"
        f"</{side}></RltdPties><RmtInf><Ustrd>{escape(one.text)}</Ustrd></RmtInf></TxDtls></NtryDtls>"
        "</Ntry>"
    )


def as_camt(truth: Truth, *, chance: random.Random) -> dict[str, str]:
    """One document a day, or of a few days."""
    texts = []
    for number, day, opening, entries, closing in statements(truth):
        mixed = chance.sample(entries, k=len(entries))
        texts.append(
            f"<Stmt><Id>S{number}</Id><ElctrncSeqNb>{number}</ElctrncSeqNb>"
            f"<FrToDt><FrDtTm>{day}T00:00:00</FrDtTm><ToDtTm>{day}T23:59:59</ToDtTm></FrToDt>"
            f"<Acct><Id><IBAN>{IBAN}</IBAN></Id><Ccy>EUR</Ccy></Acct>"
            f"{_balance('OPBD', opening, day)}{_balance('CLBD', closing, day)}"
            f"{''.join(map(_camt_entry, mixed))}</Stmt>"
        )
    files, head = {}, "<Document xmlns='urn:iso:std:iso:20022:tech:xsd:camt.053.001.08'>"
    while texts:
        part = [texts.pop(0) for _ in range(min(len(texts), chance.randrange(1, 5)))]
        body = f"{head}<BkToCstmrStmt>{''.join(part)}</BkToCstmrStmt></Document>"
        files[f"c{len(files)}.xml"] = body
    return files


def _swift(amount: int) -> str:
    return _plain(amount).replace(".", ",")


def as_mt940(truth: Truth, *, chance: random.Random) -> dict[str, str]:
    """All days in one file, texts in fields of 27 characters."""
    lines = []
    for number, day, opening, entries, closing in statements(truth):
        before = day - timedelta(1)
        one, two = ("D" if amount < 0 else "C" for amount in (opening, closing))
        lines += [":20:STATEMENT", ":25:37040044/0532013000EUR", f":28C:{number}/1"]
        lines.append(f":60F:{one}{before:%y%m%d}EUR{_swift(opening)}")
        for entry in chance.sample(entries, k=len(entries)):
            mark = "D" if entry.amount < 0 else "C"
            lines.append(
                f":61:{day:%y%m%d}{day:%m%d}{mark}{_swift(entry.amount)}NTRFNONREF//{entry.number}"
            )
            cut = [entry.text[at : at + 27] for at in range(0, len(entry.text), 27)]
            fields = "".join(f"?{20 + at}{piece}" for at, piece in enumerate(cut))
            lines.append(f":86:166?00TRANSFER{fields}?32{entry.party}")
        lines += [f":62F:{two}{day:%y%m%d}EUR{_swift(closing)}", "-"]
    return {"all.sta": "\r\n".join(lines) + "\r\n"}


COLUMNS = (
    "iban,statement_no,from_date,to_date,opening,closing,entry_no,booked_on,value_on,currency,"
    "amount,counterparty,text,charges,instructed_currency,instructed_amount"
)


def as_csv(truth: Truth, *, chance: random.Random) -> dict[str, str]:
    """One row an entry, in any order."""
    rows = []
    for number, day, opening, entries, closing in statements(truth):
        head = f"{IBAN},{number},{day},{day},{major(opening)},{major(closing)}"
        if not entries:
            rows.append(f"{head},,,,EUR,,,,,,")
        for one in entries:
            code, amount = one.ordered or ("", 0)
            ordered = f"{code},{major(amount) if code else ''}"
            taken = major(one.charges) if one.charges else ""
            rows.append(
                f'{head},{one.number},{one.day},{one.day},EUR,{major(one.amount)},"{one.party}",'
                f'"{one.text}",{taken},{ordered}'
            )
    chance.shuffle(rows)
    return {"all.csv": "\n".join([COLUMNS, *rows]) + "\n"}
