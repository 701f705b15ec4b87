"""Installer (on every host that is installed) and controller (in the new cluster)."""
