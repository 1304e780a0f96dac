"""The networks of the workloads, the same one in each framework."""
