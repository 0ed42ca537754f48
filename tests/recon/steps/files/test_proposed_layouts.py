import pytest

from recon.config.file_sources import LedgerSource
from recon.config.rules import Rules
from recon.model.errors import UsageError
from recon.steps.files.proposed_layouts import KINDS, checked, propose_layout
from tests.recon.files.proposing.exports import ACCOUNT, MERCHANT, SHAPES, made
from tests.recon.files.whole_read import read_ledgers

SHAPE = {shape.name: shape for shape in SHAPES}
EACH_FILE_COUNTS = {"newest_file_counts": "false"}
"""Samples of a shape have the same order numbers, and none says since when."""


def proposed(folder, name, *seeds):
    exports = [made(SHAPE[name], seed=seed) for seed in seeds]
    for export in exports:
        (folder / export.name).write_bytes(export.content)
    paths = [folder / export.name for export in exports]
    kind = SHAPE[name].kind
    account = (MERCHANT, ACCOUNT)
    return propose_layout(
        paths, kind=kind, rules=Rules(), account=account, answers=EACH_FILE_COUNTS
    )


def of_texts(folder, *texts, kind="orders", **answers):
    """What is proposed for files as they are written here; `__` in a key is a point."""
    paths = [folder / f"{name}.csv" for name in "abc"[: len(texts)]]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    decided = {key.replace("__", "."): text for key, text in answers.items()}
    account = (MERCHANT, ACCOUNT)
    return propose_layout(paths, kind=kind, rules=Rules(), account=account, answers=decided)


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("cents", '[[accounts."100042/100042001".layouts]]'),
        ("adyen", '[[accounts."100042/100042001".settlement.layouts]]'),
        ("instructions-en", '[[accounts."100042/100042001".layouts]]'),
        ("bank-fr", '[[bank."NAME".layouts]]'),
    ],
)
def test_a_proposal_is_read_by_the_readers_of_a_night(name, table, tmp_path):
    """Where nothing is asked, every sample is read through the door as a night reads it."""
    proposal = proposed(tmp_path, name, 0, 1)
    assert proposal.text.startswith(table)
    assert proposal.usable
    assert [file.source.rows_rejected for file in proposal.checked if file.source] == [0, 0]


def test_samples_of_one_layout_may_leave_its_encoding_and_quote_open(tmp_path):
    """A file of ASCII reads alike in every encoding, one without quotes by every quote."""
    header = "order_no;amount;currency;status;ordered_at;customer\n"
    row = "{};1.00;EUR;paid;2026-11-20T10:00:00Z;{}\n"
    plain = header + row.format("A1", "Mueller") + row.format("A2", "Maier")
    quoted = header + row.format("A3", "'M\u00fcller; Sohn'") + row.format("A4", "'Maier; Sohn'")
    both = of_texts(tmp_path, plain, quoted.encode("cp1252"))

    assert both.usable, both
    assert (both.layout.encoding, both.layout.quote) == ("windows-1252", "'")
    assert [file.source.rows_accepted for file in both.checked if file.source] == [2, 2]


def test_a_column_of_signs_is_asked_where_no_amount_is_known(tmp_path):
    """An answer for the amount does not answer of what the signs are."""
    rows = "A1;20.11.2026;bezahlt;H;1,00\nA2;21.11.2026;bezahlt;S;2,00\n"
    asked = of_texts(tmp_path, "Bestellnummer;Datum;Status;Vorzeichen;Preis\n" + rows)
    assert asked.proposal.questions["columns.amount"].startswith("which column is it: 'Preis'?")
    text = "Bestellnummer;Datum;Status;Vorzeichen;Preis\n" + rows
    answered = of_texts(tmp_path, text, columns__amount="Preis").proposal
    assert "'Vorzeichen' says which way money goes" in answered.questions["sign.amount"]
    decided = {"columns.amount": "Preis", "sign.amount": "Vorzeichen"}
    layout = of_texts(tmp_path, text, **decided).proposal.layout
    assert layout["sign"] == {"amount": {"column": "Vorzeichen", "plus": "H", "minus": "S"}}
    with pytest.raises(UsageError, match=r"^sign\.amount: 'Status' is no column"):
        of_texts(tmp_path, text, **decided | {"sign.amount": "Status"})


