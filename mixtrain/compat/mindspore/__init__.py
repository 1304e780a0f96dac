"""MindSpore's old module paths, and names that are not available here."""
