"""A hash of each order's key, the same on every machine and in every version: files keep it.

FNV-1a of 64 bits over merchant, account and order number. Two keys with one hash cost a look at
rows that are others; nothing is judged by a hash.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Hashes = npt.NDArray[np.int64]
_BASIS, _PRIME = 0xCBF29CE484222325, 0x100000001B3
_MASK = 0xFFFFFFFFFFFFFFFF
_BETWEEN = b"\x1f"
_JOINED = pa.scalar(_BETWEEN.decode(), pa.large_string())


def hashes_of(rows: pa.Table) -> Hashes:
    """One number for each row's merchant_id, account_id and order_no."""
    begun = _begun(rows)
    texts = _plain(rows["order_no"])
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    if data is None or not len(texts):
        return begun.astype(np.int64)
    bytes_of = np.frombuffer(data, dtype=np.uint8)
    starts, sizes = ends[:-1], np.diff(ends)
    prime = np.uint64(_PRIME)
    for offset in range(int(sizes.max())):
        longer = np.flatnonzero(sizes > offset)
        # Most numbers of a shop are of one length: then nothing is chosen.
        which = slice(None) if longer.size == sizes.size else longer
        begun[which] = (begun[which] ^ bytes_of[starts[which] + offset]) * prime
    return begun.view(np.int64)


def _begun(rows: pa.Table) -> npt.NDArray[np.uint64]:
    """The hash of merchant and account, of which there are few."""
    places = pa.table({name: _plain(rows[name]) for name in ("merchant_id", "account_id")})
    words = pc.binary_join_element_wise(places["merchant_id"], places["account_id"], _JOINED)
    coded = words.combine_chunks().dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = pa.concat_arrays(coded.unify_dictionaries().chunks)
    each = [_text_hash(str(word).encode() + _BETWEEN) for word in coded.dictionary.to_pylist()]
    codes = coded.indices.to_numpy(zero_copy_only=False)
    begun: npt.NDArray[np.uint64] = np.array(each or [0], dtype=np.uint64)[codes]
    return begun


def _text_hash(text: bytes) -> int:
    value = _BASIS
    for byte in text:
        value = ((value ^ byte) * _PRIME) & _MASK
    return value


def _plain(column: pa.ChunkedArray) -> pa.Array:
    whole = column.cast(pa.large_string()).combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole
