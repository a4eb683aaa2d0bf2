//! Counts and rates as people read them.

/// A count with commas.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate with a unit: `1.234 Mpps`.
pub fn scaled(value: f64, unit: &str) -> String {
    match value.abs() {
        v if v >= 1e9 => format!("{:.3} G{unit}", value / 1e9),
        v if v >= 1e6 => format!("{:.3} M{unit}", value / 1e6),
        v if v >= 1e3 => format!("{:.3} k{unit}", value / 1e3),
        _ => format!("{value:.1} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_scaled() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(scaled(1_234_000.0, "pps"), "1.234 Mpps");
        assert_eq!(scaled(12.0, "pps"), "12.0 pps");
    }
}