def test_an_answer_that_no_layout_can_have_is_refused(tmp_path):
    """The key is named, so that a person sees what was mistyped."""
    text = "order_no,ordered_at,amount,currency,status\nA1,2026-11-20T10:00:00Z,1.00,EUR,paid\n"
    for key in ("ordered_at", "amount", "status", "merchant_id", "no_such"):
        with pytest.raises(UsageError, match=rf"^columns\.{key}: .* 'Datm'"):
            of_texts(tmp_path, text, **{f"columns__{key}": "Datm"})
    with pytest.raises(UsageError, match=r"^times: %Q is none of"):
        of_texts(tmp_path, text.replace("-", "/"), times="%Q")
    with pytest.raises(UsageError, match=r"^delimiter\.sign: "):
        of_texts(tmp_path, text, delimiter__sign=";")


def test_a_row_that_a_night_would_refuse_makes_a_proposal_unusable(tmp_path):
    export = made(SHAPE["cents"], seed=0)
    path = tmp_path / export.name
    path.write_bytes(export.content + b"B-1,2026-01-01T00:00:00Z,12.5,EUR,paid\r\n")
    account = (MERCHANT, ACCOUNT)
    proposal = propose_layout(
        [path], kind="orders", rules=Rules(), account=account, answers=EACH_FILE_COUNTS
    )
    (checked,) = proposal.checked
    assert not proposal.usable
    assert [reject.line for reject in checked.rejects] == [len(export.rows) + 2]


LEDGER = "entry_id,order_no,entry_type,currency,amount,booked_at\n"
BOOKED = "E{0},A{0},capture,EUR,{0}.00,2026-11-20T10:00:00Z\n"
PORTAL = "order_no,transaction_id,currency,amount,payment_status,query_result,transaction_date,"
PAID = "A{0},t{0},EUR,{0}.00,0,0,2026-11-20T10:00:00Z,r{0}\n"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("ledger", LEDGER + "".join(map(BOOKED.format, range(1, 5))) + "Total,4,,,10.00,\n"),
        (
            "gateway",
            f"{PORTAL}reference_no\n"
            + "".join(map(PAID.format, range(1, 5)))
            + "Total,4,,10.00,,,,\n",
        ),
    ],
    ids=["ledger", "gateway"],
)
def test_a_last_line_of_totals_is_held_against_the_rows(kind, text, tmp_path):
    """Books and lists of a gateway may end with one, and with other figures are refused."""
    proposal = of_texts(tmp_path, text, kind=kind)
    assert proposal.usable, proposal
    assert proposal.layout is not None
    path = tmp_path / "a.csv"
    path.write_text(text.replace("Total,4", "Total,5"))
    refused = checked(path, proposal.layout, Rules(), schema=KINDS[kind].schema)
    assert refused.source is None
    assert "declares 5 rows and has 4" in refused.refusal


def test_what_was_captured_and_refunded_is_read_of_a_portal(tmp_path):
    """A column of refunds that is dropped makes a part refund one of no amount."""
    header = "order_no,transaction_id,currency,amount_cents,payment_status,query_result,"
    header += "transaction_date,reference_no,amount_refunded_cents,Captured\n"
    rows = "".join(
        f"A{n},t{n},EUR,{n}990,0,0,2026-11-20T10:00:00Z,r{n},{n * 100},{n}990\n" for n in (1, 2)
    )
    proposal = of_texts(tmp_path, header + rows, kind="gateway", columns__amount="amount_cents")
    assert proposal.usable, proposal
    columns = proposal.proposal.layout["columns"]
    assert columns["refunded_amount"] == "amount_refunded_cents"
    assert columns["captured_amount"] == "Captured"
    assert proposal.proposal.layout["units"] == "minor"
    assert proposal.proposal.not_read == ()


