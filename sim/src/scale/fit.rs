//! Fits the growth of a quantity: constant, linear or a power of the size, whichever the figures bear out.

use quiver_report::Unit;

/// Upper 97.5 % quantiles of Student's t distribution for 1, 2, … degrees of freedom; the last one stands for more.
const QUANTILES: [f64; 11] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201];
/// A power that explains so much is none by chance, although an interval from three points is wide.
const EXPLAINED: f64 = 0.9;
/// Exponent so small that such a power counts as no growth.
const NO_GROWTH: f64 = 0.1;
/// Exponents are compared with this accuracy.
const ACCURACY: f64 = 1e-6;

/// The form that describes a quantity y of groups of n drones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Form {
    /// y = c: the interval of the exponent includes 0, and a power explains little or hardly grows.
    Constant(f64),
    /// y = c + d·n: its errors are smaller than those of the power.
    Linear { offset: f64, each: f64 },
    /// y = a·nᵇ.
    Power,
}

/// The best fit of y = a·n^b by least squares of the logarithms, and the form that suits best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fit {
    /// The factor a.
    pub(super) factor: f64,
    /// The exponent b.
    pub(super) exponent: f64,
    /// Half of the 95 % interval of b.
    pub(super) uncertainty: f64,
    /// The part of the variation of the logarithms that a·n^b explains.
    pub(super) r_squared: f64,
    /// The form that suits best.
    pub(super) form: Form,
}

impl Fit {
    /// `None` for fewer than three different sizes, or figures that have no logarithm.
    #[expect(clippy::cast_precision_loss, reason = "few points")]
    pub(super) fn of(points: &[(f64, f64)]) -> Option<Self> {
        let usable: Vec<(f64, f64)> = points.iter().copied().filter(|(x, y)| *x > 0.0 && *y > 0.0).collect();
        let mut sizes: Vec<f64> = usable.iter().map(|(x, _)| *x).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        sizes.dedup();
        if sizes.len() < 3 {
            return None;
        }
        let logarithms: Vec<(f64, f64)> = usable.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
        let count = logarithms.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| logarithms.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let sum = |of: &dyn Fn(f64, f64) -> f64| {
            logarithms.iter().map(|point| of(point.0 - x, point.1 - y)).sum::<f64>()
        };
        let (xx, xy, yy) = (sum(&|dx, _| dx * dx), sum(&|dx, dy| dx * dy), sum(&|_, dy| dy * dy));
        let exponent = xy / xx;
        let factor = (y - exponent * x).exp();
        // Errors of the power, in logarithms: a line has two parameters.
        let errors = (yy - exponent * xy).max(0.0);
        let freedom = logarithms.len() - 2;
        let quantile = QUANTILES[(freedom - 1).min(QUANTILES.len() - 1)];
        let uncertainty = quantile * (errors / freedom as f64 / xx).sqrt();
        // Figures that are all the same are explained by any line that is level.
        let r_squared = if yy > 0.0 { 1.0 - errors / yy } else { 1.0 };
        let may_be_zero = exponent.abs() <= uncertainty + ACCURACY;
        let line = linear(&usable).filter(|line| line.1 + ACCURACY * ACCURACY < errors);
        let (form, left) = line.unwrap_or((Form::Power, errors));
        let is_explained = yy <= 0.0 || 1.0 - left / yy >= EXPLAINED;
        let is_level = may_be_zero && (!is_explained || exponent.abs() < NO_GROWTH);
        let form = if is_level { Form::Constant(y.exp()) } else { form };
        Some(Self { factor, exponent, uncertainty, r_squared, form })
    }

    /// The figure that the form gives for a group of this size.
    pub(super) fn at(&self, drones: f64) -> f64 {
        match self.form {
            Form::Constant(always) => always,
            Form::Linear { offset, each } => offset + each * drones,
            Form::Power => self.factor * drones.powf(self.exponent),
        }
    }

    /// The form as text, with its constants.
    pub(super) fn formula(&self, unit: Unit) -> String {
        match self.form {
            Form::Constant(always) => format!("{}, constant", unit.show(always)),
            Form::Linear { offset, each } => format!("{} + {}·n", unit.show(offset), small(unit, each)),
            Form::Power => format!("{}·n^{:.2}", small(unit, self.factor), self.exponent),
        }
    }
}

/// Part of a unit for each drone: fractions of a byte, too.
fn small(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Bytes if value < 99.5 => format!("{} B", Unit::Number.show(value)),
        _ => unit.show(value),
    }
}

