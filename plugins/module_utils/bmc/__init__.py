"""What drives machines through their BMCs.

A kind of BMC is a file or a folder here, as `redfish`, and a row of `kinds.KINDS`; all that plans, inventories and messages have of a
kind is in its `Kind`. `machine` is what booting needs of a machine, `quirks` what BMCs of any kind may do in their own way.
"""
