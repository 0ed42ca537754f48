import tempfile
from pathlib import Path

import pytest

from recon.config.rules import Rules
from recon.files.formats.camt import camt_statements
from recon.files.formats.named_bytes import FileBytes
from recon.files.reader import bank_file
from recon.model.errors import SourceUnreadableError
from tests.recon.files.bank_documents import IBAN, ROUTINE, balance, camt, entry, head, payment


def read(text):
    return camt_statements(FileBytes(Path("bank.xml"), text.encode(), ""))


@pytest.mark.parametrize("version", [f"{number:02}" for number in range(2, 15)])
def test_every_version_of_the_statement_is_read(version):
    new = int(version) >= 8
    state = "<Sts><Cd>BOOK</Cd></Sts>" if new else "<Sts>BOOK</Sts>"
    party = "<Pty><Nm>Gateway Ltd</Nm></Pty>" if new else "<Nm>Gateway Ltd</Nm>"
    inner = f"<NtryDtls>{payment('250.50', reference='BATCH-1', party=party)}</NtryDtls>"
    (statement,) = read(camt(ROUTINE + entry("250.50", state=state, inner=inner), version=version))
    (found,) = statement.entries
    assert (statement.account, statement.number, statement.to_day) == (IBAN, "7", "2026-11-20")
    assert (found.amount, found.credit, found.booked) == ("250.50", True, True)
    assert (found.end_to_end_id, found.counterparty) == ("BATCH-1", "Gateway Ltd")


def test_what_is_no_statement_is_refused():
    for text in (
        camt(ROUTINE, version="15"),
        camt(ROUTINE).replace("camt.053.001.02", "pain.001.001.03"),
        "<Document/>",
        camt("", container="Rpt"),
        camt(ROUTINE).replace("<Document", "<!DOCTYPE D [<!ENTITY a 'b'>]><Document"),
        camt(ROUTINE)[:-20],
    ):
        with pytest.raises(SourceUnreadableError, match=r"bank\.xml "):
            read(text)


DEEP = "<X>" * 30 + "</X>" * 30


@pytest.mark.parametrize(
    "text",
    [
        camt(ROUTINE + DEEP),
        camt(ROUTINE + entry("1.00", inner=DEEP)),
        camt(ROUTINE).replace("</Document>", f"<X><X>{DEEP}</X></X></Document>"),
    ],
    ids=["statement", "entry", "document"],
)
def test_nesting_is_bounded_wherever_it_stands(text):
    with pytest.raises(SourceUnreadableError, match="nested deeper than 32 elements"):
        read(text)


@pytest.mark.parametrize("lost", ["CdtDbtInd", "Sts", "Amt"])
def test_an_entry_without_amount_mark_or_state_refuses_the_file(lost):
    whole = entry("1.00").replace(f"<{lost}", "<Other").replace(f"</{lost}>", "</Other>")
    with pytest.raises(SourceUnreadableError, match="line 1: an entry has no amount"):
        read(camt(ROUTINE + whole))


def test_the_other_side_of_a_debit_is_its_creditor():
    parties = (
        "<NtryDtls><TxDtls><RltdPties><Dbtr><Nm>We</Nm></Dbtr><Cdtr><Nm>Gateway Ltd</Nm></Cdtr>"
        "<CdtrAcct><Id><IBAN>GB29 NWBK</IBAN></Id></CdtrAcct></RltdPties></TxDtls></NtryDtls>"
    )
    turned = "<RvslInd>true</RvslInd>"
    (statement,) = read(
        camt(
            ROUTINE
            + entry("1.00", mark="DBIT", inner=parties)
            + entry("1.00", mark="DBIT", inner=parties, reversal=turned)
        )
    )
    assert [one.counterparty for one in statement.entries] == [
        "Gateway Ltd GB29NWBK",
        "We Gateway Ltd GB29NWBK",
    ]


def typed(text):
    """The entries of a document, proven."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "b.xml"
        path.write_text(text)
        with bank_file(path, rules=Rules()) as read:
            return read.source


def document(entries):
    """One statement of entries of 1.00 that adds up."""
    closing = balance("OPBD", "0.00") + balance("CLBD", f"{len(entries)}.00")
    return camt(head() + closing + "".join(entries))


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        (">E90<", ">E90\x01<", "well-formed"),
        (">E90<", ">E90&none;<", "well-formed"),
        ("<NtryRef>E90</NtryRef>", "<NtryRef>E90</NtryRe>", "well-formed"),
        ('<Amt Ccy="EUR">1.00</Amt>', '<Amt Ccy="EUR" Ccy="EUR">1.00</Amt>', "well-formed"),
        ("1.00</Amt>", "1.0x</Amt>", "is no amount"),
        ("CRDT", "WHAT", "an entry has no amount, no CdtDbtInd or no state"),
        ('Ccy="EUR">1.00', 'Ccy="USD">1.00', "line 91 is an entry in USD"),
        ("<Dt>2026-11-20</Dt></BookgDt>", "<Dt>soon</Dt></BookgDt>", "without a day of booking"),
        ("<Dt>2026-11-20</Dt></BookgDt>", "<Dt>2026-11-31</Dt></BookgDt>", "which is no date"),
        (">E90<", f">{'E' * 65}<", "more than 64"),
    ],
)
def test_what_is_wrong_with_one_entry_among_many_is_said(old, new, match):
    texts = [entry("1.00", ref=f"E{at}") for at in range(100)]
    texts[90] = texts[90].replace(old, new, 1)
    text = document(texts).replace("\n", "").replace("<Ntry>", "\n<Ntry>")
    text = text.removeprefix("\n").replace("\n", "", 1)
    with pytest.raises(SourceUnreadableError, match=match):
        typed(text)


def test_a_value_date_that_is_no_day_is_that_of_booking():
    """The bank booked it on that day at the latest."""
    texts = [entry("1.00", ref=f"E{at}") for at in range(3)]
    texts[-1] = texts[-1].replace("<ValDt><Dt>2026-11-20", "<ValDt><Dt>11-20")
    assert typed(document(texts)).entries["value_on"].tolist() == ["2026-11-20"] * 3


def test_entries_that_stand_below_another_one_are_none():
    inside = entry("5.00", ref="INNER")
    outer = entry("1.00", ref="A", inner=f"<X>{inside}{inside}</X>")
    text = document([entry("1.00", ref="B"), outer, entry("1.00", ref="C")])
    assert typed(text).entries["entry_no"].tolist() == ["B", "A", "C"]
    words = f"<NtryDtls><TxDtls><RmtInf><Strd>{inside}</Strd></RmtInf></TxDtls></NtryDtls>"
    assert "INNER" in typed(document([entry("1.00", ref="A", inner=words)])).entries["text"][0]
