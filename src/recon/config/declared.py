"""What people declare in the files of `config/`, checked: one way for all of them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from recon.config.mistakes import problems_of
from recon.model.errors import AmountError, ConfigurationError
from recon.model.money import exponent


class DeclaredTable(BaseModel):
    """A table of a file: a key that nobody knows is a mistake; what was read stays as it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class S3Access(DeclaredTable):
    """How a storage that speaks S3 is reached; its keys are only named here."""

    endpoint: str = ""
    """S3: the address of the storage; empty: that of AWS."""
    region: str = ""
    access_key_env: str = ""
    """S3: the variable that holds the id of the access key."""
    secret_key_env: str = ""
    """S3: the variable that holds the secret key."""
    secret_key_file: Path | None = None
    """S3: or the file, mode 0600."""

    @property
    def names_its_keys(self) -> bool:
        """Whether the id of a key is named, and one place of the secret."""
        return bool(self.access_key_env) and bool(self.secret_key_env) != bool(self.secret_key_file)


def checked_by(check: Callable[[str], object]) -> AfterValidator:
    """Text that `check` accepts; its complaint is told with the key that holds the text."""

    def checked(text: str) -> str:
        try:
            check(text)
        except (ConfigurationError, AmountError) as error:
            raise ValueError(str(error)) from error
        return text

    return AfterValidator(checked)


CurrencyCode = Annotated[str, checked_by(exponent)]

Table = TypeVar("Table", bound=BaseModel)


def declared(model: type[Table], tables: Mapping[str, Any], *, source: str) -> Table:
    """The tables of `source`, as the model has them.

    Raises:
        ConfigurationError: naming every table and key that is wrong.
    """
    try:
        return model.model_validate(tables)
    except ValidationError as error:
        raise ConfigurationError(problems_of(error, source=source)) from None
