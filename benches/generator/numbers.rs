//! Numbers as people read them: ratios, times, thousands set apart.

/// A ratio: several times as much, or a part of it.
pub(crate) fn times(ratio: f64) -> String {
    match ratio >= 1.0 {
        true => format!("{} ×", short(ratio)),
        false => format!("1/{}", short(1.0 / ratio)),
    }
}

/// A number with as many digits as say something.
pub(crate) fn short(number: f64) -> String {
    match number {
        number if number < 1.0 => format!("{number:.2}"),
        number if number < 10.0 => format!("{number:.1}"),
        number => grouped(number),
    }
}

/// Microseconds, or milliseconds where it is thousands of them.
pub(crate) fn micros(micros: f64) -> String {
    match micros < 1000.0 {
        true => format!("{} µs", short(micros)),
        false => format!("{} ms", short(micros / 1000.0)),
    }
}

/// A whole number with its thousands set apart; a small one keeps a digit.
pub(crate) fn grouped(number: f64) -> String {
    if number < 10.0 {
        return format!("{number:.1}");
    }
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
