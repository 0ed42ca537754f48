"""Pictures of pages: cut to what is printed, with a palette."""

import struct
import zlib

import numpy as np

from tests.reports.png import MARGIN_PIXELS, pixels_of, png_of, without_margins


def test_a_page_is_cut_to_its_ink_and_keeps_its_colours() -> None:
    """A blue pixel on a white page: a narrow margin stays, and the palette has both colours."""
    page = np.full((100, 200, 3), 255, dtype=np.uint8)
    page[50, 80] = (31, 56, 100)
    read = pixels_of(b"P6\n200 100\n255\n" + page.tobytes())
    cut = without_margins(read)
    picture = png_of(cut)
    width, height = struct.unpack(">II", picture[16:24])
    body = zlib.decompress(picture.partition(b"IDAT")[2][:-16])

    assert (width, height) == (2 * MARGIN_PIXELS, 2 * MARGIN_PIXELS)
    assert picture.partition(b"PLTE")[2][:6] == bytes((255, 255, 255, 31, 56, 100))
    assert body[MARGIN_PIXELS * (width + 1) + 1 + MARGIN_PIXELS] == 1
    assert sum(body) == 1
