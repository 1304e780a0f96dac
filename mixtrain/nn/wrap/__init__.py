"""Cells around a network: with its loss, as a train step, and the update cells of its loss scale."""

from mixtrain.lazy_names import serve_names

serve_names(__name__)
