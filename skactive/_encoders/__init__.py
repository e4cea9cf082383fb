"""A pretrained encoder: weights, tokens, layers, and a store of rows per text."""
