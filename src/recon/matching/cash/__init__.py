"""What the gateway keeps, holds back and pays out, against the books: groups, items and debts."""
