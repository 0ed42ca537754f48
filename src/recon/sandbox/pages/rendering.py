"""The pages for people, from templates; every text is escaped.

No script, no address outside the sandbox, no file: a page works with everything switched off.
"""

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from recon.sandbox.ground.clock import iso


def in_words(instant: int | str) -> str:
    """An instant in UTC as people read it: `2026-11-20 22:00:00`."""
    text = iso(instant) if isinstance(instant, int) else instant
    return text.replace("T", " ").rstrip("Z")


_PAGES = Environment(
    loader=PackageLoader("recon.sandbox.pages", package_path=""),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_PAGES.filters["in_words"] = in_words


def rendered(name: str, **content: Any) -> str:
    """A page by the name of its template."""
    return _PAGES.get_template(f"{name}.html").render(content)
