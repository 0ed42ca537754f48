import pytest

from recon.config.rules import Rules
from recon.files.reader import bank_file
from recon.model.errors import SourceUnreadableError
from tests.recon.files.bank_documents import (
    CSV,
    IBAN,
    MT940,
    ROUTINE,
    balance,
    camt,
    entry,
    head,
    payment,
)

RULES = Rules.of(
    {"bank": {"main": {"iban": IBAN, "currency": "EUR", "accounts": ["M/A"]}}}, source="test"
)
ROW = f"{IBAN},7,2026-11-20,2026-11-20,100.00,350.50,"


def read(folder, text, *, name="bank.xml", **how):
    path = folder / name
    path.write_text(text)
    with bank_file(path, rules=RULES, **how) as read:
        return read.source


@pytest.mark.parametrize(("closing", "amount"), [("350.00", 24950), ("350.10", 25010)])
def test_reversals_are_read_both_ways_and_the_balances_decide(tmp_path, closing, amount):
    """Some banks turn the mark of what is reversed, others leave it; a third way is refused."""
    negated = "<RvslInd>true</RvslInd>"
    plain = entry("250.05", ref="E1")
    body = plain + entry("0.05", ref="E2", mark="DBIT", reversal=negated)
    text = camt(head() + balance("OPBD", "100.00") + balance("CLBD", closing) + body)
    found = read(tmp_path, text) if closing == "350.00" else None
    if found is None:
        found = read(tmp_path, text)
        assert "count the other way round" in found.notes[0]
    assert sum(found.entries["amount"]) == int(closing.replace(".", "")) - 10000
    assert amount
    with pytest.raises(SourceUnreadableError, match="apart"):
        read(tmp_path, text.replace(closing, "350.03"))


def test_details_that_do_not_come_to_their_entry_are_told_and_dropped(tmp_path):
    both = payment("200.00", reference="B1") + payment("50.50", reference="B2")
    whole = read(tmp_path, camt(ROUTINE + entry("250.50", inner=f"<NtryDtls>{both}</NtryDtls>")))
    assert whole.entries["part"].tolist() == [0, 1, 2]
    assert whole.entries["amount"].tolist() == [25050, 20000, 5050]
    less = both.replace("50.50", "50.40")
    part = read(tmp_path, camt(ROUTINE + entry("250.50", inner=f"<NtryDtls>{less}</NtryDtls>")))
    assert part.entries["amount"].tolist() == [25050]
    assert "do not come to it" in part.notes[0]


def test_a_pending_entry_never_counts(tmp_path):
    day = "<BookgDt><Dt>2026-11-20</Dt></BookgDt>"
    pending = entry("9.00", state="<Sts>PDNG</Sts>").replace(day, "")
    found = read(tmp_path, camt(ROUTINE + entry("250.50") + pending))
    assert found.entries["status"].tolist() == ["booked", "pending"]
    assert found.statements[0].booked == 25050


@pytest.mark.parametrize(
    ("numbers", "statement_no"),
    [
        ("<ElctrncSeqNb>7</ElctrncSeqNb><LglSeqNb>250</LglSeqNb>", "7"),
        ("<LglSeqNb>250</LglSeqNb>", "250"),
        ("", "S7"),
    ],
)
def test_the_number_of_a_statement_is_the_first_that_it_has(numbers, statement_no, tmp_path):
    """The electronic one, else the legal one, else its identification."""
    text = camt(ROUTINE + entry("250.50"))
    own = "<ElctrncSeqNb>7</ElctrncSeqNb>"
    assert text.count(own) == 1
    found = read(tmp_path, text.replace(own, numbers))
    assert [one.statement_no for one in found.statements] == [statement_no]


def test_debit_balances_pages_and_days_without_entries(tmp_path):
    debit = head() + balance("OPBD", "10.00") + balance("CLBD", "5.00", mark="DBIT")
    found = read(tmp_path, camt(debit + entry("15.00", mark="DBIT")))
    assert found.statements[0].closing == -500
    empty = read(tmp_path, camt(head() + balance("PRCD", "7.00") + balance("CLBD", "7.00")))
    assert (empty.statements[0].entries, len(empty.entries)) == (0, 0)
    first = head() + "<StmtPgntn><PgNb>1</PgNb><LastPgInd>false</LastPgInd></StmtPgntn>"
    text = camt(
        first + balance("OPBD", "1.00") + entry("2.00", ref="E1") + "</Stmt><Stmt>" + head()
        + "<StmtPgntn><PgNb>2</PgNb><LastPgInd>true</LastPgInd></StmtPgntn>"
        + balance("CLBD", "6.00") + entry("3.00", ref="E2")
    )  # fmt: skip
    (statement,) = read(tmp_path, text).statements
    assert (statement.opening, statement.booked, statement.closing) == (100, 500, 600)
    with pytest.raises(SourceUnreadableError, match="apart"):
        read(tmp_path, text.replace(entry("3.00", ref="E2"), ""))


