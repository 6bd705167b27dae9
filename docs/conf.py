"""How Sphinx builds these pages. Nothing is fetched: no intersphinx, no remote fonts."""

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "fragtrack"
author = "the fragtrack authors"
project_copyright = author
release = tomllib.loads((HERE.parent / "Cargo.toml").read_text())["workspace"]["package"]["version"]
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "fragtrack_tables"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3

napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"

html_theme = "furo"
html_title = f"fragtrack {release}"
html_show_sourcelink = False
