"""What a CI job is, and what OpenShift CI's later steps read of it."""
