"""Finding the layer whose numbers went wrong."""
