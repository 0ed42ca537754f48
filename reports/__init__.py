"""Excel workbooks: drawing them and reading them back."""
