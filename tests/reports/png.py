"""A printed page as a small PNG: its white margins off, and a palette instead of true colour."""

import struct
import zlib
from typing import Any

import numpy as np

COLOURS_MAX = 256
MARGIN_PIXELS = 16
WHITE = 255
SIGNATURE = b"\x89PNG\r\n\x1a\n"
PALETTE_KIND = 3
FILLS_MAX = 64
"""Colours that are taken because they cover the most; the others lead a shade of their own."""
SHADE_BITS = 5
"""Of a channel, which a shade does not tell apart."""


def pixels_of(ppm: bytes) -> Any:
    """The pixels of a binary PPM picture as poppler writes it: rows, columns, red green blue."""
    _, size, _, body = ppm.split(b"\n", 3)
    width, height = map(int, size.split())
    return np.frombuffer(body, dtype=np.uint8).reshape(height, width, 3)


def without_margins(pixels: Any) -> Any:
    """The part that is not white, with a narrow margin."""
    inked = (pixels != WHITE).any(axis=2)
    rows, columns = np.flatnonzero(inked.any(axis=1)), np.flatnonzero(inked.any(axis=0))
    if not rows.size:
        return pixels
    cut = [slice(max(at[0] - MARGIN_PIXELS, 0), at[-1] + MARGIN_PIXELS) for at in (rows, columns)]
    return pixels[cut[0], cut[1]]


def png_of(pixels: Any) -> bytes:
    """The picture with at most 256 colours; rarer ones become the nearest."""
    height, width, _ = pixels.shape
    palette, numbers = _palette(pixels.reshape(-1, 3))
    rows = np.zeros((height, width + 1), dtype=np.uint8)  # each begins with its filter, 0
    rows[:, 1:] = numbers.reshape(height, width)
    head = struct.pack(">IIBBBBB", width, height, 8, PALETTE_KIND, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", palette.tobytes()), (b"IDAT", zlib.compress(rows, 9)))
    return SIGNATURE + b"".join(_chunk(*part) for part in (*parts, (b"IEND", b"")))


def _palette(pixels: Any) -> tuple[Any, Any]:
    """The most frequent colours, of all and of each rough shade; each pixel's nearest of them."""
    wide = pixels.astype(np.int32)
    keys, numbers, counts = np.unique(
        wide[:, 0] << 16 | wide[:, 1] << 8 | wide[:, 2], return_inverse=True, return_counts=True
    )
    colours = np.stack([keys >> 16, keys >> 8 & 255, keys & 255], axis=1)
    by_count = np.argsort(-counts, kind="stable")
    shades = (colours[by_count] >> SHADE_BITS) @ (1, 8, 64)
    leading = np.sort(np.unique(shades, return_index=True)[1])
    chosen = np.concatenate([np.arange(min(FILLS_MAX, len(keys))), leading])
    palette = colours[by_count[np.unique(chosen[:COLOURS_MAX])]]
    nearest = [int(((palette - colour) ** 2).sum(axis=1).argmin()) for colour in colours]
    return palette.astype(np.uint8), np.array(nearest, dtype=np.uint8)[numbers]


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
