"""What is kept of a run: gathered logs, the first cause of a failure, and redaction of secrets in both."""
