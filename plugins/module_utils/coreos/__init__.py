"""Images of CoreOS: read, customize, build, write."""
