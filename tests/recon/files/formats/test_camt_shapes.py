"""Entries that are cut out of a document say what the tree of the same document says."""

import random
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

from recon.config.rules import Rules
from recon.files.formats.bank_records import RawEntry
from recon.files.formats.camt import camt_statements
from recon.files.formats.camt_shapes import FEW_ROWS, RUN, PlainEntries, is_plain
from recon.files.formats.named_bytes import FileBytes, FilePieces, pieces_of
from recon.files.kinds.bank_file import bank_file_of
from recon.matching.frames.bank_sources import BankSource
from recon.model.errors import SourceUnreadableError
from tests.recon.files.bank_documents import balance, camt, entry, head, payment
from tests.recon.matching.bank.truth import truth_of
from tests.recon.matching.bank.writing import as_camt

AS_TREE = "<!-- read as a tree -->"
"""Behind a document: no entry is cut out of one that has a comment."""
WORDS = (
    *("Invoice 7", "Müller & Söhne".replace("&", "&amp;"), "Straße", "Café", " blank before"),
    *("blank behind ", "\u00a0", "no\u00a0break\u00a0", "x" * 139, "y" * 140, "z" * 200, "\n"),
    *("two\nlines", "", "&#65;", "1003-01-01", "\ue0001\ue001", "日本", "a]b", "a>b"),
)


def read(text: str) -> BankSource:
    """What its reader gives."""
    return bank_file_of(
        pieces_of(FileBytes(Path("b.xml"), text.encode(), "0")), rules=Rules()
    ).source


def refusal(text: str) -> str:
    """Why it is refused."""
    with pytest.raises(SourceUnreadableError) as caught:
        read(text)
    return str(caught.value)


def details(word: str, other: str, *, side: str, when: str) -> str:
    """The payment of one entry."""
    blank = " " * (len(word) % 2)
    return (
        f"<NtryDtls><TxDtls><Refs><EndToEndId>{word}</EndToEndId><TxId>{other}</TxId></Refs>"
        f"<RltdPties><{side}><Nm>{other}</Nm></{side}><{side}Acct><Id><IBAN>DE1{blank}0</IBAN>"
        f"</Id></{side}Acct></RltdPties><RmtInf><Ustrd>{word}</Ustrd><Ustrd>{other}</Ustrd><Strd>"
        f"<CdtrRefInf><Ref>{word}</Ref></CdtrRefInf><Dt>{when}</Dt></Strd></RmtInf>"
        f"<RltdDts><TxDtTm>{when}T10:00:00</TxDtTm></RltdDts></TxDtls></NtryDtls>"
    )


def entries_of(chance: random.Random, *, size: int) -> list[str]:
    """Entries of a few shapes with all kinds of words, odd ones among them; each of 1.00."""
    found = []
    for number in range(size):
        word, other = chance.choice(WORDS), chance.choice(WORDS)
        inner = details(word, other, side=chance.choice(("Dbtr", "Cdtr")), when="2026-11-19")
        if chance.random() < 0.1:
            inner = f"<NtryDtls>{payment('1.00', reference=f'P{number}')}</NtryDtls>"
        if chance.random() < 0.1:
            inner = "<Chrgs><Amt Ccy='EUR'>0.10</Amt></Chrgs>" + inner
        ref = chance.choice((f"E{number}", "", "SAME"))
        state = chance.choice(("<Sts>BOOK</Sts>", "<Sts><Cd>BOOK</Cd></Sts>", "<Sts>PDNG</Sts>"))
        more = chance.choice(("", "<AcctSvcrRef>A 1</AcctSvcrRef>", "<BkTxCd><Cd>X</Cd></BkTxCd>"))
        text = entry("1.00", ref=ref, state=state, inner=more + inner)
        found.append(text.replace("><", ">\n<") if chance.random() < 0.2 else text)
    return found


def document(entries: Sequence[str]) -> str:
    """One statement that adds up."""
    booked = sum("PDNG" not in one for one in entries)
    balances = balance("OPBD", "0.00") + balance("CLBD", f"{booked}.00")
    return camt(head() + balances + "\n".join(entries))


@pytest.mark.parametrize("seed", range(6))
def test_cut_or_as_a_tree_a_document_says_the_same(seed: int) -> None:
    """Every cell of every entry, in their order, whatever stands in the texts."""
    chance = random.Random(seed)
    text = document(entries_of(chance, size=(3, 40, 500)[seed % 3]))
    quick, tree = read(text), read(text + AS_TREE)
    pd.testing.assert_frame_equal(quick.entries, tree.entries)
    assert quick.statements == tree.statements
    assert quick.notes == tree.notes