/// The line c + d·n of least relative errors, neither c nor d of which is negative, and the squares of its errors in
/// logarithms.
fn linear(points: &[(f64, f64)]) -> Option<(Form, f64)> {
    // A weight of 1/y² makes errors relative, as those of logarithms are.
    let sum = |of: fn(f64, f64) -> f64| points.iter().map(|(x, y)| of(*x, *y) / (y * y)).sum::<f64>();
    let (weights, x, y) = (sum(|_, _| 1.0), sum(|x, _| x), sum(|_, y| y));
    let (xx, xy) = (sum(|x, _| x * x), sum(|x, y| x * y));
    let determinant = weights * xx - x * x;
    if determinant <= 0.0 {
        return None;
    }
    let (offset, each) = ((y * xx - x * xy) / determinant, (weights * xy - x * y) / determinant);
    if offset < 0.0 || each <= 0.0 {
        return None;
    }
    let errors = points.iter().map(|(x, y)| (y / (offset + each * x)).ln().powi(2)).sum::<f64>();
    Some((Form::Linear { offset, each }, errors))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [f64; 4] = [10.0, 100.0, 1000.0, 5000.0];

    fn fit(of: impl Fn(f64) -> f64) -> Fit {
        Fit::of(&SIZES.map(|x| (x, of(x)))).unwrap()
    }

    #[test]
    fn constants_of_a_power_are_found() {
        for b in [0.5, 0.8, 1.5, 2.0, -1.0] {
            let fit = fit(|x| 3.0 * x.powf(b));
            assert!((fit.exponent - b).abs() < 1e-9 && (fit.factor - 3.0).abs() < 1e-6, "{fit:?}");
            assert!((fit.r_squared - 1.0).abs() < 1e-6 && fit.uncertainty < 1e-5, "{fit:?}");
            assert_eq!(fit.form, Form::Power);
            assert!((fit.at(7.0) - 3.0 * 7_f64.powf(b)).abs() < 1e-6);
        }
        assert_eq!(fit(|x| 2e-6 * x.sqrt()).formula(Unit::Seconds), "2.00 µs·n^0.50");
    }

    #[test]
    fn what_does_not_grow_has_no_exponent() {
        assert!(matches!(fit(|_| 0.25).form, Form::Constant(c) if (c - 0.25).abs() < 1e-9));
        // Noise of ten percent that rises by chance.
        let noisy = Fit::of(&[(10.0, 0.95), (100.0, 1.1), (1000.0, 0.98), (5000.0, 1.05)]).unwrap();
        assert!(matches!(noisy.form, Form::Constant(_)) && noisy.exponent != 0.0, "{noisy:?}");
        assert_eq!(noisy.formula(Unit::Seconds), "1.02 s, constant");
    }

    #[test]
    fn a_line_with_an_offset_is_no_power() {
        // A power through these would have an exponent of 0.5 or so, whatever the range is.
        let fit = fit(|x| 0.004 + 2e-6 * x);
        let Form::Linear { offset, each } = fit.form else { panic!("{fit:?}") };
        assert!((offset - 0.004).abs() < 1e-9 && (each - 2e-6).abs() < 1e-12, "{fit:?}");
        assert_eq!(fit.formula(Unit::Seconds), "4.00 ms + 2.00 µs·n");
        assert!((fit.at(1000.0) - 0.006).abs() < 1e-9);
        let bytes = self::fit(|x| 300.0 + 12.5 * x);
        assert_eq!(bytes.formula(Unit::Bytes), "300 B + 12.5 B·n");
    }

    #[test]
    fn three_different_sizes_are_needed() {
        assert_eq!(Fit::of(&[(10.0, 1.0), (100.0, 2.0)]), None);
        assert_eq!(Fit::of(&[(1.0, 1.0), (1.0, 2.0), (2.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(Fit::of(&[(1.0, 0.0), (2.0, 0.0), (3.0, 0.0)]), None);
        assert_eq!(Fit::of(&[]), None);
    }

    #[test]
    fn scattered_figures_explain_nothing_and_are_no_power() {
        let scattered = Fit::of(&[(1.0, 1.0), (10.0, 100.0), (100.0, 1.0)]).unwrap();
        assert!(scattered.r_squared < 0.01 && matches!(scattered.form, Form::Constant(_)), "{scattered:?}");
    }

    #[test]
    fn growth_that_three_points_show_is_no_constant_although_its_interval_is_wide() {
        let fit = Fit::of(&[(100.0, 24.0), (1000.0, 60.0), (3000.0, 140.0)]).unwrap();
        assert!(fit.uncertainty > fit.exponent && matches!(fit.form, Form::Linear { .. }), "{fit:?}");
        let level = Fit::of(&[(100.0, 5.0), (1000.0, 5.01), (3000.0, 5.02)]).unwrap();
        assert!(matches!(level.form, Form::Constant(_)), "{level:?}");
    }

    #[test]
    fn repetitions_narrow_the_interval() {
        let once = [(10.0, 10.5), (100.0, 95.0), (1000.0, 1_040.0)];
        let thrice: Vec<(f64, f64)> = once.iter().flat_map(|point| [*point; 3]).collect();
        let (once, thrice) = (Fit::of(&once).unwrap(), Fit::of(&thrice).unwrap());
        assert!(
            (once.exponent - thrice.exponent).abs() < 1e-9 && thrice.uncertainty * 4.0 < once.uncertainty
        );
    }
}
