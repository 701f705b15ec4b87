"""The OpenShift API of a control-plane member: REST over the store, as kubectl, oc and Kubernetes' client libraries call it.

- `server`: the order in which a request is handled, and what this member forwards to the leader
- `access`: users, bearer tokens, permissions of groups
- `requests`: what a request is about: its object, verb and body
- `discovery`: groups, resources and OpenAPI documents
- `reading`: get, list and watch
- `writing`: create, update, patch and delete
- `errors`: errors as Status objects
"""
