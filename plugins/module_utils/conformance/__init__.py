"""The conformance suite: what clients of an installation rely on, as small cases against the API of a kubeconfig.

- `model`: a case, its registration, and what it is given
- `api`: requests, watches and expectations
- `discovery`, `objects`, `patches`, `lists`, `watches`, `certificates`, `leases`, `configuration`, `identities`: the cases
- `suite`: selection and execution

A case needs the administrator's kubeconfig and nothing else; other identities are impersonated. It creates objects only in a
namespace of its own, or with a name that begins with `conformance-`, and removes them, so that it also suits a real cluster.
"""
