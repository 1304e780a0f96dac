"""A network of either kind, Cells or Keras layers, seen as one tree, and its calls, watched or changed."""