def test_a_number_of_a_document_is_the_entry_where_nothing_else_is(tmp_path):
    text = LEDGER.replace("entry_id", "Belegnr.") + BOOKED.format(1) + BOOKED.format(2)
    proposal = of_texts(tmp_path, text, kind="ledger")
    assert proposal.usable, proposal
    assert proposal.proposal.layout["columns"] == {"entry_id": "Belegnr."}

    repeated = of_texts(tmp_path, text.replace("E2", "E1"), kind="ledger")
    assert "'Belegnr.'" in repeated.proposal.questions["columns.entry_id"]


def test_amounts_of_several_currencies_beside_them_are_asked_by_their_lines(tmp_path):
    """The question names the cause and a line of each."""
    text = "order_no;ordered_at;amount;currency;status\n"
    text += "A1;2026-11-20T10:00:00Z;164,16 EUR;EUR;paid\n"
    text += "A2;2026-11-20T10:00:00Z;113,16 USD;USD;paid\n"
    asked = of_texts(tmp_path, text).proposal.questions["currency_sign"]
    assert "more than one currency" in asked
    assert "'164,16 EUR' on line 2, '113,16 USD' on line 3" in asked


SIDED = "Buchungsnummer;Auftragsnummer;Art;WKZ;Buchungsdatum;Soll;Haben\n"
SIDED_ROWS = (
    "E1;A1;capture;EUR;2026-11-20T10:00:00Z;129,99;\n",
    "E2;A1;refund;EUR;2026-11-20T10:00:00Z;;29,99\n",
    "E3;A2;refund_reversal;EUR;2026-11-20T10:00:00Z;5,01;\n",
    "E4;A2;adjustment;EUR;2026-11-20T10:00:00Z;;2,50\n",
)
AMOUNTS = [12999, 2999, 501, -250]


def amounts_of(folder, proposal):
    assert proposal.layout is not None
    source = LedgerSource(path=folder / "a.csv", layout=proposal.layout)
    entries = read_ledgers(source, environment={}, rules=Rules()).entries
    return entries["amount"].tolist()


@pytest.mark.parametrize(
    ("turned", "names", "captures"),
    [
        (False, "Soll;Haben", "minus"),
        (True, "Soll;Haben", "plus"),
        (False, "D\u00e9bit;Cr\u00e9dit", "minus"),
        (False, "Winien;Ma", "minus"),
    ],
)
def test_the_side_of_an_entry_says_what_its_type_says(names, captures, tmp_path, *, turned):
    """Books have debit and credit, seen from either account; the amount is taken without it."""
    header = SIDED.replace("Soll;Haben", names)
    if turned:
        first, second = names.split(";")
        header = SIDED.replace("Soll;Haben", f"{second};{first}")
    proposal = of_texts(tmp_path, header + "".join(SIDED_ROWS), kind="ledger")
    assert proposal.usable, proposal
    assert proposal.proposal.layout["captures"] == captures
    assert amounts_of(tmp_path, proposal) == AMOUNTS


def test_the_sign_of_an_entry_says_what_its_type_says(tmp_path):
    """One column of signed amounts is read; a sign against the type refuses its row with both."""
    text = LEDGER + BOOKED.format(1) + BOOKED.format(2).replace("capture,EUR,", "refund,EUR,-")
    text += BOOKED.format(3).replace("capture,EUR,", "payout_reversal,EUR,")
    proposal = of_texts(tmp_path, text, kind="ledger")
    assert proposal.usable, proposal
    assert proposal.proposal.layout["captures"] == "plus"
    assert amounts_of(tmp_path, proposal) == [100, 200, 300]

    (tmp_path / "a.csv").write_text(text + BOOKED.format(4).replace("capture", "fee"))
    assert proposal.layout is not None
    (reject,) = checked(
        tmp_path / "a.csv", proposal.layout, Rules(), schema=KINDS["ledger"].schema
    ).rejects
    assert (reject.line, reject.column) == (5, "amount")
    assert reject.reason == "is plus, but fee must be minus in ledgers with captures in plus"


