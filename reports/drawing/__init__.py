"""Drawing sheets: cell formats, blocks of rows, and saving the file."""
