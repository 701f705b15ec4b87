"""Booting the machines of a lab.

How each boot mode does it (`modes`), how a machine is driven (`bmc`, `domain`), in which order (`sequence`), and the whole of it for a
plan (`lab`).

A BMC kind is a module like `redfish` and a row in `bmc.KINDS`; a boot mode is a row in `modes.MODES` and a name in `plan.model.BootMode`.
"""
