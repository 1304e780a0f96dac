"""Cells: MindSpore's layers and networks."""
