"""The OpenShift API of an installed cluster: client, the watcher behind `wait-for install-complete`, checks."""
