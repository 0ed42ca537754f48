"""Text from outside on a page of Prefect's, which reads Markdown."""

SPEAKS_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in r"\[]<|"} | {"\n": " "})
"""What begins a link, an image or a tag, ends a cell, or takes the backslash from one of ours."""


def on_a_page(text: str) -> str:
    """The text on one line that stays in its cell: no link, no image, no tag, no word less.

    Backticks stay: sentences of ours name commands in them, and nothing in them is a link.
    """
    return text.translate(SPEAKS_MARKDOWN)


def table_row(*cells: str) -> str:
    """One row of a table, each text in its cell."""
    return f"| {' | '.join(map(on_a_page, cells))} |"
