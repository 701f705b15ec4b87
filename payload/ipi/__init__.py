"""Installer-provisioned infrastructure of the lab payload: a real Ironic, and a simulator of `openshift-install create cluster`."""
