"""Who is told what: mail and webhooks to people, a log for machines."""
