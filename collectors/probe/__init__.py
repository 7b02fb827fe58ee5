"""What runs inside training, and the forms of what it leaves there for others to read.

Standard library only, and nothing of the rest of pardbg: `startup/sitecustomize.py` loads this package by its path, under another
name, in whatever environment the job has. Hence the relative imports.
"""
