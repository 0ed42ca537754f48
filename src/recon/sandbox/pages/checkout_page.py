"""The checkout page: one form of hidden inputs that submits itself when the page has loaded."""

from collections.abc import Mapping
from html import escape
from typing import Any


def render_checkout(inputs: Mapping[str, Any], *, action: str) -> bytes:
    """The page as bytes; without scripts the shopper presses its one button."""
    hidden = "".join(
        f'<input type="hidden" name="{escape(str(name))}" value="{escape(str(value))}">'
        for name, value in inputs.items()
    )
    page = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Loading</title></head>'
        '<body onload="document.forms[0].submit()">'
        f'<form method="post" action="{escape(action)}">{hidden}'
        '<noscript><button id="continue">Continue</button></noscript></form></body></html>'
    )
    return page.encode()
