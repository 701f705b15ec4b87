"""Nodes that join an installed cluster: the installer's add-nodes workflow (openshift/installer `pkg/asset/agent/joiner`)."""
