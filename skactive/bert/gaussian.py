"""The normal distribution of a linear layer's outputs under dropout of its input.

With masks m_j of mean 1 and variance r = p / (1 - p), the outputs W (m x) + b have the
mean W x + b and the covariance r sum_j x_j^2 w_j w_j^T, exactly. Sums of many terms are
near normal, so draws from the normal distribution of these moments stand for draws of
masks (Wang and Manning 2013). They take k numbers per text instead of d.
"""

from __future__ import annotations

import numpy as np
import torch

__all__ = ["GaussianOutputs", "normal_points"]

_TIE = 1e-12  # of the mean variance, added to each so that a factor exists


class GaussianOutputs:
    """Draws of the outputs of a linear layer, each text's from its own distribution.

    The normal numbers behind the draws are the same for every text, so texts that are
    alike have draws that are alike; but the draws of two texts together are not those
    of one model.

    Parameters
    ----------
    weight : torch.Tensor of shape (k, d)
    bias : torch.Tensor of shape (k,)
    rate : float
        Of the dropout.
    relative : bool, default=False
        Whether only the differences of outputs matter, as for a softmax. Then the
        first output is 0, and one dimension less is to be covered.

    References
    ----------
    S. I. Wang, C. D. Manning (2013). Fast dropout training. ICML.

    Examples
    --------
    >>> import torch
    >>> from skactive.bert.gaussian import GaussianOutputs, normal_points
    >>> layer = GaussianOutputs(torch.tensor([[3.0, 4.0]]), torch.tensor([2.0]), 0.5)
    >>> mean, covariance = layer.moments(torch.tensor([[1.0, 1.0]]))
    >>> mean.tolist(), covariance.tolist()
    ([[9.0]], [[[25.0]]])
    >>> layer.draw(torch.tensor([[1.0, 1.0]]), normal_points(8, 1, seed=0)).shape
    torch.Size([1, 8, 1])
    """

    def __init__(self, weight, bias, rate, relative=False):
        # In double precision, in which rounding leaves the covariances positive.
        weight = weight.detach().cpu().double()
        bias = bias.detach().cpu().double()
        self.relative = relative and len(weight) > 1
        if self.relative:
            weight, bias = weight[1:] - weight[:1], bias[1:] - bias[:1]
        self.weight, self.bias = weight, bias
        self.size = len(weight)
        self.rows, self.columns = torch.tril_indices(self.size, self.size)
        products = weight[self.rows] * weight[self.columns]  # (pairs, d)
        self.products = rate / (1 - rate) * products

    def moments(self, x):
        """Compute the mean and covariance of the outputs, or of their differences.

        Parameters
        ----------
        x : torch.Tensor of shape (b, d)
            The layer's input before dropout.

        Returns
        -------
        mean : torch.Tensor of shape (b, q)
            q is k; with `relative` k - 1.
        covariance : torch.Tensor of shape (b, q, q)
        """
        x = x.double()
        covariance = x.new_empty(len(x), self.size, self.size)
        mean = torch.addmm(self.bias, x, self.weight.T)
        half = (x * x) @ self.products.T
        covariance[:, self.rows, self.columns] = half
        covariance[:, self.columns, self.rows] = half
        return mean, covariance

    def draw(self, x, points):
        """Draw outputs.

        Parameters
        ----------
        x : torch.Tensor of shape (b, d)
        points : ndarray of shape (t, q)
            Standard normal numbers, such as :func:`normal_points`.

        Returns
        -------
        outputs : torch.Tensor of shape (b, t, k)
        """
        mean, covariance = self.moments(x)
        variances = covariance.diagonal(dim1=1, dim2=2)
        tie = _TIE * variances.mean(dim=1, keepdim=True) + np.finfo(np.float64).tiny
        variances += tie
        factor = torch.linalg.cholesky_ex(covariance).L.float()
        points = torch.from_numpy(points.T.astype(np.float32))
        first = int(self.relative)
        outputs = factor.new_zeros(len(x), first + self.size, points.shape[1])
        outputs[:, first:] = factor @ points  # (b, q, q) and (q, t)
        outputs[:, first:] += mean.float()[:, :, None]
        return outputs.transpose(1, 2)


def normal_points(n, q, seed):
    """Spread points over the standard normal distribution, more evenly than by chance.

    Parameters
    ----------
    n : int
        How many.
    q : int
        Dimensions.
    seed : int

    Returns
    -------
    points : ndarray of shape (n, q)
        Of a scrambled Sobol sequence. Where n > q they are shifted and turned so that
        their mean is 0 and their covariance the identity, exactly: so whatever is
        drawn with them has exactly the mean and covariance it should.

    Examples
    --------
    >>> from skactive.bert.gaussian import normal_points
    >>> points = normal_points(50, 3, seed=0)
    >>> abs(points.T @ points / 50).round(6)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    from scipy.stats import qmc

    rng = np.random.default_rng(seed)
    engine = qmc.Sobol(q, seed=rng)
    normal = qmc.MultivariateNormalQMC(np.zeros(q), engine=engine, seed=rng)
    points = normal.random(2 ** (n - 1).bit_length())[:n]
    if n > q:
        points -= points.mean(axis=0)
        factor = np.linalg.cholesky(points.T @ points / n)
        points = np.linalg.solve(factor, points.T).T
    return points
