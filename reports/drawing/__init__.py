"""How sheets are drawn: looks, blocks, files in their place."""
