"""Autocast: the state in force, the table of operators, and the dtype that Parameters are read in."""
