"""What `deploy/` holds: linted, rendered, checked against schemas, and run where that can be done here."""
