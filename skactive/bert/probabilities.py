"""What a fine-tuned classifier says: labels, probabilities, draws, gradients."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, softmax
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skactive.bert.base import draws_available

__all__ = ["ProbabilitiesMixin"]


class ProbabilitiesMixin:
    """The methods of :class:`BertClassifier` that read its outputs."""

    def _probabilities(self, outputs):
        outputs = outputs.astype(np.float64)
        return expit(outputs) if self._multilabel else softmax(outputs, axis=-1)

    def predict(self, X):
        """Predict labels.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)

        Returns
        -------
        y : ndarray of shape (n,) or (n, k)
            Classes; an indicator matrix where `fit` got one.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError, ValueError
            Where `X` holds something else than texts, with the positions.
        """
        outputs = self._outputs(X)
        if self._multilabel:
            return (outputs > 0).astype(int)
        return self.classes_[outputs.argmax(axis=1)]

    def predict_proba(self, X):
        """Predict probabilities, without dropout.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)

        Returns
        -------
        proba : ndarray of shape (n, k)
            Columns as in `classes_`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError, ValueError
            Where `X` holds something else than texts, with the positions.
        """
        return self._probabilities(self._outputs(X))

    @available_if(draws_available)
    def sample_proba(self, X, n_draws=None, random_state=None):
        """Draw probabilities with Monte-Carlo dropout.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
        n_draws : int or None, default=None
            How many; None is the parameter of that name.
        random_state : int, RandomState instance or None, default=None
            Seeds the masks; None is the parameter of that name.

        Returns
        -------
        draws : ndarray of shape (n, n_draws, k)
            `draws[:, t]` comes from one model, the same for every text.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError, ValueError
            Where `X` holds something else than texts, with the positions.
        """
        return self._probabilities(self._draw_outputs(X, n_draws, random_state))

    def gradient_factors(self, X):
        """Factors of the gradient of the log loss at the predicted label.

        The gradient with respect to the weights of the last linear layer is, for
        text i, the outer product of rows i of both.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)

        Returns
        -------
        residuals : ndarray of shape (n, k)
            Probabilities less the indicator of the predicted class.
        inputs : ndarray of shape (n, d)
            What the layer takes: `transform(X)`.
        """
        check_is_fitted(self)
        if self._multilabel:
            raise TypeError(
                "gradient_factors needs a model of one label per text, got one of "
                "several. Train it on labels, not on an indicator matrix."
            )
        residuals = self.predict_proba(X)
        residuals[np.arange(len(residuals)), residuals.argmax(axis=1)] -= 1.0
        return residuals, self.transform(X)
