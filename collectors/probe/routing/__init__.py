"""What the routers of a mixture of experts do, counted while the rank trains and published in the file `routing`.

Routers are found when a model is put together, by class; what they answer is read by shape (`recognising.py`, `reading.py`).
Their answers are added up on their own device (`layer.py`); once a step the sums are copied aside without waiting for it
(`copying.py`) and written to mapped memory (`writing.py`). Nothing here waits for a device, and nothing raises into training.
"""
