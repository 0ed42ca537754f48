"""What a month came to: the dated facts of its nights and their equations, in SQL."""
