"""What an agent's watchdog has found, kept so that nothing is lost: a database, folders of evidence, and who is told.

`incidents.py` is the whole of it for the agent; `reading.py` is what `pardbg incidents` needs.
"""
