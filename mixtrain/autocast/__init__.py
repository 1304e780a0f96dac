"""Autocast: the state in force, and the table of operators."""
