"""Settings of the documentation site, which `make docs` builds from a copy of the checkout in build/docs/source.

Pages are the files of the checkout, so that their links work there, on a forge and here. The reference of modules, roles and
plugins is written next to them by antsibull-docs.
"""

from __future__ import annotations

from pathlib import Path

import yaml
from pygments.lexers.special import TextLexer
from sphinx.highlighting import lexers

project = "agentlab"
copyright = "agentlab contributors"
release = yaml.safe_load((Path(__file__).resolve().parents[2] / "galaxy.yml").read_text())["version"]

extensions = ["myst_parser", "sphinx_antsibull_ext"]
root_doc = "ci/site/index"
include_patterns = ["*.md", "docs/**.md", "ci/site/*.md", "reference/**.rst"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 4
html_theme = "furo"
html_title = project
html_copy_source = False
lexers["mermaid"] = TextLexer()  # forges draw it; the library that would is not part of a page without a network
