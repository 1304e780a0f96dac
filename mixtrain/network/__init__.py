"""Networks of Cells or Keras layers as one tree, and replacement of their forward functions."""
