"""Booting the machines of a lab.

How a machine is driven (`bmc`, `domain`), in which order (`sequence`), and the whole of it for a plan (`lab`).

A BMC kind is a module like `redfish` with its entry in `bmc.CONNECT`, and a row in `plan.bmcs.KINDS`; a boot mode is a row in
`plan.modes.MODES`.
"""
