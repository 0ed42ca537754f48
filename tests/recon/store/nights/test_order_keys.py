import pyarrow as pa

from recon.store.nights.stored_orders import hashes_of


def test_a_hash_is_of_its_key_wherever_the_row_stands() -> None:
    """In a slice, as words of a dictionary, or in chunks; and of another key it is another."""
    names = ("merchant_id", "account_id", "order_no")
    rows = [("m", "a", "A-1"), ("m", "b", ""), ("mm", "b", "é, longer than others"), ("a", "m", "")]
    table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])
    coded = table.set_column(0, "merchant_id", table["merchant_id"].dictionary_encode())
    chunks = pa.concat_tables([coded.slice(0, 1), coded.slice(1)]).unify_dictionaries()
    hashes = hashes_of(table).tolist()

    assert len({*hashes}) == len(rows)
    assert hashes_of(chunks).tolist() == hashes
    assert hashes_of(table.slice(2)).tolist() == hashes[2:]
    assert hashes_of(table.slice(0, 0)).tolist() == []
