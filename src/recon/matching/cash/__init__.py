"""Money that the gateway keeps, holds back and pays out, compared with the ledger."""
