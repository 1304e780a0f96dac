"""One training step: the recipe, the cells that MindSpore users know it by, and the loss-scale managers."""
