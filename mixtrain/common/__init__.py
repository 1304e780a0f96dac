"""What networks are made of before they are networks: parameters, tensors, initial values, the seed."""
