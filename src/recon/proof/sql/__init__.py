"""Each control total as one SELECT over the files of a night's folder."""
