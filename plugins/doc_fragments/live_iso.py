"""Common documentation of the modules that change a live ISO."""

from __future__ import annotations


class ModuleDocFragment:
    """Options of a module that works in place or writes a copy."""

    DOCUMENTATION = r"""
options:
  path:
    description: A CoreOS live ISO.
    type: path
    required: true
  dest:
    description:
      - Write the changed image to this file, and leave O(path) alone. Without it the image is changed in place.
      - An existing file is kept if it already is the changed image, and replaced otherwise.
    type: path
  mode:
    description: Permissions of O(dest).
    type: str
    default: '0600'
"""
