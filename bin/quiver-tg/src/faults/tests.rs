//! What may stand in a profile.

use super::*;

fn refused(faults: Faults) -> String {
    faults.check().expect_err("must be refused")
}

#[test]
fn impossible_faults_are_refused_with_what_would_be_possible() {
    assert_eq!(Faults::default().check(), Ok(()));
    assert!(refused(Faults { loss: 1.5, ..Faults::default() }).contains("loss 1.5 is outside 0..=1"));
    assert!(refused(Faults { delay: f64::NAN, ..Faults::default() }).contains("delay"));
    assert!(refused(Faults { loss: 0.6, corrupt: 0.6, ..Faults::default() }).contains("at most 1"));
    assert!(refused(Faults { loss_run: 0, ..Faults::default() }).contains("loss_run 0"));
    assert!(refused(Faults { delay_us: 0, ..Faults::default() }).contains("delay_us 0"));
}
