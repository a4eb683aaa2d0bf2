//! Files of subscribers: one a line, in the words of the command.

use std::collections::BTreeMap;
use std::io::Read;

use quiver_tables::prefix::IpPrefix;

use crate::config::Shapers;
use crate::subscribers::{Wanted, check};
use crate::tables::SUBSCRIBERS_MAX;

/// Mistakes that a refusal lists.
const MISTAKES_LISTED_MAX: usize = 100;
/// Bytes of a file at most.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// What is wrong with a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mistakes {
    /// It cannot be read at all.
    Unreadable(String),
    /// These lines are wrong; how many more are not listed.
    Lines { first: Vec<(u32, String)>, more: usize },
}

/// The text of a file.
pub(crate) fn read(file: impl Read) -> Result<String, Mistakes> {
    let mut text = String::new();
    match file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text) {
        Err(error) => Err(Mistakes::Unreadable(error.to_string())),
        Ok(bytes) if bytes as u64 > FILE_BYTES_MAX => {
            Err(Mistakes::Unreadable(format!("it is larger than {FILE_BYTES_MAX} bytes")))
        }
        Ok(_) => Ok(text),
    }
}

/// The subscribers of a text, each of which is sound beside those before it.
pub(crate) fn parse(text: &str, shapers: &Shapers) -> Result<Vec<(String, Wanted)>, Mistakes> {
    let (mut all_wanted, mut first, mut more) = (Vec::new(), Vec::new(), 0);
    let (mut taken, mut lines) = (BTreeMap::new(), BTreeMap::new());
    for (line, number) in text.lines().zip(1_u32..) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let wanted = of_words(line).and_then(|(id, wanted)| {
            if let Some(before) = lines.insert(id.clone(), number) {
                return Err(format!("subscriber {id} stands in line {before} already"));
            }
            check(shapers, &id, &wanted, &taken).map_err(|refusal| refusal.to_string())?;
            Ok((id, wanted))
        });
        match wanted {
            Ok(_) if all_wanted.len() >= SUBSCRIBERS_MAX => {
                let what = format!("it has more than {SUBSCRIBERS_MAX} subscribers");
                return Err(Mistakes::Unreadable(what));
            }
            Ok((id, wanted)) => {
                taken.extend(wanted.addresses.iter().map(|prefix| (*prefix, id.clone())));
                all_wanted.push((id, wanted));
            }
            Err(what) if first.len() < MISTAKES_LISTED_MAX => first.push((number, what)),
            Err(_) => more += 1,
        }
    }
    if first.is_empty() { Ok(all_wanted) } else { Err(Mistakes::Lines { first, more }) }
}

/// `ID profile P [parent P] [upload P] address A/L…`.
fn of_words(line: &str) -> Result<(String, Wanted), String> {
    let mut words = line.split_whitespace();
    let id = words.next().ok_or("no subscriber")?.to_owned();
    let (mut profile, mut parent, mut upload) = (None, None, None);
    let mut addresses = Vec::new();
    while let Some(word) = words.next() {
        let field = match word {
            "profile" => &mut profile,
            "parent" => &mut parent,
            "upload" => &mut upload,
            "address" => {
                addresses = words.by_ref().map(prefix).collect::<Result<_, _>>()?;
                break;
            }
            _ => return Err(format!("'{word}' is no word of a subscriber")),
        };
        let value = words.next().ok_or_else(|| format!("'{word}' has no value"))?;
        if field.replace(value.to_owned()).is_some() {
            return Err(format!("'{word}' stands there twice"));
        }
    }
    let profile = profile.ok_or("no profile")?;
    if addresses.is_empty() {
        return Err("no address".to_owned());
    }
    Ok((id, Wanted { addresses, profile, parent, upload }))
}

fn prefix(text: &str) -> Result<IpPrefix, String> {
    let wrong = || format!("'{text}' is no prefix such as 192.0.2.1/32");
    let (address, length) = text.split_once('/').ok_or_else(wrong)?;
    let address: std::net::IpAddr = address.parse().map_err(|_| wrong())?;
    let length: u8 = length.parse().map_err(|_| wrong())?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    if length <= bits { Ok(IpPrefix::new(address, length)) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_a_subscriber_with_all_of_its_prefixes() {
        let line = "a profile p parent s upload u address 10.0.0.1/32 2001:db8::/64";
        let (id, wanted) = of_words(line).expect("reads");
        assert_eq!((id.as_str(), wanted.addresses.len()), ("a", 2));
        assert_eq!(wanted.addresses[1].to_string(), "2001:db8::/64");
        assert_eq!((wanted.parent.as_deref(), wanted.upload.as_deref()), (Some("s"), Some("u")));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, why) in [
            ("a", "no profile"),
            ("a profile p", "no address"),
            ("a profile p profile q address 1.2.3.4/32", "twice"),
            ("a profile", "no value"),
            ("a rate 5", "no word"),
            ("a profile p address 1.2.3.4", "no prefix"),
            ("a profile p address 1.2.3.4/33", "no prefix"),
        ] {
            let what = of_words(line).expect_err("refused");
            assert!(what.contains(why), "{line}: {what}");
        }
    }

    proptest! {
        #[test]
        fn no_line_panics(line in "\\PC*") {
            let _ = of_words(&line);
        }
    }
}
