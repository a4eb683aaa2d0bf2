//! What Prometheus reads of the link.

use quiver_core::Engine;
use quiver_metrics::{Labels, collect};

use crate::counts::{ALL, Numbers, Word};
use crate::state::Standby;
use crate::translator::Translator;
use quiver_standby::link::State;

/// Let Prometheus read it, while there is a link.
pub(crate) fn start<T: Translator>(engine: &mut Engine) {
    collect(engine, |engine, text| {
        let ([up, active], [records, refused]) = (&T::TEXTS.gauges, &T::TEXTS.counters);
        let Some(standby) = engine.get::<Standby<T>>() else { return };
        let Some(open) = &standby.open else { return };
        text.family(up);
        text.count(&Labels::default(), (open.link.state() == State::Up).into());
        if let Some(is_active) = standby.is_active() {
            text.family(active);
            text.count(&Labels::default(), is_active.into());
        }
        let numbers = Numbers::of(standby);
        text.family(records);
        for number in &ALL {
            if let Some(Word::Record(word)) = number.word {
                text.count(&Labels::new([("outcome", &word)]), (number.read)(&numbers));
            }
        }
        text.family(refused);
        for number in &ALL {
            if let Some(Word::Refusal(word)) = number.word {
                text.count(&Labels::new([("reason", &word)]), (number.read)(&numbers));
            }
        }
    });
}
