"""What the repository keeps: neither weights nor data, and no large file."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("benchmarks", "docs", "packaging", "skactive", "tests")
# Weights, checkpoints, pickles and tables; one compressed set belongs to the package.
REFUSED = {".bin", ".gz", ".joblib", ".npy", ".npz", ".onnx", ".parquet", ".pkl", ".pt"}
REFUSED |= {".pth", ".safetensors", ".zip"}
KEPT = {"skactive/datasets/docstrings.json.gz"}
MOST = 4_000_000  # bytes
MADE = {
    "_build",
    "__pycache__",
    "auto_gallery",
    "generated",
    "images",
}  # ignored by git


def find_refused(root):
    """Return the files that do not belong in the repository."""
    files = [path for folder in FOLDERS for path in (root / folder).rglob("*.*")]
    files = [x for x in files if x.is_file() and not MADE & {*x.parts}]
    return {
        path.relative_to(root).as_posix()
        for path in files
        if path.suffix in REFUSED or path.stat().st_size > MOST
    }


def test_no_weights_and_no_data_are_kept():
    assert find_refused(ROOT) == KEPT


def test_weights_and_large_files_are_found(tmp_path):
    folder = tmp_path / "benchmarks" / "checkpoints"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").touch()
    (folder / "small.json").touch()
    (folder / "large.json").write_bytes(bytes(MOST + 1))
    found = {"benchmarks/checkpoints/model.safetensors"}
    assert find_refused(tmp_path) == found | {"benchmarks/checkpoints/large.json"}
