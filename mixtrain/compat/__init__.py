"""Compatibility APIs of apex, OneFlow and MindSpore."""