def test_columns_of_several_shapes_stand_in_the_order_of_the_document() -> None:
    """Credits and debits in turns, with blanks and other letters at the ends of their texts."""
    words = ("Invoice", "behind ", "no\u00a0break\u00a0", "Café", "Straße", "à", "Übersee", "日本")
    texts = []
    for number in range(4 * FEW_ROWS):
        inner = details(words[number % len(words)], f"R{number} ", side="Dbtr", when="2026-11-19")
        ref, day = f"E{number}", f"2026-11-{number % 9 + 11}"
        mark = "DBIT" if number % 3 == 0 else "CRDT"
        text = entry("1.00", mark=mark, ref=ref, inner=inner)
        texts.append(text.replace("<Dt>2026-11-20</Dt></B", f"<Dt>{day}</Dt></B"))
    debits = sum("DBIT" in text for text in texts)
    closing = len(texts) - 2 * debits
    text = camt(
        head() + balance("OPBD", "0.00") + balance("CLBD", f"{closing}.00") + "".join(texts)
    )
    pd.testing.assert_frame_equal(read(text).entries, read(text + AS_TREE).entries)
    calm = text.replace("behind ", "behind").replace("\u00a0", "")
    calm = calm.replace("日本", "Japan").replace("DE1 0", "DE10").replace(" <", "<")
    (statement,) = camt_statements(pieces_of(FileBytes(Path("b.xml"), calm.encode(), "0")))
    assert len(statement.entries) < FEW_ROWS
    pd.testing.assert_frame_equal(read(calm).entries, read(calm + AS_TREE).entries)


@pytest.mark.parametrize("piece_bytes", [1, 7, 64, 1_000])
def test_a_document_says_the_same_in_pieces_of_any_size(piece_bytes: int) -> None:
    """Wherever a piece ends: in a tag, in a letter of two bytes, in an entry; lines too."""
    text = document(entries_of(random.Random(piece_bytes), size=60))
    file = FileBytes(Path("b.xml"), text.encode(), "0")
    parts = bank_file_of(pieces_of(file, piece_bytes=piece_bytes), rules=Rules()).source
    pd.testing.assert_frame_equal(parts.entries, read(text).entries)
    assert parts.statements == read(text).statements
    lost = text.replace("</Stmt>", "\n" + entry("1.00").replace("CRDT", "WHAT") + "</Stmt>")
    with pytest.raises(SourceUnreadableError) as refused:
        bank_file_of(
            pieces_of(FileBytes(Path("b.xml"), lost.encode(), "0"), piece_bytes=piece_bytes),
            rules=Rules(),
        )
    assert str(refused.value) == refusal(lost)
    assert f"line {lost.count(chr(10)) + 1}: an entry has no amount" in str(refused.value)


@pytest.mark.parametrize("size", [3, 3 * FEW_ROWS])
def test_a_value_date_that_is_no_day_is_that_of_booking(size: int) -> None:
    """Whether the entry is cut out by itself, with many others, or read as a tree."""
    texts = [entry("1.00", ref=f"E{at}") for at in range(size)]
    texts[-1] = texts[-1].replace("<ValDt><Dt>2026-11-20", "<ValDt><Dt>11-20")
    text = document(texts)
    assert read(text).entries["value_on"].tolist() == ["2026-11-20"] * size
    pd.testing.assert_frame_equal(read(text).entries, read(text + AS_TREE).entries)


def test_an_entry_in_a_later_piece_has_the_line_that_it_has_in_the_document() -> None:
    """Columns know where each entry begins."""
    texts = [entry("1.00", ref=f"E{at}") for at in range(4 * FEW_ROWS)]
    texts[-1] = texts[-1].replace('Ccy="EUR"', 'Ccy="USD"')
    text = document(texts)
    size = len("".join(texts)) // 3
    with pytest.raises(SourceUnreadableError) as refused:
        bank_file_of(
            pieces_of(FileBytes(Path("b.xml"), text.encode(), "0"), piece_bytes=size),
            rules=Rules(),
        )
    assert f"line {4 * FEW_ROWS} is an entry in USD" in str(refused.value)
    assert str(refused.value) == refusal(text) == refusal(text + AS_TREE)


@pytest.mark.parametrize("word", ["<!-- c -->", "<?pi x?>", RUN, "\ufffe"])
def test_what_is_not_plain_is_seen_wherever_a_piece_ends(word: str) -> None:
    """A comment, an instruction, a name of ours and what is no XML."""
    content = document([entry("1.00")]).replace("</Document>", f"{word}</Document>").encode()
    for piece_bytes in range(1, 40):
        assert not is_plain(pieces_of(FileBytes(Path("b"), content, ""), piece_bytes=piece_bytes))
    plain = document([entry("1.00")]).encode()
    assert is_plain(pieces_of(FileBytes(Path("b"), plain, ""), piece_bytes=5))
    assert not is_plain(pieces_of(FileBytes(Path("b"), plain + b"\xc3", ""), piece_bytes=5))


