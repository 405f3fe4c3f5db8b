"""Programs of several processes. Each runs alone too, with the same result; docs/guide/distributed.md tells more."""
