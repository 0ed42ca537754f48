"""The tree of errors: drawn as it is, with the exit codes people script against."""

import inspect
import re

import pytest

from recon.model import errors

CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, errors.ReconError)
]


def test_the_drawn_tree_is_the_real_one() -> None:
    """Every class stands in the drawing, under its parent, and nothing else does."""
    drawn = re.findall(
        r"^ {4}([ │├└─]*)(\w+(?:Error|Defect)?)\b", errors.__doc__ or "", re.MULTILINE
    )
    depth_of = {name: len(indent) // 4 for indent, name in drawn}

    assert depth_of == {cls.__name__: cls.__mro__.index(errors.ReconError) for cls in CLASSES}


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (errors.ReconError, 1),
        (errors.SourceUnreadableError, 1),
        (errors.StoreLockedError, 1),
        (errors.OutputError, 1),
        (errors.UsageError, 2),
        (errors.ConfigurationError, 2),
        (errors.SourceMissingError, 2),
        (errors.GateClosedError, 4),
        (errors.NightHeldError, 75),
    ],
)
def test_an_error_ends_the_command_with_its_code(
    error: type[errors.ReconError], exit_code: int
) -> None:
    """1 error, 2 usage or configuration, 4 a proof before money failed, 75 held."""
    assert error.exit_code == exit_code


def test_every_error_says_what_it_is() -> None:
    """Each class has one sentence of its own."""
    assert [cls.__name__ for cls in CLASSES if not (cls.__doc__ or "").endswith(".")] == []