def test_a_bank_account_named_by_bank_code_and_number_is_ours(tmp_path):
    """An account of the same number at another bank is not."""
    assert read(tmp_path, MT940, name="b.sta").statements[0].iban == IBAN
    other = MT940.replace("37040044/", "37040045/")
    assert read(tmp_path, other, name="b.sta").statements[0].iban == "37040045/532013000"


def test_a_table_is_whole_or_nothing(tmp_path):
    good = "E1,2026-11-20,2026-11-20,EUR,250.50,,,,,,\n"
    for rows, why in (
        (ROW + good.replace("250.50", "250.5"), "line 2, amount"),
        (ROW + good.replace("2026-11-20", "2026-11-31", 1), "line 2, booked_on"),
        (ROW + good + ROW + good, "two entries of one number"),
        (ROW + good + ROW.replace("350.50", "360.50") + good.replace("E1", "E2"), "one closing"),
        (ROW + good.replace("E1", ""), "line 2, amount: needs entry_no"),
        (ROW.replace("350.50", "") + good, "only one of its two balances"),
        (ROW + good.rstrip("\n"), "no line end"),
    ):
        with pytest.raises(SourceUnreadableError, match=why):
            read(tmp_path, CSV + rows, name="b.csv")


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("<BookgDt><Dt>2026-11-20", "<BookgDt><Dt>2026-02-31", "2026-02-31, which is no date"),
        ("<ValDt><Dt>2026-11-20", "<ValDt><Dt>0000-01-01", "0000-01-01, which is no date"),
        ("<FrDtTm>2026-11-20T", "<FrDtTm>2026-13-01T", "2026-13-01, which is no date"),
        ("<ToDtTm>2026-11-20T", "<ToDtTm>2026-02-30T", "2026-02-30, which is no date"),
        ("<Dt><Dt>2026-11-20", "<Dt><Dt>2026-11-31", "2026-11-31, which is no date"),
        ("<ValDt><Dt>2026-11-20", "<ValDt><Dt>9999-12-31", "not between the years 1970 and 2199"),
        ("<BookgDt><Dt>2026-11-20", "<BookgDt><Dt>0001-01-01", "not between the years 1970"),
        ("<NtryRef>E1", f"<NtryRef>{'E' * 65}", "more than 64 characters"),
        ("<ElctrncSeqNb>7", f"<ElctrncSeqNb>{'7' * 65}", "more than 64 characters"),
        (IBAN, "9" * 65, "more than 64 characters"),
    ],
)
def test_a_statement_that_says_what_cannot_be_is_refused(right, wrong, said, tmp_path):
    text = camt(ROUTINE + entry("250.50"))
    assert right in text
    with pytest.raises(SourceUnreadableError, match=rf"^bank\.xml .*{said}"):
        read(tmp_path, text.replace(right, wrong))


def amounts(folder, texts, *, currency, mark="CRDT"):
    """Minor units of the entries of a notification, which no balance proves."""
    body = "".join(entry(text, ref=f"E{at}", mark=mark) for at, text in enumerate(texts))
    text = camt(head() + body).replace('Ccy="EUR"', f'Ccy="{currency}"')
    found: list[int] = (
        read(folder, text.replace("<Ccy>EUR", f"<Ccy>{currency}")).entries["amount"].tolist()
    )
    return found


@pytest.mark.parametrize(
    ("currency", "texts", "minor"),
    [
        ("EUR", ("1.00", "0.07", "12", "3.5", "4."), [100, 7, 1200, 350, 400]),
        ("JPY", ("1", "20.", "300.00", "4000"), [1, 20, 300, 4000]),
        ("KWD", ("1.000", "2.5", "3"), [1000, 2500, 3000]),
    ],
)
def test_amounts_are_read_as_banks_write_them(tmp_path, currency, texts, minor):
    assert amounts(tmp_path, texts, currency=currency) == minor
    debits = amounts(tmp_path, texts, currency=currency, mark="DBIT")
    assert debits == [-each for each in minor]


@pytest.mark.parametrize("text", ["x", "1,00", "-1.00", "1.001", "1" * 30, "٣.00"])
def test_what_is_no_amount_is_refused(tmp_path, text):
    with pytest.raises(SourceUnreadableError, match="statement 7"):
        amounts(tmp_path, ["1.00"] * 5 + [text], currency="EUR")


def test_every_entry_has_a_number_of_its_own(tmp_path):
    body = "".join(entry("1.00", ref=number) for number in ["A", "", "A", "2", "", "A", ""])
    found = read(tmp_path, camt(head() + body)).entries["entry_no"].tolist()
    assert found == ["A", "2", "A#2", "2#2", "5", "A#3", "7"]
