from pathlib import Path

import pytest
from pydantic import ValidationError

from recon.config.file_layouts import FileLayout, Trailer
from recon.config.file_sources import SettlementFolder


def test_a_trailer_may_count_rows_but_not_add_amounts() -> None:
    """A settlement line has three amounts: a sum that silently took one would prove nothing."""
    rows = FileLayout(trailer=Trailer(word="END", rows=2))
    assert SettlementFolder(inbox=Path("in"), layouts=(rows,)).layouts == (rows,)
    amounts = FileLayout(trailer=Trailer(word="END", amount=2))
    with pytest.raises(ValidationError, match="count its rows"):
        SettlementFolder(inbox=Path("in"), layouts=(amounts,))
