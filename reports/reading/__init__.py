"""Reading workbooks back, copies of signed ones, and further workbooks of their own."""
