"""Month end of an account: statement in SQL, close and reopening by two people, journals."""
