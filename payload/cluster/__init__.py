"""Simulator of the installed cluster: OpenShift API with its store, machine-config server, kubelet and operators.

Real are TLS, client certificates, certificate requests, objects that are stored, replicated, watchable and
patchable, nodes that register and renew their leases, virtual addresses that fail over. The workload is simulated.
"""
