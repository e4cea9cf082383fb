"""Features of fixed weights, as users of libraries without encoders make them."""

from sentence_transformers import SentenceTransformer


class Features:
    """`sentence-transformers`, the same encoder and length.

    Rows have unit length, or are the mean of the tokens' states as it is.
    """

    def __init__(self, problem):
        self.problem = problem
        self.encoder = self.test = None

    def of_pool(self, texts):
        if self.encoder is None:
            problem = self.problem
            self.encoder = SentenceTransformer(problem.model, device=problem.device)
            self.encoder.max_seq_length = problem.max_length
            if not problem.normalize:
                del self.encoder[2:]  # Normalize, behind the encoder and the pooling
        return self.encoder.encode(texts, show_progress_bar=False)

    def of_test(self, texts):
        """Features of the texts that every round is scored on, made once."""
        if self.test is None:
            self.test = self.of_pool(texts)
        return self.test
