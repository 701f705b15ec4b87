"""Snapshots: the whole lab at one moment, saved and restored. See docs/architecture/snapshots.md."""
