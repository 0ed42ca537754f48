"""A month of an account: stated in SQL over its nights, closed and opened by two people, booked."""
