"""The assisted-service: REST client, and the watcher behind `wait-for bootstrap-complete`."""
