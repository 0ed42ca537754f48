"""Each equation of a statement as one SELECT over the files of a month's nights."""
