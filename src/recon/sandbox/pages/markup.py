"""The few pieces of HTML that the pages for people are made of; every text is escaped here.

No script, no address outside the sandbox, no file: a page works with everything switched off.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import quote

_STYLE = """
:root { color-scheme: light; --ink: #1c2430; --soft: #55606e; --line: #d8dde4; --bad: #a3211a }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem;
       color: var(--ink); background: #fff }
h1 { font-size: 1.5rem; margin: 0 0 .5rem } h2 { font-size: 1.1rem; margin: 2rem 0 .3rem }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem;
         border-bottom: 1px solid var(--line); overflow-wrap: anywhere }
th { font-weight: 600; color: var(--soft); white-space: nowrap }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
tr.bad td { background: #fdf0ee } p.bad { color: var(--bad); font-weight: 600 }
input, button { font: inherit; padding: .3rem .5rem } nav a { margin-right: 1rem }
.soft { color: var(--soft) } a { color: #0b57a4 }
.shopper { max-width: 26rem; margin: 1rem auto; padding: 0 1rem 1rem }
.shopper .amount { font-size: 1.6rem; font-weight: 600; margin: .2rem 0 }
.shopper form, .shopper form p { display: flex; flex-wrap: wrap; align-items: end; gap: .7rem;
       margin: 1rem 0 } .shopper form p { flex: 1 1 100%; margin: .3rem 0 }
.shopper label { display: block; flex: 1 1 100%; color: var(--soft) }
.shopper label.short { flex: 1 1 4.5rem }
.shopper input, .shopper button { box-sizing: border-box; width: 100%; padding: .5rem .6rem;
       border: 1px solid #8a94a3; border-radius: 4px; background: #fff; color: var(--ink) }
.shopper button { flex: 1 1 6rem; width: auto; cursor: pointer }
.shopper #pay { background: #0b57a4; border-color: #0b57a4; color: #fff; font-weight: 600 }
.shopper .sandbox { background: #fff7e0; border: 1px solid #e6cf8b; border-radius: 4px;
       padding: .4rem .6rem; font-size: .9rem } .shopper details { font-size: .9rem }
.shopper th, .shopper td { padding: .3rem .2rem; white-space: normal }
.shopper td:first-child { white-space: nowrap }
"""


@dataclass(frozen=True, slots=True)
class PageLink:
    """A cell that leads to another page of the sandbox."""

    text: str
    href: str


@dataclass(frozen=True, slots=True)
class Amount:
    """A cell that stands to the right."""

    text: str


Cell = str | PageLink | Amount


def to_transaction(transaction_id: str) -> PageLink:
    """The way to the timeline of a transaction."""
    return PageLink(transaction_id, f"/_sandbox/transactions/{quote(transaction_id, safe='')}")


def document(title: str, *content: str, name: str = "") -> str:
    """A whole page; `name` is one of the style's classes for it."""
    body = f'<body class="{name}">' if name else "<body>"
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"{body}<h1>{escape(title)}</h1>{''.join(content)}</body></html>"
    )


def heading(text: str) -> str:
    """The name of a part of a page."""
    return f"<h2>{escape(text)}</h2>"


def paragraph(text: str, *, name: str = "") -> str:
    """A sentence; `name` is one of the style's classes."""
    return f'<p class="{name}">{escape(text)}</p>' if name else f"<p>{escape(text)}</p>"


def links(*given: PageLink) -> str:
    """A line of ways on."""
    return f"<nav>{''.join(_link(link) for link in given)}</nav>"


def search_form(label: str, *, value: str, length_max: int) -> str:
    """One field that asks this very page."""
    return (
        f'<form role="search"><label>{escape(label)} <input name="q" maxlength="{length_max}"'
        f' value="{escape(value)}" autofocus></label> <button>Search</button></form>'
    )


def table(
    names: Sequence[str], rows: Iterable[Sequence[Cell]], *, bad: frozenset[int] = frozenset()
) -> str:
    """A table; rows with an index in `bad` are marked."""
    listed = list(rows)
    first: Sequence[Cell | None] = listed[0] if listed else [None] * len(names)
    head = "".join(
        f'<th scope="col"{_number(cell)}>{escape(name)}</th>'
        for name, cell in zip(names, first, strict=True)
    )
    body = "".join(
        f"<tr{_marked(index, bad)}>{''.join(map(_cell, row))}</tr>"
        for index, row in enumerate(listed)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _number(cell: Cell | None) -> str:
    return ' class="number"' if isinstance(cell, Amount) else ""


def _marked(index: int, bad: frozenset[int]) -> str:
    return ' class="bad"' if index in bad else ""


def _cell(cell: Cell) -> str:
    if isinstance(cell, PageLink):
        return f"<td>{_link(cell)}</td>"
    text = cell.text if isinstance(cell, Amount) else cell
    # Lines of one cell stay lines: what a client was told may be more than one thing.
    lines = "<br>".join(escape(line) for line in text.split("\n"))
    return f"<td{_number(cell)}>{lines}</td>"


def _link(link: PageLink) -> str:
    return f'<a href="{escape(link.href)}">{escape(link.text)}</a>'
