"""The desk for people: it alone holds what proves who said yes, and its signature says so."""
