//! Tests of what the client is told: kubeconfigs, refusals, awkward objects.
