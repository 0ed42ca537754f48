"""Files as they arrive: taken from elsewhere, waited for until they are whole."""
