//! Meters beside the text of the RFCs.

mod meters;
