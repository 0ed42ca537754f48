"""The sheets of a run's workbook, and the rows, totals and labels they share."""
