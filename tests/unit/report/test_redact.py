from __future__ import annotations

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.report.redact import HIDDEN, redact

KEY = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----"


@pytest.mark.parametrize("text, secret", [
    (KEY, "MHcCAQEE"),
    ("USER_AUTH_TOKEN=eyJhbGciOiJFUzI1NiJ9.eyJhdXRoX3NjaGVtZSI6InUifQ.c2lnbmF0dXJl", "eyJhbGci"),
    ('{"auths": {"r": {"auth": "b2NwLXVzZXI6b2NwLXBhc3M="}}}', "b2NwLXVzZXI6"),
    ('pullSecret: \'{\\"auths\\": {\\"r\\": {\\"auth\\": \\"b2NwLXVzZXI6\\"}}}\'', "b2NwLXVzZXI6"),
    ("  password: hunter22", "hunter22"),
    ("DB_PASS=admin99", "admin99"),
    ("GET https://admin:password@192.0.2.1:8000/redfish", ":password@"),
    ("kubeadmin is aaaaa-bbbbb-ccccc-ddddd", "aaaaa-bbbbb"),
    ('"passwordHash": "$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy"', "N9qo8uLO"),
])
def test_secrets_go(text, secret):
    out = redact(text, ["aaaaa-bbbbb-ccccc-ddddd"])
    assert secret not in out and HIDDEN in out


def test_the_rest_stays():
    text = "level=info msg=Host: master-0, reached installation stage Writing image to disk: 63%\nhttps://192.0.2.1:8000/x"
    assert redact(text) == text
