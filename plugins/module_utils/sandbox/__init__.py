"""A hypervisor of our own: namespaces, the processes in them, and the services at the lab's gateway."""
