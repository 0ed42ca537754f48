"""Bank documents for tests, written as banks write them."""

IBAN = "DE89370400440532013000"


def camt(body: str, *, form: str = "053", version: str = "02", container: str = "Stmt") -> str:
    """A document of one statement (or report, or notification) with this body."""
    message = {"052": "BkToCstmrAcctRpt", "053": "BkToCstmrStmt", "054": "BkToCstmrDbtCdtNtfctn"}
    space = f"urn:iso:std:iso:20022:tech:xsd:camt.{form}.001.{version}"
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><Document xmlns="{space}"><{message[form]}>'
        f"<GrpHdr><MsgId>M1</MsgId></GrpHdr><{container}>{body}</{container}>"
        f"</{message[form]}></Document>"
    )


def head(number: str = "7", *, created: str = "2026-11-20T20:00:00") -> str:
    """Number, day and account of a statement."""
    return (
        f"<Id>S{number}</Id><ElctrncSeqNb>{number}</ElctrncSeqNb><CreDtTm>{created}</CreDtTm>"
        "<FrToDt><FrDtTm>2026-11-20T00:00:00</FrDtTm><ToDtTm>2026-11-20T23:59:59</ToDtTm></FrToDt>"
        f"<Acct><Id><IBAN>{IBAN}</IBAN></Id><Ccy>EUR</Ccy></Acct>"
    )


def balance(kind: str, amount: str, *, mark: str = "CRDT", day: str = "2026-11-20") -> str:
    """One balance."""
    return (
        f"<Bal><Tp><CdOrPrtry><Cd>{kind}</Cd></CdOrPrtry></Tp>"
        f'<Amt Ccy="EUR">{amount}</Amt><CdtDbtInd>{mark}</CdtDbtInd><Dt><Dt>{day}</Dt></Dt></Bal>'
    )


def entry(
    amount: str,
    *,
    mark: str = "CRDT",
    ref: str = "E1",
    state: str = "<Sts>BOOK</Sts>",
    inner: str = "",
    reversal: str = "",
) -> str:
    """One entry."""
    return (
        f'<Ntry><NtryRef>{ref}</NtryRef><Amt Ccy="EUR">{amount}</Amt><CdtDbtInd>{mark}</CdtDbtInd>'
        f"{reversal}{state}<BookgDt><Dt>2026-11-20</Dt></BookgDt>"
        f"<ValDt><Dt>2026-11-20</Dt></ValDt>{inner}</Ntry>"
    )


def payment(amount: str, *, reference: str, party: str = "<Nm>Gateway Ltd</Nm>") -> str:
    """One payment in an entry, as versions from 04 on write it."""
    return (
        f"<TxDtls><Refs><EndToEndId>{reference}</EndToEndId></Refs>"
        f'<Amt Ccy="EUR">{amount}</Amt><CdtDbtInd>CRDT</CdtDbtInd>'
        f"<RltdPties><Dbtr>{party}</Dbtr></RltdPties></TxDtls>"
    )


ROUTINE = head() + balance("OPBD", "100.00") + balance("CLBD", "350.50")
MT940 = """:20:STMT
:25:37040044/532013000
:28C:00007/001
:60F:C261119EUR100,00
:61:2611201120CR250,50NTRFNONREF//E1
:86:166?00GUTSCHRIFT?20EREF+BATCH-2026-11?21SVWZ+Payout of the week?32Gateway L
td?31GB29NWBK60161331926819
:62F:C261120EUR350,5
-
"""
CSV = (
    "iban,statement_no,from_date,to_date,opening,closing,entry_no,booked_on,value_on,currency,"
    "amount,end_to_end_id,reference,counterparty,text,status,charges\n"
)
