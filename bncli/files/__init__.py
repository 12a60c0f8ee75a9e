"""Everything that touches the disk: tables come in, models, cuts, structures and predictions go in and out.

One file a format. A reader checks everything that the engine will trust and says where the fault is (file, line or
key); a writer goes through `atomic.py`, so that a file appears whole or not at all.
"""
