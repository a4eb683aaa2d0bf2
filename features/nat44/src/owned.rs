//! What the owner of the sessions has, and the life of a session: begun with what it uses of
//! bindings and softwires, and ended.

use quiver_nat_log::{Event, Log};
use quiver_tables::sessions::SessionError;

use crate::alg::Algs;
use crate::bindings::Bindings;
use crate::flows::{Moment, Plan};
use crate::node::Nat44Drop;
use crate::owner::seconds;
use crate::ports::{EXHAUSTED_MAX, Exhausted};
use crate::session::{Direction, NewSession, Session, Writer};
use crate::softwires::table::Softwires;
use crate::standby::Journal;
use crate::tables::Rules;

/// What the owner has.
pub(crate) struct Owner {
    pub writer: Writer,
    pub bindings: Option<Box<Bindings>>,
    /// B4s, while DS-Lite is set up.
    pub softwires: Option<Box<Softwires>>,
    random: u64,
    pub exhausted: Box<[Exhausted; EXHAUSTED_MAX]>,
    /// What helpers know.
    pub algs: Algs,
    /// What is made and ended, for collectors and for the router that stands by.
    pub log: Journal,
}

impl Owner {
    /// `seed` is a secret.
    pub fn new(writer: Writer, algs: Algs, seed: u64, log: Log) -> Owner {
        let exhausted = Box::new([Exhausted::default(); EXHAUSTED_MAX]);
        let log = Journal::new(log);
        Owner { writer, bindings: None, softwires: None, random: seed | 1, exhausted, algs, log }
    }

    /// End the sessions that are over among the next `places`; how many.
    pub fn end_where(
        &mut self,
        rules: &Rules,
        now_ns: u64,
        places: usize,
        is_over: &impl Fn(Session<'_>) -> bool,
    ) -> usize {
        let Owner { writer, bindings, softwires, algs, log, .. } = self;
        log.set_now(now_ns);
        writer.turn(places, |number, words| {
            let session = Session(words);
            let over = is_over(session);
            if over {
                algs.forget(number, session);
                log.session(Event::SessionDelete, number, session);
                if let Some(bindings) = bindings {
                    bindings.release(session, seconds(now_ns), &rules.provider);
                }
                release_softwires(softwires.as_deref(), session, seconds(now_ns));
            } else {
                log.visit(number, session);
            }
            !over
        })
    }

    /// End the sessions for which `ends` holds among `places` from `first` on. The clock hand stays
    /// where it is: it may turn before the next places are looked at.
    pub fn end_from(
        &mut self,
        rules: &Rules,
        now_ns: u64,
        (first, places): (u32, u32),
        ends: &impl Fn(Session<'_>) -> bool,
    ) {
        let Owner { writer, bindings, softwires, algs, log, .. } = self;
        log.set_now(now_ns);
        for number in first..first.saturating_add(places) {
            let session = Session(writer.objects().get(number));
            if !writer.is_live(number) || !ends(session) {
                continue;
            }
            algs.forget(number, session);
            log.session(Event::SessionDelete, number, session);
            if let Some(bindings) = bindings {
                bindings.release(session, seconds(now_ns), &rules.provider);
            }
            release_softwires(softwires.as_deref(), session, seconds(now_ns));
            writer.remove(number);
        }
        writer.collect();
    }

    /// Make a session, with what it uses of bindings; its number.
    pub fn begin_session(
        &mut self,
        rules: &Rules,
        Plan { inside, outside, flags }: Plan,
        first: (Direction, u8),
        Moment { now_s, .. }: Moment,
    ) -> Result<u32, Refused> {
        let new = NewSession { inside, outside, flags, now_s, first };
        let session = self.writer.insert(new.words()).map_err(|error| match error {
            SessionError::Full { .. } | SessionError::Waiting => {
                Refused::Answered(Nat44Drop::SessionsExceeded)
            }
            SessionError::Collides { .. } => Refused::Dies(Nat44Drop::NoTranslation),
            SessionError::Table(_) => Refused::Dies(Nat44Drop::Crowded),
        })?;
        if let Some(bindings) = &mut self.bindings {
            bindings.begin((inside, outside), flags, now_s, rules);
        }
        if let Some(softwires) = &self.softwires {
            softwires.begin([inside.table, outside.table], now_s);
        }
        let made = Session(self.writer.objects().get(session));
        self.log.session(Event::SessionCreate, session, made);
        Ok(session)
    }

    /// The next number of a sequence (xorshift) that begins with a secret.
    pub fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// The B4s of a session that ends have one less.
pub(crate) fn release_softwires(softwires: Option<&Softwires>, session: Session<'_>, now_s: u32) {
    if let Some(softwires) = softwires {
        let table = |direction| session.flow(direction).table;
        softwires.release([table(Direction::InToOut), table(Direction::OutToIn)], now_s);
    }
}

/// Why there is no session, for the caller.
pub(crate) enum Refused {
    /// The packet dies.
    Dies(Nat44Drop),
    /// It is counted, and the sender gets an ICMP error.
    Answered(Nat44Drop),
    /// It is counted, and dies as one without a session.
    Silent(Nat44Drop),
}

impl Refused {
    /// The same without an answer.
    pub fn silent(self) -> Refused {
        match self {
            Refused::Answered(reason) | Refused::Silent(reason) => Refused::Silent(reason),
            Refused::Dies(reason) => Refused::Dies(reason),
        }
    }
}

impl From<Nat44Drop> for Refused {
    fn from(reason: Nat44Drop) -> Refused {
        Refused::Dies(reason)
    }
}
