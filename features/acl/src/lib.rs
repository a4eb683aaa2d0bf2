//! Access lists.
