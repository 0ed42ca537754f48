"""Each sheet of the workbook but the first."""
