//! `lab compare`: plays the same membership events through MLS and through Quiver; with `--radio`, through any scheme
//! over a radio.

use std::time::Duration;

use clap::Args;
use quiver_contenders::schemes::SchemeKind;
use quiver_report::{OutputArgs, length_of_time};

use super::{Presentation, making};
use crate::compare::radio::{self, Carrier, RadioComparison, RadioPlan};
use crate::compare::{ComparisonPlan, MlsComparison, measure, report};
use crate::{LabError, Result};

pub(super) const ABOUT: &str = "\
Plays the same membership events through MLS (RFC 9420, crate mls-rs) and through Quiver, flat and tree: a group forms, \
its key expires, one drone leaves, one joins, 10 % leave, 10 % join. Both sides are real, and a member that follows must \
hold the leader's key after each event. Measured are CPU time at the leader, at one member and at one newcomer, and bytes.

MLS comes twice. `one committer`: the leader has added everybody and nobody else ever committed, which is what a swarm \
with a leader gets. `warm tree`: a member of each pair has committed once, which is MLS at its best.

With --radio, schemes compete over one radio in virtual time: Quiver flat and tree, AinQ as published, one sealed key to \
each, LKH (RFC 2627), the re-key of Group OSCORE, MLS. For each event: bytes and frames on air, airtime, energy, processor \
time, and the time until 50, 99 and 100 % have the key; beside them what no figure shows, and what an adversary finds. \
docs/contenders.md says how to add a scheme.";

const EXAMPLES: &str = "\
Each comparison gets a folder of its own under results/, with report.html to read, a CSV per event, an SVG per plot and \
report.json. Times are CPU times: other work on the machine hardly disturbs them, but measure on an idle one for figures \
to keep.

Examples:
  lab compare                          100 to 2,000 drones, then as far as MLS goes
  lab compare --drones 100,500         these sizes and no others: seconds
  lab compare --budget 5m              more time for MLS, so that warm trees grow larger
  lab compare --drones 2000 --json     for scripts, on standard output
  lab compare --radio 802.15.4 --loss 2% --drones 50,200,1000,2000     every scheme over one radio
  lab compare --radio lora-sf7 --loss 10% --quick                      small groups: under two minutes

Ctrl-C loses nothing that is finished: each system is written at each size, into a folder …-unfinished until all is done.

Exit codes:
  0  everything was measured, and members and leader held the same keys
  1  they did not, or the results could not be written
  2  wrong usage";

#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompareArgs {
    /// Group sizes. Without them 100,500,1000,2000 and then twice as many each time, as far as MLS goes
    /// within the budget
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(i64::from(ComparisonPlan::LEAST)..=i64::from(ComparisonPlan::MOST)))]
    drones: Vec<u32>,
    /// Limit of CPU time of each system for each size, preparation included; beyond it is cut, and the report
    /// says so
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = length_of_time)]
    budget: Duration,
    /// Seed for Quiver's random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Let all schemes compete over this radio: 802.15.4, ble, lora-sf7 … lora-sf12, wifi, ideal, or tcp for a
    /// reliable stream to each member. Group sizes are then 50,200,1000,2000 unless --drones names others
    #[arg(long, value_name = "RADIO")]
    radio: Option<Carrier>,
    /// Share of frames that the radio loses, as 2% or 0.02
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = share, requires = "radio")]
    loss: f64,
    /// Small groups: under two minutes
    #[arg(long, requires = "radio", conflicts_with = "drones")]
    quick: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// A share from 0 to below 1, in per cent or as a fraction.
fn share(text: &str) -> Result<f64, String> {
    let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share =
        number.trim().parse::<f64>().map_err(|_| "not a share such as 2% or 0.02".to_owned())? / whole;
    // Beyond this nothing arrives in any time that somebody would wait for.
    if (0.0..=0.9).contains(&share) { Ok(share) } else { Err("not in 0 to 90 %".into()) }
}

impl CompareArgs {
    /// The plan over a radio, if one was asked for.
    fn radio_plan(&self) -> Result<Option<RadioPlan>> {
        let Some(carrier) = self.radio else { return Ok(None) };
        let mut drones = match (self.drones.is_empty(), self.quick) {
            (false, _) => self.drones.clone(),
            (true, true) => vec![20, 50],
            (true, false) => vec![50, 200, 1000, 2000],
        };
        drones.sort_unstable();
        drones.dedup();
        if let Some(many) = drones.last().filter(|many| **many > RadioPlan::MOST) {
            let most = RadioPlan::MOST;
            return Err(LabError::Usage(format!("--drones {many}: over a radio at most {most}")));
        }
        let (loss, budget, seed) = (self.loss, self.budget, self.seed);
        let schemes = SchemeKind::ALL.to_vec();
        Ok(Some(RadioPlan { carrier, loss, drones, schemes, budget, seed }))
    }

