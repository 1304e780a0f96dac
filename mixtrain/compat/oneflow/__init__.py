"""OneFlow's words: `nn.Graph` and its configuration."""
