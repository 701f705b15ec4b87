"""The verbs of coreos-installer."""
