"""What ranks have left whose processes are gone: the folders of their probes, and the dumps those name."""
