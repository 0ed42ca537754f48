"""How sheets are drawn: the package, looks, pages, lists, plain text."""