def test_sides_that_contradict_each_other_are_asked(tmp_path):
    """A refund on the side of captures is somebody's to explain, with a line of each."""
    rows = "".join(SIDED_ROWS) + "E5;A3;refund;EUR;2026-11-20T10:00:00Z;7,00;\n"
    asked = of_texts(tmp_path, SIDED + rows, kind="ledger").proposal.questions
    assert asked == {
        "captures": "are captures plus or minus: line 2 says minus and line 6 says plus"
    }
    decided = of_texts(tmp_path, SIDED + rows, kind="ledger", captures="minus")
    (checked,) = decided.checked
    assert [reject.line for reject in checked.rejects] == [6]


def test_numbers_of_two_accounts_are_no_sides(tmp_path):
    """Each row of books that names both accounts has them filled; its amount is another column."""
    text = LEDGER.replace("booked_at", "booked_at,Soll,Haben")
    text += BOOKED.format(1).replace("\n", ",1200,8400\n")
    proposal = of_texts(tmp_path, text, kind="ledger")
    assert proposal.usable, proposal
    assert proposal.proposal.not_read == ("Soll", "Haben")


TOTALLED = "Buchungsnummer;Auftragsnummer;Art;WKZ;Buchungsdatum;Betrag\n"


def test_a_sum_in_a_last_line_is_held_as_its_count_is(tmp_path):
    """The cell that is what all rows come to, with their signs: another one refuses the file."""
    entry = "{};A1;{};EUR;2026-11-20T10:00:00Z;{}\n"
    rows = entry.format("E1", "capture", "129,99") + entry.format("E2", "refund", "-29,99")
    rows += entry.format("E3", "adjustment", "-2,00")
    text = f"{TOTALLED}{rows}Summe;3;;;;98,00\n"
    proposal = of_texts(tmp_path, text, kind="ledger")
    assert proposal.usable, proposal
    assert proposal.proposal.layout["trailer"] == {"word": "Summe", "rows": 2, "amount": 6}
    assert amounts_of(tmp_path, proposal) == [12999, 2999, -200]

    (tmp_path / "a.csv").write_text(text.replace("98,00", "98,01"))
    assert proposal.layout is not None
    refused = checked(tmp_path / "a.csv", proposal.layout, Rules(), schema=KINDS["ledger"].schema)
    assert refused.source is None
    assert "declares 98,01 EUR and its rows have 98.00" in refused.refusal


@pytest.mark.parametrize(
    ("rows", "last"),
    [
        ("A1;EUR;10,00\nA2;USD;5,00\n", "15,00"),  # nobody adds up two currencies
        ("A1;EUR;10,00\nA2;EUR;5,00\n", "15,01"),
        ("A1;EUR;10,00\nA2;EUR;5,00\n", ""),
    ],
)
def test_a_last_line_that_is_no_sum_is_held_to_nothing(rows, last, tmp_path):
    """What is not what the rows of one currency come to may be something else."""
    text = "order_no;currency;amount;status;ordered_at\n"
    text += rows.replace("\n", ";paid;2026-11-20T10:00:00Z\n") + f"Summe;;{last};;\n"
    assert of_texts(tmp_path, text).proposal.layout["trailer"] == {"word": "Summe"}


def test_each_row_of_a_portal_is_a_payment_that_the_gateway_has(tmp_path):
    """It has no column of results; a time is asked by the first line that has it."""
    text = "Transaktions-ID;H\u00e4ndlerreferenz;Zeitpunkt;Bruttobetrag (Cent);W\u00e4hrung;Status;"
    text += "Erstattet (Cent);Referenz\n"
    text += "t1;A1;20.11.2026 10:00:00;1000;EUR;Bezahlt;0;r1\n" * 2
    asked = of_texts(tmp_path, text, kind="gateway").proposal
    assert asked.layout["columns"]["order_no"] == "H\u00e4ndlerreferenz"
    assert asked.layout["constants"]["query_result"] == "1"
    assert [*asked.questions] == ["zone"]
    assert "such as that on line 2 have no offset" in asked.questions["zone"]
