"""Cells: networks and layers as MindSpore writes them."""
