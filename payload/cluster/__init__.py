"""Stand-in of the installed cluster: OpenShift API with its store, machine-config server, kubelet and operators.

What is real: TLS, client certificates, certificate requests, objects that are stored, replicated, watchable and
patchable, nodes that register and renew their leases, virtual addresses that move. What is simulated: the workload.
"""
