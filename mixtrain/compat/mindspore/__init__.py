"""MindSpore's old module paths, and cells that have no meaning here."""
