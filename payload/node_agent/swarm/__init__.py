"""The swarm: thousands of no-op hosts in one process, which talk to an assisted service as real agents do.

They share the conversation (`..protocol`) with the real agent; what a host is made of comes from hardware profiles, and
nothing of the machine that runs the swarm is looked at or changed.
"""