def test_a_long_document_is_never_in_memory_as_a_whole() -> None:
    """What stays of it are its entries as columns."""
    one = entry("1.00", inner=details("word", "other", side="Dbtr", when="2026-11-19"))
    head_of, tail = document([]).split("</Stmt>")
    piece = (one * 100).encode()
    parts = [head_of.encode(), *[piece] * 200, f"</Stmt>{tail}".encode()]
    size = sum(map(len, parts))
    file = FilePieces(Path("b.xml"), size, "0", lambda: iter(parts))
    tracemalloc.start()
    try:
        (statement,) = camt_statements(file)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(1 if isinstance(e, RawEntry) else len(e) for e in statement.entries) == 20_000
    assert size > 10_000_000
    assert peak < size // 4


@pytest.mark.parametrize("seed", range(4))
def test_months_of_a_bank_are_the_same_cut_or_as_a_tree(seed: int) -> None:
    """As banks write them."""
    for text in as_camt(truth_of(seed), chance=random.Random(seed)).values():
        pd.testing.assert_frame_equal(read(text).entries, read(text + AS_TREE).entries)


def test_plain_entries_are_cut_out_and_their_lines_stay() -> None:
    """All entries of one shape leave one element; what stands behind has the line that it had."""
    texts = [entry("1.00", ref=f"E{at}") for at in range(3 * FEW_ROWS)]
    content = document(texts).encode()
    asked = []

    def reading(element: object) -> object:
        asked.append(element)
        raise SourceUnreadableError

    cut = PlainEntries(read=reading, day_of=str)  # type: ignore[arg-type] # none
    assert b"".join(cut.rest_of(iter([content]))) == content
    assert asked
    lost = entry("1.00", ref="LAST").replace("CRDT", "WHAT")
    bad = document([*texts, lost])
    assert f"line {3 * FEW_ROWS + 1}: an entry has no amount" in refusal(bad)
    assert refusal(bad) == refusal(bad + AS_TREE)
    (statement,) = camt_statements(pieces_of(FileBytes(Path("b.xml"), content, "0")))
    assert len(statement.entries) < FEW_ROWS


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        (">E90<", ">E90\x01<", "well-formed"),
        (">E90<", ">E90&none;<", "well-formed"),
        (">E90<", ">E]]>90<", "well-formed"),
        (">E90<", ">E\ufffe90<", "well-formed"),
        ("<NtryRef>E90</NtryRef>", "<NtryRef>E90</NtryRe>", "well-formed"),
        ('<Amt Ccy="EUR">1.00</Amt>', '<Amt Ccy="EUR" Ccy="EUR">1.00</Amt>', "well-formed"),
        ("1.00</Amt>", "1.0x</Amt>", "is no amount"),
        (
            'Ccy="EUR">1.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>B',
            'Ccy="USD">1.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>B',
            "line 1 is an entry in USD",
        ),
        ("<Dt>2026-11-20</Dt></BookgDt>", "<Dt>soon</Dt></BookgDt>", "without a day of booking"),
        ("<Dt>2026-11-20</Dt></BookgDt>", "<Dt>2026-11-31</Dt></BookgDt>", "which is no date"),
        (">E90<", f">{'E' * 65}<", "more than 64"),
    ],
)
def test_what_is_wrong_with_one_entry_among_many_is_said(old: str, new: str, match: str) -> None:
    """By the same sentence as of a tree."""
    texts = [entry("1.00", ref=f"E{at}") for at in range(100)]
    texts[90] = texts[90].replace(old, new, 1)
    text = document(texts).replace("\n", "")
    assert match in refusal(text)
    assert refusal(text) == refusal(text + AS_TREE)


def test_entries_that_stand_elsewhere_are_read_as_a_tree() -> None:
    """Below another entry they are none; an element of ours in a document is none of ours."""
    inside = entry("5.00", ref="INNER")
    outer = entry("1.00", ref="A", inner=f"<X>{inside}{inside}</X>")
    text = document([entry("1.00", ref="B"), outer, entry("1.00", ref="C")])
    pd.testing.assert_frame_equal(read(text).entries, read(text + AS_TREE).entries)
    assert read(text).entries["entry_no"].tolist() == ["B", "A", "C"]
    words = f"<NtryDtls><TxDtls><RmtInf><Strd>{inside}{inside}</Strd></RmtInf></TxDtls></NtryDtls>"
    text = document([entry("1.00", ref="A", inner=words)])
    assert "INNER" in read(text).entries["text"][0]
    pd.testing.assert_frame_equal(read(text).entries, read(text + AS_TREE).entries)
    forged = document([entry("1.00", ref=f"E{at}") for at in range(3)])
    forged = forged.replace("</Stmt>", f'<Ntry {RUN}="0"/></Stmt>')
    assert "an entry has no amount" in refusal(forged)


def test_nesting_is_bounded_in_entries_that_are_cut_out() -> None:
    """Of two equal ones that are too deep the second is no less so."""
    deep = entry("1.00", ref="E", inner="<X>" * 29 + "</X>" * 29)
    edge = entry("1.00", ref="E", inner="<X>" * 28 + "</X>" * 28)
    assert len(read(document([edge, edge])).entries) == 2
    assert "nested deeper than 32 elements" in refusal(document([deep, deep]))
