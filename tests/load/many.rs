//! Many objects: lists in pages at one version while things change, a restart, memory.