    fn plan(&self) -> Result<ComparisonPlan> {
        if self.budget.is_zero() {
            return Err(LabError::Usage("--budget 0s leaves nothing to be measured: try 60s".into()));
        }
        let plan = ComparisonPlan { budget: self.budget, seed: self.seed, ..ComparisonPlan::default() };
        if self.drones.is_empty() {
            return Ok(plan);
        }
        let mut drones = self.drones.clone();
        drones.sort_unstable();
        drones.dedup();
        Ok(ComparisonPlan { drones, onward: false, ..plan })
    }

    /// The command of the lab that makes the same report.
    fn command(&self) -> String {
        let mut command = String::from("compare");
        if let Some(radio) = self.radio {
            command.push_str(&format!(" --radio {radio} --loss {}", self.loss));
        }
        if self.quick {
            command.push_str(" --quick");
        }
        if !self.drones.is_empty() {
            let drones: Vec<String> = self.drones.iter().map(u32::to_string).collect();
            command.push_str(&format!(" --drones {}", drones.join(",")));
        }
        format!(
            "{command} --budget {} --seed {}",
            humantime::format_duration(self.budget).to_string().replace(' ', ""),
            self.seed
        )
    }
}

/// Measures, prints and writes the comparison. Each size of each system is written as soon as it is finished, so that Ctrl-C
/// loses none.
pub(super) fn compare(args: &CompareArgs) -> Result<()> {
    let plan = args.plan()?;
    let mut bars = args.output.begin().map_err(LabError::Usage)?;
    let mut presentation = Presentation::new(&args.output);
    let making = making(&args.command());
    if let Some(plan) = args.radio_plan()? {
        let mut keep = |so_far: &RadioComparison| presentation.keep(&radio::report(so_far, making.clone()));
        let comparison = radio::measure(&plan, &mut bars, &mut keep)?;
        drop(bars);
        let report = radio::report(&comparison, making);
        presentation.write(&report);
        presentation.print(&[report])?;
        return match comparison.violations.first() {
            None => Ok(()),
            Some((scheme, drones, violation)) => {
                let name = scheme.name();
                Err(LabError::Broken(format!("{name}, {drones} drones: {violation}")))
            }
        };
    }
    let mut keep = |so_far: &MlsComparison| presentation.keep(&report(so_far, making.clone()));
    let comparison = measure(&plan, &mut bars, &mut keep)?;
    drop(bars);
    let report = report(&comparison, making);
    presentation.write(&report);
    presentation.print(&[report])
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        args: CompareArgs,
    }

    fn parse(words: &[&str]) -> Option<CompareArgs> {
        Some(Only::try_parse_from(std::iter::once(&"compare").chain(words)).ok()?.args)
    }

    #[test]
    fn sizes_that_are_named_are_the_only_ones() {
        assert_eq!(parse(&[]).unwrap().plan().unwrap(), ComparisonPlan::default());
        let plan = parse(&["--drones", "500,100,500", "--budget", "5s"]).unwrap().plan().unwrap();
        assert_eq!((plan.drones, plan.onward, plan.budget), (vec![100, 500], false, Duration::from_secs(5)));
    }

    #[test]
    fn sizes_too_small_or_too_large_and_empty_budgets_are_refused() {
        for words in [["--drones", "7"], ["--drones", "131073"], ["--drones", "many"], ["--budget", "much"]] {
            assert!(parse(&words).is_none(), "{words:?}");
        }
        assert!(matches!(parse(&["--budget", "0s"]).unwrap().plan(), Err(LabError::Usage(_))));
    }

    #[test]
    fn a_radio_changes_the_plan_and_loss_needs_one() {
        let args = parse(&["--radio", "802.15.4", "--loss", "2%", "--drones", "200,50"]).unwrap();
        let plan = args.radio_plan().unwrap().unwrap();
        assert_eq!(
            (plan.carrier.to_string(), plan.loss, plan.drones),
            ("802.15.4".into(), 0.02, vec![50, 200])
        );
        assert_eq!(
            args.command(),
            "compare --radio 802.15.4 --loss 0.02 --drones 200,50 --budget 1m --seed 1"
        );
        assert!(parse(&[]).unwrap().radio_plan().unwrap().is_none());
        let quick = parse(&["--radio", "tcp", "--loss", "0.1", "--quick"]).unwrap();
        assert_eq!(quick.radio_plan().unwrap().unwrap().drones, [20, 50]);
        for words in [["--loss", "2%"], ["--radio", "smoke"]] {
            assert!(parse(&words).is_none(), "{words:?}");
        }
        for loss in ["x", "-1%", "95%", "nan", "2 apples"] {
            assert!(parse(&["--radio", "wifi", "--loss", loss]).is_none(), "{loss}");
        }
        let many = parse(&["--radio", "wifi", "--drones", "131072"]).unwrap();
        assert!(matches!(many.radio_plan(), Err(LabError::Usage(_))));
    }

    #[test]
    fn a_report_names_the_command_that_repeats_it() {
        let command = parse(&["--drones", "100,500", "--budget", "90s"]).unwrap().command();
        assert_eq!(command, "compare --drones 100,500 --budget 1m30s --seed 1");
        assert_eq!(parse(&[]).unwrap().command(), "compare --budget 1m --seed 1");
    }
}
