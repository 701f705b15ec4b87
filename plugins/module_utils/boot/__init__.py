"""Booting the machines of a lab.

How a machine is driven (`bmc`, `domain`), in which order (`sequence`), and the whole of it for a plan (`lab`).

A BMC kind is a row of `KINDS` in the library `bmc`; a boot mode is a row in `plan.modes.MODES`.
"""
