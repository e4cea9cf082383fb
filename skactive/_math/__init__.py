"""Mathematics that several families share: scores, selection, distances, clusters."""
