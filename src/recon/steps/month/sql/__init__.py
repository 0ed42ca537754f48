"""The statements that make a month, and each equation of it, over the files of its nights."""
