"""Screens of machines as text: pictures, fonts, keys, and steps on a screen."""

from __future__ import annotations
