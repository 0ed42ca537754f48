"""The name-value pairs of a form that somebody sent us, within bounds.

Stricter than a web server: UTF-8 only, no name twice, no control characters. Used by the receiver
of notifications.
"""

from urllib.parse import parse_qsl

from recon.model.errors import SourceUnreadableError

FORM_BYTES_MAX = 65_536
PAIRS_MAX = 200
NAME_CHARACTERS_MAX = 100
VALUE_CHARACTERS_MAX = 5_000


def form_pairs(body: bytes) -> dict[str, str]:
    """The pairs by name, values trimmed.

    Raises:
        SourceUnreadableError: not such a form, with the reason; never with a value of it.
    """
    if len(body) > FORM_BYTES_MAX:
        msg = f"larger than {FORM_BYTES_MAX} bytes"
        raise SourceUnreadableError(msg)
    if not body:
        msg = "empty"
        raise SourceUnreadableError(msg)
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=PAIRS_MAX,
        )
    except ValueError as error:
        # A name or value may stand in the library's own words: they are not repeated.
        msg = f"not a form of at most {PAIRS_MAX} UTF-8 pairs"
        raise SourceUnreadableError(msg) from error
    fields: dict[str, str] = {}
    for name, value in pairs:
        if len(name) > NAME_CHARACTERS_MAX or len(value) > VALUE_CHARACTERS_MAX:
            msg = "a name or value is too long"
            raise SourceUnreadableError(msg)
        if name in fields:
            msg = "the same name stands in it twice"
            raise SourceUnreadableError(msg)
        fields[name] = value.strip()
    return fields
