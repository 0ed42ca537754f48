"""The generator of plain files: the same seed, the same rows; keys of mixed width."""

import pandas as pd

from tests.planted import planted
from tests.planted.planted_files import order_numbers


def test_the_same_seed_gives_the_same_rows() -> None:
    """A finding can be repeated; another seed shuffles and prices anew."""
    one, same, other = (planted(size=200, broken=60, seed=seed) for seed in (1, 1, 2))

    pd.testing.assert_frame_equal(one.sources.gateway, same.sources.gateway)
    assert not one.sources.gateway.equals(other.sources.gateway)


def test_order_numbers_are_of_mixed_width_and_unique() -> None:
    """Keys of one width are a special case that no shop guarantees."""
    names = order_numbers(1_000)

    assert len({*names}) == len(names)
    assert len({len(name) for name in names}) > 5


def test_the_key_is_not_among_the_files() -> None:
    """The engine gets frames of the contract's columns and nothing else."""
    files = planted(size=100, broken=50)

    assert not {"code", "effect_orders"} & {*files.sources.orders.columns}
    assert len(files.key) == 50
