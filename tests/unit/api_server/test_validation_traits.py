"""What a validation carries is what state machines, API and report read: there is no second table."""

from __future__ import annotations

import pytest
from ansible_collections.agentlab.ocp.payload.api_server import validations


@pytest.mark.parametrize("table", [validations.HOST, validations.CLUSTER], ids=["host", "cluster"])
def test_a_table_has_each_validation_once(table: tuple[validations.Validation[object], ...]) -> None:
    assert len({entry.ident for entry in table}) == len({entry.check for entry in table}) == len(table)


def test_every_validation_is_in_a_table() -> None:
    """One that has the decorator and no line in a table would never be evaluated."""
    found = {
        value.ident
        for module in (
            validations.cluster,
            validations.cluster_networks,
            validations.hardware,
            validations.network,
            validations.services,
            validations.vips,
        )
        for value in vars(module).values()
        if isinstance(value, validations.Validation)
    }
    assert found <= {entry.ident for entry in validations.HOST} | {entry.ident for entry in validations.CLUSTER}
