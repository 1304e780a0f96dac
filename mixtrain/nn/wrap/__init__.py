"""Cells around a network: with its loss, as a train step, and the update cells of its loss scale."""
