"""The product by oneDNN against torch's own, gradients included."""

import pytest
import torch
from torch import nn

from skactive._encoders import _encoder as products
from skactive._encoders._encoder import ArrangedLinear, linear


def make(dtype=torch.float32, bias=True, n=5):
    generator = torch.Generator().manual_seed(0)
    layer = nn.Linear(7, 3, bias=bias)
    for parameter in layer.parameters():
        parameter.data.copy_(torch.randn(parameter.shape, generator=generator))
    return layer.to(dtype), torch.randn(n, 7, generator=generator).to(dtype)


@pytest.fixture
def onednn(monkeypatch):
    """Use the operator where this machine has it, though MKL may be faster."""
    monkeypatch.setattr(products, "_prefers_onednn", products._has_onednn)


@pytest.fixture(params=["onednn", "without"])
def has_onednn(request, onednn, monkeypatch):
    """With the operator where this machine has it, and as if it were not there."""
    if request.param == "without":
        monkeypatch.setattr(products, "_prefers_onednn", lambda dtype: False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("has_mkl", [True, False])
@pytest.mark.parametrize("name", ["Intel Xeon", "AMD EPYC", "unknown", None])
@pytest.mark.parametrize("capability", ["DEFAULT", "AVX2", "AVX512"])
def test_mkl_is_left_the_products_that_it_does_faster(
    monkeypatch, capability, name, has_mkl, dtype
):
    monkeypatch.setattr(products, "_has_onednn", lambda dtype: True)
    monkeypatch.setattr(products, "_mkl_is_fast", products._mkl_is_fast.__wrapped__)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: has_mkl)
    if name is None:  # as in older versions of torch
        monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    else:
        known = {"cpu_name": name}
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: known, raising=False)
    is_fast = has_mkl and (capability == "AVX2" or name == "Intel Xeon")
    by_mkl = is_fast and dtype == torch.float32
    assert products._prefers_onednn(dtype) == (not by_mkl)


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_equals_the_layer(has_onednn, dtype, bias, n):
    layer, x = make(dtype, bias, n)
    with torch.no_grad():
        got, expected = linear(layer, x), layer(x)
    assert got.dtype == dtype
    tolerance = 0.03 if dtype == torch.bfloat16 else 1e-5
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("n", [5, 1024, 1088])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_an_arranged_weight_gives_the_same(has_onednn, dtype, bias, n):
    layer, x = make(dtype, bias, n)
    with torch.inference_mode():
        got, expected = ArrangedLinear()(layer, x), layer(x)
    assert got.dtype == dtype
    tolerance = 0.03 if dtype == torch.bfloat16 else 1e-5
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)


def test_a_weight_is_arranged_once_and_for_many_rows_only(monkeypatch):
    arranged = []
    monkeypatch.setattr(products, "_prefers_onednn", lambda dtype: True)
    monkeypatch.setattr(products, "_product", lambda x, weight, bias=None: x @ weight.T)
    monkeypatch.setattr(products, "_arrange", lambda w: arranged.append(w) or w)
    product = ArrangedLinear()
    with torch.inference_mode():
        product(*make(n=1023))
        assert not arranged
        layers = [make(n=1024), make(n=1024)]
        for layer, x in layers * 2:
            product(layer, x)
    assert len(arranged) == 2
    assert all(
        w is layer.weight for w, (layer, _) in zip(arranged, layers, strict=True)
    )


@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize(
    "wanted", [("x",), ("weight",), ("bias",), ("x", "weight"), ("x", "weight", "bias")]
)
def test_gradients_equal_those_of_the_layer(has_onednn, wanted, contiguous):
    layer, x = make()
    tensors = {"x": x, "weight": layer.weight, "bias": layer.bias}
    for name, tensor in tensors.items():
        tensor.requires_grad_(name in wanted)
    of = [tensors[name] for name in wanted]
    factor = torch.randn(3, 5).T if contiguous else torch.ones(1, 1).expand(5, 3)
    expected = torch.autograd.grad(layer(x), of, factor)
    got = torch.autograd.grad(linear(layer, x), of, factor)
    for mine, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_nothing_is_recorded_where_nothing_is_trained(has_onednn):
    layer, x = make()
    assert linear(layer, x).requires_grad
    layer.requires_grad_(False)
    assert not linear(layer, x).requires_grad
    layer.requires_grad_(True)
    with torch.no_grad():
        assert not linear(layer, x).requires_grad
    with torch.inference_mode():
        assert linear(layer, x).is_inference()


def test_the_input_is_kept_only_for_a_weight_that_trains(onednn):
    layer, x = make()
    layer.weight.requires_grad_(False)
    x.requires_grad_(True)
    kept = linear(layer, x).grad_fn.saved_tensors
    assert [tensor is None for tensor in kept] == [True, False]


def test_under_autocast_torch_decides_the_type():
    layer, x = make()
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(layer, x).dtype == torch.bfloat16


@pytest.mark.filterwarnings("ignore:TF32")
def test_onednn_may_be_switched_off(monkeypatch):
    calls = []
    monkeypatch.setattr(products, "_product", lambda *args: calls.append(args))
    layer, x = make()
    monkeypatch.setattr(products, "_prefers_onednn", lambda dtype: True)
    with torch.no_grad(), torch.backends.mkldnn.flags(enabled=False):
        torch.testing.assert_close(linear(layer, x), layer(x))
    assert not calls


@pytest.mark.parametrize("error", [AttributeError, NotImplementedError, RuntimeError])
def test_a_build_without_the_operator_is_noticed(onednn, monkeypatch, error):
    def fail(*args):
        raise error("not here")

    monkeypatch.setattr(products, "_product", fail)
    products._has_onednn.cache_clear()
    try:
        layer, x = make()
        torch.testing.assert_close(linear(layer, x), layer(x))
    finally:
        products._has_onednn.cache_clear()


def test_a_wrong_product_is_noticed(monkeypatch):
    monkeypatch.setattr(products, "_product", lambda x, w, b=None: x @ w.T)
    products._has_onednn.cache_clear()
    try:
        assert not products._has_onednn(torch.float32)
    finally:
        products._has_onednn.cache_clear()
