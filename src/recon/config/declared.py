"""Validation of the files in `config/`, the same for all of them."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, field_validator

from recon.model.business_date import zone_of
from recon.model.errors import AmountError, ConfigurationError
from recon.model.money import exponent
from recon.privacy.displayed_text import DISPLAYED_CHARACTERS_MAX, printable
from recon.privacy.this_machine import is_loopback

UNKNOWN_KEY = "unknown table or key"

_WORDS = {
    "missing": "is missing",
    "extra_forbidden": UNKNOWN_KEY,
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_long": "has more than {max_length} characters",
    "string_too_short": "has fewer than {min_length} characters",
    "too_long": "has more than {max_length} entries",
    "too_short": "has fewer than {min_length} entries",
    "decimal_max_digits": "has more than {max_digits} digits",
    "decimal_max_places": "has more than {decimal_places} decimals",
    "decimal_whole_digits": "has more than {whole_digits} digits before the point",
    "path_type": "must be a path in quotes",
    "finite_number": "must be a number",
}
"""Kind of error -> what the value must be, with placeholders for pydantic's figures."""

_KINDS = {
    "string": "must be text in quotes",
    "int": "must be a whole number",
    "float": "must be a number",
    "decimal": "must be a number",
    "bool": "must be true or false",
    "date": "must be a date such as 2026-01-05",
    "dict": "must be a table of keys and values",
    "model": "must be a table of keys and values",
    "tuple": "must be a list in square brackets",
    "list": "must be a list in square brackets",
    "set": "must be a list in square brackets",
    "frozen": "must be a list in square brackets",
}
"""Prefix of pydantic's type errors -> what the value must be."""

_PATTERN = "string_pattern_mismatch"

WRITTEN = {
    "expected_by": "a time such as 02:00",
    "wait_until": "a time such as 03:00",
    "control_file": "an ending such as .control",
    "done_file": "an ending such as .done",
    "cron": "five fields of cron such as 30 2 * * *",
    "notices": "a name of small letters, digits and -, at most 40",
    "journal": "the name of an account, of letters, digits and ._:/-, at most 60 characters",
    "path": "a path such as /v1/name",
    "name": "a name without a colon",
    "currency_sign": "a sign such as $, of at most 4 characters and no digits",
}
"""Key, or table with free keys -> the form of its values."""


_LINE_MARKS = str.maketrans("", "", "\n\r\t")
"""Unprintable characters that a multi-line text may contain."""


def problems_of(error: ValidationError, *, source: str) -> str:
    """All errors of a file in one sentence, each with its key, never with its value."""
    sentences = [": ".join(filter(None, each)) for each in mistakes_of(error)]
    return f"{source}: {'; '.join(sentences)}"


def mistakes_of(error: ValidationError) -> list[tuple[str, str]]:
    """(key, error) of every error; entries of a list are counted from 1."""
    return [
        (_key(problem["loc"]), _words(problem))
        for problem in error.errors(include_url=False, include_input=False)
    ]


def _key(keys: tuple[int | str, ...]) -> str:
    key = ""
    for part in keys:
        if isinstance(part, int):
            key += f" #{part + 1}"
        elif part != "[key]":
            key += f".{part}" if key else part
    return key


def _words(problem: Mapping[str, Any]) -> str:
    kind, figures = problem["type"], problem.get("ctx", {})
    if kind == _PATTERN:
        known = [WRITTEN[part] for part in reversed(problem["loc"]) if part in WRITTEN]
        return f"must be {known[0]}" if known else "is not written as it must be"
    if kind in _WORDS:
        return _WORDS[kind].format_map(figures)
    words = _KINDS.get(kind.partition("_")[0])
    return words or str(problem["msg"]).removeprefix("Value error, ")


def deepest_key(text: str) -> str:
    """Key and line with the most brackets, for a file nested too deep to be parsed."""
    lines = text.splitlines()
    deepest = max(range(len(lines)), key=lambda at: sum(map(lines[at].count, "[{")))
    key = lines[deepest].partition("=")[0].strip(" []{")[:DISPLAYED_CHARACTERS_MAX]
    return f"{printable(key) or 'what'} (line {deepest + 1})"


def unprintable_keys(tables: Mapping[str, Any]) -> Iterator[str]:
    """Keys of texts with unprintable characters, and keys that have such characters themselves."""
    waiting: list[tuple[str, Any]] = [("", tables)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, str) and not value.translate(_LINE_MARKS).isprintable():
            yield key
        elif isinstance(value, list):
            waiting += [(f"{key} #{at}", part) for at, part in enumerate(value, start=1)]
        elif isinstance(value, dict):
            yield from (f"{key}.{name}".lstrip(".") for name in value if not name.isprintable())
            waiting += [(f"{key}.{name}".lstrip("."), part) for name, part in value.items()]


class DeclaredTable(BaseModel):
    """A table of a file: a key that nobody knows is a mistake; what was read stays as it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)


_ENDPOINT = re.compile(
    r"https?://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:[0-9]{1,5})?/?"
)


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

    @field_validator("endpoint")
    @classmethod
    def _storage(cls, endpoint: str) -> str:
        if not endpoint:
            return endpoint
        if _ENDPOINT.fullmatch(endpoint) is None:
            msg = "is no address of a storage such as https://s3.example.com:9000"
            raise ValueError(msg)
        parts = urlsplit(endpoint)
        try:
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            msg = "has a port that does not exist"
            raise ValueError(msg) from None
        if parts.scheme == "http" and not is_loopback(host):
            msg = "must be https: over http everybody on the way reads the files and the key's id"
            raise ValueError(msg)
        return endpoint

    @property
    def names_its_keys(self) -> bool:
        """Whether the id of a key is named, and exactly one location of the secret."""
        return bool(self.access_key_env) and bool(self.secret_key_env) != bool(self.secret_key_file)


def checked_by(check: Callable[[str], object]) -> AfterValidator:
    """A validator for text that `check` accepts; its error is reported with the key of the text."""

    def checked(text: str) -> str:
        try:
            check(text)
        except (ConfigurationError, AmountError) as error:
            raise ValueError(str(error)) from error
        return text

    return AfterValidator(checked)


CurrencyCode = Annotated[str, checked_by(exponent)]
ZoneText = Annotated[str, checked_by(zone_of)]

Table = TypeVar("Table", bound=BaseModel)


def declared(model: type[Table], tables: Mapping[str, Any], *, source: str) -> Table:
    """Validate the tables of `source` as a model.

    Raises:
        ConfigurationError: names every table and key that is wrong.
    """
    try:
        return model.model_validate(tables)
    except ValidationError as error:
        raise ConfigurationError(problems_of(error, source=source)) from None
