//! Tests of the rules by which a resource is followed.
