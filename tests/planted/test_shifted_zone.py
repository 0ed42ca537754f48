"""Files of the same dates by two clocks: the key names what stands in some of them only."""

import pytest

from tests.planted import zone_shifted


@pytest.mark.parametrize(("source", "hours"), [("orders", -5.5), ("gateway", 8), ("ledger", 0)])
def test_the_key_names_what_the_shift_left_alone(source: str, hours: float) -> None:
    """A quarter of an hour holds one payment, and both ends of the dates lose the shifted hours."""
    files = zone_shifted(source, hours=hours)
    names = {
        name: {*getattr(files.sources, name)["order_no"]}
        for name in ("orders", "gateway", "ledger")
    }
    alone = set.union(*names.values()) - set.intersection(*names.values())

    assert {row["name"] for row in files.key.to_dict("records")} == alone
    assert len(files.key) == len(alone) == int(abs(hours) * 4 * 2)
