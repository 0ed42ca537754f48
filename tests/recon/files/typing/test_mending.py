from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recon.config.rules import Rules
from recon.files.formats.named_bytes import read_bytes
from recon.files.formats.raw_reader import raw_of
from recon.files.typing.mending import mendable_rows, mendable_text
from recon.files.typing.table_schema import ORDER_FILE
from recon.files.typing.typed_table import reading_of

HEADER = "merchant_id,account_id,order_no,currency,amount,status,ordered_at"
CELLS = ("100042", "100042001", "A-1", "EUR", "10.00", "paid", "2026-01-05T10:00:00Z")
ODD = (
    "",
    "x",
    "10.5",
    "4111111111111111",
    "EUX",
    "=1+1",
    "2026-02-30T10:00:00Z",
    'a"b',
    "é",
    "1 2",
)


def mended(path):
    """The file of refused rows, and how many rows were refused."""
    raw = raw_of(read_bytes(path), columns_read=frozenset(ORDER_FILE.names))
    reading = reading_of(raw, schema=ORDER_FILE, rules=Rules())
    rows = mendable_rows(reading, schema=ORDER_FILE)
    text = mendable_text(rows, schema=ORDER_FILE)
    return text, len(reading.problems) + len(raw.bad_rows)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    places=st.lists(st.tuples(st.integers(0, 6), st.sampled_from(ODD)), min_size=1, max_size=6),
    cut=st.booleans(),
)
def test_what_nobody_mended_is_refused_again(order_csv, places, *, cut):
    rows = []
    for place, odd in places:
        cells = list(CELLS)
        cells[place] = odd
        rows.append(",".join(cells))
    text, refused = mended(order_csv("\n".join([HEADER, *rows]) + ("" if cut else "\n")))
    assert refused >= int(cut)
    if refused:
        again, still = mended(order_csv(text))
        assert still == refused
        assert "4111111111111111" not in again
