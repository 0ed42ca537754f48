"""Wire messages about persons: models whose values never show in a repr or an error."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict

FIELD_CHARACTERS_MAX = 4_000
"""Of one text field, whatever the profile allows beyond."""

HIDDEN = "…"


class PrivateFields(BaseModel):
    """A message whose fields are masked in every repr and error but for those in `shown`."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        str_strip_whitespace=True,
        str_max_length=FIELD_CHARACTERS_MAX,
    )
    shown: ClassVar[frozenset[str]] = frozenset()
    """Fields that name no person and no account."""

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        """Names of the filled fields; values only of those that may be shown."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if value:
                yield name, value if name in self.shown else HIDDEN


def _exact(value: object) -> object:
    if isinstance(value, float | bool):
        msg = "an amount is text, a whole number or a Decimal, never a float"
        raise ValueError(msg)  # noqa: TRY004 - pydantic makes a ValidationError of a ValueError only
    return value


Amount = Annotated[Decimal, BeforeValidator(_exact)]
"""An amount in major units; a float would already have lost digits."""


def wire_value(value: object) -> Any:
    """A field as the wire writes it: text, numbers of the wire, objects without empty fields."""
    if isinstance(value, BaseModel):
        return {
            name: wire_value(part)
            for name in type(value).model_fields
            if not is_blank(part := getattr(value, name))
        }
    if isinstance(value, tuple):
        return [wire_value(part) for part in value]
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def is_blank(value: object) -> bool:
    """Whether a field was not given; nothing is sent for it."""
    if isinstance(value, BaseModel):
        return all(is_blank(getattr(value, name)) for name in type(value).model_fields)
    return value is None or value in ("", ())
