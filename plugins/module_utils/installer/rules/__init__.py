"""Rules for inputs, by what they are about; `validation.validate` applies them in the order of upstream."""

from __future__ import annotations
