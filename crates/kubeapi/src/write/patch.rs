//! A difference to an object: JSON patch, merge patch, strategic merge patch.
