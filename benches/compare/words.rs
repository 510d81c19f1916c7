//! Figures as text.

use crate::timing::Unit;

/// `value` of `unit`, with three digits and a prefix.
pub(crate) fn quantity(unit: Unit, value: f64) -> String {
    let scales: &[(f64, &str)] = match unit {
        Unit::Wall | Unit::Cpu => &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
        Unit::Memory | Unit::Exchange => &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
    };
    let fits = scales.iter().find(|(scale, _)| value >= *scale);
    match fits.or(scales.last()) {
        Some((scale, name)) => format!("{} {name}", digits(value / scale)),
        None => digits(value),
    }
}

/// Three digits that count, more before the point where there are more.
pub(crate) fn digits(value: f64) -> String {
    let places = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        size if size >= 0.1 => 3,
        size if size >= 0.01 => 4,
        _ => 5,
    };
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// What is compared, in words.
pub(crate) fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Wall => "time",
        Unit::Cpu => "CPU time",
        Unit::Memory => "more memory",
        Unit::Exchange => "bytes exchanged",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_has_the_prefix_that_fits() {
        for (unit, value, expected) in [
            (Unit::Wall, 1.2345, "1.23 s"),
            (Unit::Wall, 0.0312, "31.2 ms"),
            (Unit::Cpu, 4.2e-6, "4.2 µs"),
            (Unit::Cpu, 5e-10, "0.5 ns"),
            (Unit::Memory, 320e6, "320 MB"),
            (Unit::Memory, 0.0, "0 B"),
        ] {
            assert_eq!(quantity(unit, value), expected);
        }
        assert_eq!(digits(1234.6), "1235");
        assert_eq!(digits(0.02), "0.02");
    }
}
