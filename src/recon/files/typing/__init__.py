"""Text columns as typed ones, with a reject for each row that cannot be read."""
