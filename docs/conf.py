"""Sphinx configuration of the site.

Build everything, offline, with warnings as errors (several minutes, as every Python
block and every gallery example runs). It needs Chromium and its driver, for pictures:

    python -m sphinx -W --keep-going -j 4 docs docs/_build/html

Build one page in seconds, without the gallery and the API, to see how it looks (links
to other pages are reported as broken):

    SKACTIVE_DOCS_ONLY=guides/few_labels python -m sphinx docs docs/_build/one
"""

import os
import sys
from pathlib import Path

import skactive

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from site_needs import find_lack
from sphinx.errors import ConfigError

only = os.environ.get("SKACTIVE_DOCS_ONLY")
if lack := find_lack(HERE, only):
    raise ConfigError(lack)

# Kernels of the pages and the gallery inherit these.
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(HERE / "_ext"), os.environ.get("PYTHONPATH")])
)
os.environ["TQDM_DISABLE"] = "1"
os.environ.pop("MPLBACKEND", None)  # "Agg" would keep pictures out of the pages
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

project = "skactive"
author = "The skactive developers"
copyright = "The skactive developers, BSD-3-Clause"
release = skactive.__version__
version = ".".join(release.split(".")[:2])

root_doc = only or "index"
include_patterns = [f"{only}.*"] if only else ["**"]
exclude_patterns = ["_build", "gallery", "auto_gallery/**.ipynb"]

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "result_pages",
    "skactive_site",
    "api_pages",
    "strategy_catalog",
]
if not only:
    extensions += ["sphinx_gallery.gen_gallery", "sphinx_llms_txt"]

# Pages: each Python block runs, all blocks of a page in one kernel.
nb_custom_formats = {".md": "skactive_site.read_page"}
nb_execution_mode = "force"
nb_execution_excludepatterns = ["results/*"]
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_output_stderr = "remove-warn"
nb_merge_streams = True
nb_ipywidgets_js = {}  # no page has widgets, and none loads scripts from elsewhere
nb_number_source_lines = False
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["mystnb.unknown_mime_type"]

# API: a page per exported name, from the numpydoc docstrings.
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["auto_gallery"],
    "filename_pattern": r"plot_",
    "ignore_pattern": r"(^|/)_",
    "subsection_order": [
        f"gallery/{name}" for name in ("strategies", "models", "comparing", "people")
    ],
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("skactive",),
    "backreferences_dir": "api/backreferences",
    "reference_url": {"skactive": None},
    "abort_on_example_error": False,  # all failures are listed; they fail the build
    "only_warn_on_example_error": False,
    "parallel": 2,
    "min_reported_time": 0,
    "write_computation_times": True,
    "show_memory": False,
    "remove_config_comments": True,
    "show_signature": False,
    "capture_repr": ("_repr_html_", "__repr__"),
    "image_scrapers": ("matplotlib",),
}

html_theme = "pydata_sphinx_theme"
html_title = f"skactive {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "skactive"},
    "navbar_end": ["version-switcher", "theme-switcher"],
    "switcher": {"json_url": "_static/switcher.json", "version_match": version},
    "show_nav_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {"index": []}
copybutton_exclude = ".linenos, .gp, .go"
check_links = not only
llms_txt_uri_template = "{docname}.html"  # relative, wherever the site is
llms_txt_title = "skactive"
llms_txt_summary = "Active learning for text that behaves like scikit-learn."
