//! What lies over a store, as clients see it.
