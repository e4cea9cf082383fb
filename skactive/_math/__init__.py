"""Mathematics shared by the strategies: scores, selection, distances, clusters."""
