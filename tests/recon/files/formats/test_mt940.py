from pathlib import Path

import pytest

from recon.files.formats.bank_records import STATEMENTS_MAX
from recon.files.formats.mt940 import LINE_CHARACTERS_MAX, mt940_statements
from recon.files.formats.named_bytes import FileBytes
from recon.model.errors import SourceUnreadableError
from tests.recon.files.bank_documents import MT940


def read(text, *, encoding="utf-8"):
    return mt940_statements(FileBytes(Path("bank.sta"), text.encode(encoding), ""))


@pytest.mark.parametrize(
    ("mark", "credit", "reversal"),
    [("C", True, False), ("D", False, False), ("RC", False, True), ("RD", True, True)],
)
def test_the_sign_is_the_mark(mark, *, credit, reversal):
    (statement,) = read(MT940.replace("1120CR250,50", f"1120{mark}250,50"))
    (found,) = statement.entries
    assert (found.credit, found.reversal) == (credit, reversal)


def test_a_reference_that_a_full_line_cuts_is_whole_again():
    """Behind a full field a word goes on; behind a shorter one it ends."""
    cut = ":86:166?20Auszahlung der Woche BATCH-2?210260001 vom 20.11.?22Danke\n"
    (statement,) = read(MT940[: MT940.index(":86:")] + cut + MT940[MT940.index(":62F:") :])
    assert statement.entries[0].text == "Auszahlung der Woche BATCH-20260001 vom 20.11. Danke"
    plain = ":86:" + "A" * 58 + " BATCH-\n77 DONE\n"
    (statement,) = read(MT940[: MT940.index(":86:")] + plain + MT940[MT940.index(":62F:") :])
    assert statement.entries[0].text.endswith(" BATCH-77 DONE")


def test_umlauts_of_old_files_are_read():
    text = MT940.replace("Payout", "Auszüge für")
    for encoding in ("utf-8", "latin-1"):
        assert "Auszüge für" in read(text, encoding=encoding)[0].entries[0].text


def test_several_statements_keep_their_own_balances():
    second = MT940.replace("00007/001", "00008/002").replace(":60F:", ":60M:")
    second = second.replace(":62F:C261120EUR350,5", ":62M:D261120EUR1,")
    one, other = read(MT940 + second)
    assert (one.closing.amount, one.last_page) == ("350.5", True)  # type: ignore[union-attr] # both have one
    assert (other.number, other.page, other.last_page) == ("8", 2, False)
    assert (other.closing.amount, other.closing.credit) == ("1", False)


def test_an_envelope_of_swift_is_taken_off():
    text = "{1:F01BANKDEFF0000000000}{2:O9400000}{4:\r\n" + MT940.replace("\n-\n", "\r\n-}\r\n")
    assert len(read(text)[0].entries) == 1


def test_the_day_of_booking_gets_the_nearest_year():
    """An entry of January may be valued in December, and the other way round."""
    late = read(MT940.replace("2611201120CR", "2612310102CR"))[0].entries[0]
    early = read(MT940.replace("2611201120CR", "2701021231CR"))[0].entries[0]
    assert (late.booked_on, early.booked_on) == ("2027-01-02", "2026-12-31")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (":20:STMT\n", "", "outside of a statement"),
        (":25:", ":25X:", "outside of a statement|has :25: not|no statement has"),
        (":62F:C261120EUR350,5\n", "", "has :62F: not"),
        (":61:2611201120CR250,50", ":61:2611201120X250,50", "no entry :61:"),
        (":61:2611201120", ":61:2613201120", "no date"),
        (":60F:C261119EUR100,00", ":60F:C261119EUR100.00", "no balance"),
        (":28C:00007/001", ":28C:00007/001\nstray", "has one line"),
        (":20:STMT", "stray\n:20:STMT", "belongs to no tag"),
        (":62F:", ":99Z:\n:62F:", "which no statement has"),
    ],
)
def test_what_no_tag_explains_refuses_the_file(old, new, why):
    with pytest.raises(SourceUnreadableError, match=why):
        read(MT940.replace(old, new, 1))


EMPTY_DAY = ":20:X\n:25:12345678/1\n:28C:1\n:60F:C261119EUR1,00\n:62F:C261119EUR1,00\n-\n"


def test_as_many_statements_as_are_allowed_are_read_and_one_more_says_what_to_do():
    assert len(read(EMPTY_DAY * STATEMENTS_MAX)) == STATEMENTS_MAX
    with pytest.raises(SourceUnreadableError) as refused:
        read(EMPTY_DAY * (STATEMENTS_MAX + 1))
    assert f"more than {STATEMENTS_MAX} statements" in str(refused.value)
    assert f"line {6 * STATEMENTS_MAX + 1}; nothing of it counts: split it" in str(refused.value)


def test_a_line_up_to_the_limit_is_read_and_a_longer_one_is_told_with_its_length():
    """Banks write longer lines than SWIFT allows; what is no line of words is refused."""
    whole = EMPTY_DAY.replace(":20:X", ":20:" + "X" * (LINE_CHARACTERS_MAX - 4))
    assert len(read(whole)) == 1
    with pytest.raises(SourceUnreadableError, match=r"line 1 has 1001 characters.*nothing of it"):
        read(whole.replace(":20:", ":20:X"))


@pytest.mark.parametrize("header", ["ABNANL2A\n:61:", "ABNANL2A\n" * 11 + ":20:"])
def test_a_header_before_anything_else_is_refused(header):
    with pytest.raises(SourceUnreadableError, match=r"line (1|11) belongs to no tag"):
        read(MT940.replace(":20:", header, 1))


@pytest.mark.parametrize(
    ("value", "day"), [("260230", "2026-02-28"), ("280230", "2028-02-29"), ("260229", "2026-02-28")]
)
def test_interest_of_thirty_days_a_month_ends_on_the_last_of_february(value, day):
    """Banks reckon interest by months of 30 days; no other month has a day too many."""
    (statement,) = read(MT940.replace(":61:2611201120", f":61:{value}0302"))

    assert [(one.value_on, one.booked_on[5:]) for one in statement.entries] == [(day, "03-02")]
    with pytest.raises(SourceUnreadableError, match="no date"):
        read(MT940.replace(":61:2611201120", ":61:2602310302"))
