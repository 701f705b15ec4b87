"""Simulator of agent-tui: before the agent starts, it checks that the release image can be pulled, and lets a user edit the network.

On a host without a cluster it asks for the rendezvous host instead. It runs in the lab's OS with the standard library alone, as one
file. Titles, buttons, keys, checks and times are upstream's (https://github.com/openshift/agent-installer-utils, tools/agent_tui);
the sentences are our own.
"""
