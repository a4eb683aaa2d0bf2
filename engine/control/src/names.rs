//! Names of things that exist: how commands find an interface, and completion offers it.

/// What the router knows by name. Kinds are `interface`, `node`, and those that features declare
/// with [`ValueType::name_of`](crate::types::ValueType::name_of).
pub trait Names {
    /// The number of the thing of this kind and name.
    fn find(&self, kind: &str, name: &str) -> Option<u32> {
        let _ = (kind, name);
        None
    }

    /// All names of this kind.
    fn list(&self, kind: &str) -> Vec<String> {
        let _ = kind;
        Vec::new()
    }
}

/// Nothing has a name.
impl Names for () {}
