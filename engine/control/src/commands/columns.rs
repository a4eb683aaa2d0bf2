//! The number formats and columns of the shows that operators know by sight.

/// Put text in the middle of a column; of an odd surplus, the larger half stands in front.
pub(super) fn centre(text: &str, width: usize) -> String {
    let surplus = width.saturating_sub(text.chars().count());
    let front = surplus.div_ceil(2);
    format!("{}{text}{}", " ".repeat(front), " ".repeat(surplus - front))
}

/// Two digits behind the point and no zero in front of it: `.99`, `45.96`, `0.00`.
pub(super) fn two_digits(value: f64) -> String {
    let text = format!("{value:.2}");
    match text.strip_prefix("0.") {
        Some("00") | None => text,
        Some(digits) => format!(".{digits}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_numbers_look_as_operators_know_them() {
        assert_eq!(centre("State", 10), "   State  ");
        assert_eq!(centre("too long", 4), "too long");
        assert_eq!(two_digits(0.99), ".99");
        assert_eq!(two_digits(0.0), "0.00");
        assert_eq!(two_digits(45.955), "45.95");
        assert_eq!(two_digits(256.0), "256.00");
    }
}
