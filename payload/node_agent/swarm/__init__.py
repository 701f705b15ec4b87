"""The swarm: thousands of simulated hosts in one process, which communicate with an assisted service as real agents do.

They share the protocol (`..protocol`) with the node agent; the inventory of a host comes from hardware profiles, and
the machine that runs the swarm is neither inspected nor changed.
"""
