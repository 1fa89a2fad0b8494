"""Configuration of the documentation site, which `make docs` builds into `output/site`."""

import logging
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))
os.environ.setdefault("NUMBA_OPT", "1")  # the machine code of the tests and of the command line
os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # the debugger of kernels warns otherwise

from banditrank import __version__

for library in ("fontTools", "traitlets"):  # importing Ray lets all loggers print information
    logging.getLogger(library).setLevel(logging.WARNING)

project = "banditrank"
version = release = __version__
language = "en"
copyright = "the authors of banditrank"  # noqa: A001 - Sphinx's name

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "myst_nb",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "code_blocks",
    "command_reference",
    "images",
    "notebook_downloads",
    "public_api",
    "sidebar_names",
]
exclude_patterns = ["_extensions", "gallery", "generated/gallery/*.ipynb", "generated/gallery/*.py"]
suppress_warnings = [
    "config.cache",  # functions in the settings of the gallery
    "myst-nb.lexer",  # output of shell lines in notebooks
]

# Every reference must lead somewhere, except to names of other libraries: their indexes are on other hosts.
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", rf"{library}(\..*)?")
    for library in (
        "abc",
        "asyncio",
        "collections",
        "concurrent",
        "contextlib",
        "datetime",
        "httpx",
        "matplotlib",
        "np",
        "numpy",
        "os",
        "pandas",
        "pathlib",
        "pd",
        "pl",
        "polars",
        "pyarrow",
        "ray",
        "starlette",
        "types",
        "typing",
        "uvicorn",
    )
]

# Markdown
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# Notebooks are stored without output and run in every build.
nb_execution_mode = "force"
nb_execution_show_tb = True  # an error is a warning, and a warning is an error
nb_execution_timeout = 300
nb_merge_streams = True
nb_ipywidgets_js = {}  # would be loaded from another host

# Docstrings
default_role = "py:obj"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_param = False  # would take the first of several names for a type
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_attr_annotations = False  # they are in the signature
python_use_unqualified_type_names = True
maximum_signature_line_length = 90
add_module_names = False
toc_object_entries_show_parents = "hide"

# Gallery: each picture is made by the script below it.
sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["generated/gallery"],
    "filename_pattern": "plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "capture_repr": (),
    "download_all_examples": False,
    "plot_gallery": "True",
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 10_000,
    "write_computation_times": False,
    "image_scrapers": ("figure_scraper.figure_scraper",),
    "reset_modules": ("matplotlib",),
}

# Appearance: Furo's fonts and scripts are files of the site, and nothing is loaded from another host.
html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = f"banditrank {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_search_summary = False  # reads pages with requests, which browsers refuse for files
html_theme_options = {"top_of_page_buttons": []}
copybutton_prompt_text = r">>> ?|\.\.\. ?|\$ "  # a line `...` is copied as an empty one
copybutton_prompt_is_regexp = True
