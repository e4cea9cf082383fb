"""A hundred items, two fifths of them spam."""

import numpy as np

Y = np.repeat(["ham", "spam"], [60, 40])
X = np.arange(100).reshape(-1, 1)
