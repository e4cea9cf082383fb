"""Hand what is asked of a meta-estimator to the estimator it has fitted."""

from __future__ import annotations

from copy import deepcopy

from sklearn import get_config
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ._containers import as_container

__all__ = ["DelegationMixin"]

_DELEGATED = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "transform",
    "score",
)


def _estimator_has(method):
    """Tell whether the fitted estimator, or else the one to fit, has a method."""

    def check(self):
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return check


class DelegationMixin:
    """Methods, metadata and tags of a meta-estimator that are its estimator's own.

    The class that inherits holds the parameter `estimator` and, once fitted, the
    attribute `estimator_`.
    """

    def _route(self, method, params):
        if get_config()["enable_metadata_routing"]:
            return process_routing(self, method, **params).estimator[method]
        return params

    def _delegate(self, method, X, *args, **params):
        check_is_fitted(self)
        params = self._route(method, params)
        return getattr(self.estimator_, method)(as_container(X), *args, **params)

    @available_if(_estimator_has("predict"))
    def predict(self, X, **params):
        """Predict with `estimator_`.

        Parameters
        ----------
        X : container of n items
        **params : dict
            Passed to, or routed to, the estimator's method.

        Returns
        -------
        y : ndarray of shape (n,)
        """
        return self._delegate("predict", X, **params)

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X, **params):
        """Class probabilities from `estimator_`.

        Parameters
        ----------
        X : container of n items
        **params : dict
            Passed to, or routed to, the estimator's method.

        Returns
        -------
        proba : ndarray of shape (n, n_classes)
            Columns in the order of `classes_`.
        """
        return self._delegate("predict_proba", X, **params)

    @available_if(_estimator_has("predict_log_proba"))
    def predict_log_proba(self, X, **params):
        """Logarithms of the class probabilities from `estimator_`.

        Parameters
        ----------
        X : container of n items
        **params : dict
            Passed to, or routed to, the estimator's method.

        Returns
        -------
        log_proba : ndarray of shape (n, n_classes)
        """
        return self._delegate("predict_log_proba", X, **params)

    @available_if(_estimator_has("decision_function"))
    def decision_function(self, X, **params):
        """Decision values from `estimator_`.

        Parameters
        ----------
        X : container of n items
        **params : dict
            Passed to, or routed to, the estimator's method.

        Returns
        -------
        decision : ndarray of shape (n,) or (n, n_classes)
        """
        return self._delegate("decision_function", X, **params)

    @available_if(_estimator_has("transform"))
    def transform(self, X, **params):
        """Representations from `estimator_`.

        Parameters
        ----------
        X : container of n items
        **params : dict
            Passed to, or routed to, the estimator's method.

        Returns
        -------
        features : ndarray of shape (n, d)
        """
        return self._delegate("transform", X, **params)

    @available_if(_estimator_has("score"))
    def score(self, X, y, **params):
        """Score of `estimator_`: accuracy for classifiers, R² for regressors.

        Parameters
        ----------
        X : container of n items
        y : array-like of shape (n,)
            The true labels.
        **params : dict
            Passed to, or routed to, the estimator's method.

        Returns
        -------
        score : float
        """
        return self._delegate("score", X, y, **params)

    @property
    def classes_(self):
        """The classes that `estimator_` knows."""
        return self._of_estimator("classes_")

    @property
    def n_features_in_(self):
        """Number of features seen in `fit`, where `estimator_` has it."""
        return self._of_estimator("n_features_in_")

    @property
    def feature_names_in_(self):
        """Names of the features seen in `fit`, where `estimator_` has them."""
        return self._of_estimator("feature_names_in_")

    def _of_estimator(self, attribute):
        try:
            return getattr(self.estimator_, attribute)
        except AttributeError as exc:
            raise AttributeError(
                f"{type(self).__name__!r} has no attribute {attribute!r}: "
                + (
                    "it is not fitted."
                    if not self.__sklearn_is_fitted__()
                    else f"{exc}"
                )
            ) from exc

    def get_metadata_routing(self):
        """Say where metadata goes: to the method of the same name of `estimator`.

        Returns
        -------
        routing : MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        for method in _DELEGATED:
            mapping.add(caller=method, callee=method)
        return MetadataRouter(owner=self).add(
            estimator=self.estimator, method_mapping=mapping
        )

    def __sklearn_is_fitted__(self):
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = deepcopy(get_tags(self.estimator))
        for name in (
            "estimator_type",
            "classifier_tags",
            "regressor_tags",
            "transformer_tags",
            "target_tags",
            "input_tags",
            "non_deterministic",
        ):
            setattr(tags, name, getattr(inner, name))
        return tags
