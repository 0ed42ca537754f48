import pyarrow as pa

from recon.store.nights.stored_orders import hashes_of

ROWS = [
    ("m", "a", "A-1"),
    ("m", "b", ""),
    ("mm", "b", "é, longer than others"),
    ("m", "a", "A"),
]


def _plainly(text: bytes) -> int:
    """FNV-1a, byte after byte."""
    value = 0xCBF29CE484222325
    for byte in text:
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return value - 2**64 if value >= 2**63 else value


def _table(rows: list[tuple[str, str, str]]) -> pa.Table:
    names = ("merchant_id", "account_id", "order_no")
    return pa.table(
        {name: pa.array([row[at] for row in rows], pa.string()) for at, name in enumerate(names)}
    )


def test_a_hash_is_that_of_its_bytes_wherever_the_row_stands() -> None:
    """Files keep it: it is the same for ever, in a slice, a dictionary or chunks of a table."""
    wanted = [_plainly("\x1f".join(row).encode()) for row in ROWS]
    table = _table(ROWS)
    coded = table.set_column(0, "merchant_id", table["merchant_id"].dictionary_encode())
    chunks = pa.concat_tables([coded.slice(0, 1), coded.slice(1)]).unify_dictionaries()

    assert hashes_of(table).tolist() == wanted
    assert hashes_of(chunks).tolist() == wanted
    assert hashes_of(table.slice(2)).tolist() == wanted[2:]
    assert hashes_of(table.slice(0, 0)).tolist() == []
