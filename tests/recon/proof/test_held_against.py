"""The figures of a night and those of SQL are held side against side."""

from dataclasses import replace

from recon.model.words import ControlTotal
from recon.proof.second_engine import NAME, SHOWN_MAX, not_run, second_proof

TIES = ControlTotal("T4", "orders", "M", "1", "EUR", "amount", 70, 70)
PLACE = ("M", "1")


def test_the_same_figures_agree() -> None:
    """One line says how many figures there were, and that all agree."""
    (figures,) = second_proof([TIES], by_sql=[TIES], account=PLACE)
    assert (figures.id, figures.name) == ("T14", NAME)
    assert (figures.left, figures.right) == (1, 1)


def test_a_side_that_differs_is_named_beside_the_count() -> None:
    """The total's own number and name say which side is another one by SQL."""
    figures, side = second_proof([TIES], by_sql=[replace(TIES, right=71)], account=PLACE)
    assert (figures.left, figures.right) == (1, 0)
    assert (side.id, side.name) == ("T4", "orders: right = right by SQL")
    assert (side.left, side.right) == (70, 71)


def test_a_figure_that_only_one_engine_tells_differs_unless_it_is_nothing() -> None:
    """What one of them forgot shows; a total of nothing need not be told."""
    nothing = replace(TIES, name="nobody", left=0, right=0)
    figures, left, right = second_proof([TIES, nothing], by_sql=[], account=PLACE)
    assert (figures.left, figures.right) == (2, 1)
    assert (left.left, left.right, right.left, right.right) == (70, 0, 70, 0)


def test_what_sql_holds_by_itself_must_tie() -> None:
    """A total of T14 has no other figure: its own two sides are the proof."""
    own = ControlTotal("T14", "exact", "M", "1", "EUR", "count", 5, 4)
    figures, named = second_proof([], by_sql=[own], account=PLACE)
    assert not figures.passed
    assert named == own


def test_many_differences_are_counted_and_the_first_are_named() -> None:
    """A page has an end: the count tells of all of them."""
    several = [replace(TIES, name=f"{number:03d}") for number in range(SHOWN_MAX)]
    figures, *named = second_proof(several, by_sql=[], account=PLACE)
    assert (figures.left, figures.right, len(named)) == (SHOWN_MAX, 0, SHOWN_MAX)


def test_sql_that_did_not_end_proves_nothing() -> None:
    """A second engine that could not run is a total that fails, and says why."""
    failed = not_run("a file is missing", account=PLACE)
    assert not failed.passed
    assert "a file is missing" in failed.name
