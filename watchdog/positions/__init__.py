"""Where a rank's own stack says it is: waiting in communication, or on the host, and then for what."""
