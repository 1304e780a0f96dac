"""Loss scaling: the rule and its state, managers, update cells, scalers, and the guard against endless overflow."""
