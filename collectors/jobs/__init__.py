"""Which processes of this machine are the ranks of which job."""
