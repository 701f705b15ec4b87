"""Reports of a run: gathered logs and the first cause of a failure, without secrets."""
