//! MAP-T.
