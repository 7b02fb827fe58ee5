"""What replicas of a model are fed and what becomes of their weights, as fingerprints on the rank's page.

Which ranks hold replicas of what, torch's DistributedDataParallel says itself (`watching.py`). Now and then the bits of some
weights and of the batch are added up on their own device (`weighing.py`, `tasting.py`), copied aside without waiting for it,
and put on the page (`keeping.py`). Nothing here waits for a device, and nothing raises into training.
"""
