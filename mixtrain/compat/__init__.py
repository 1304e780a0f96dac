"""Compatibility APIs of apex, OneFlow, PyTorch and MindSpore."""
