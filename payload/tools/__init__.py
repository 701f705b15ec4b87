"""Programs of a release that a real assisted service calls: `oc` and `openshift-install`, as far as it needs them."""
