"""Late attach: runs a few lines of Python in a rank that nobody prepared, by one change of a parked thread's registers."""
