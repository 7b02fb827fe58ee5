"""The judge: from findings to one verdict. Pure."""
