//! The subcommand `system-id` of leaders, and system ids as other names of drones.

use async_trait::async_trait;
use clap::{Arg, ArgMatches, Command, FromArgMatches, Subcommand};
use quiver_service::config::Layers;
use quiver_service::drone::Result;
use quiver_service::drone::feature::{
    AliasFeature, CommandFeature, FeatureCaller, FeatureCommand, FeatureRequest,
};
use quiver_service::drone::subcommands::print_status;
use quiver_service::terminal;

use crate::LeaderDatagramFeature;
use crate::arguments::SystemIdCommand;
use crate::leader::{GrantRow, SystemIdRequest};

/// Name of the subcommand, and of the part that answers it.
pub(crate) const SYSTEM_ID: &str = "system-id";

/// Place of the subcommand in the help: beside `send`, with which the leader's own end. The five arguments that all programs
/// have count before them.
const BESIDE_SEND: usize = 10;

impl CommandFeature for LeaderDatagramFeature {
    fn name(&self) -> &'static str {
        SYSTEM_ID
    }

    fn subcommand(&self) -> Command {
        let command = SystemIdCommand::augment_subcommands(Command::new(SYSTEM_ID));
        let command = command.subcommand_required(true).arg_required_else_help(true);
        let about = "MAVLink's system ids: which member speaks as which";
        command.about(about).long_about(None::<&str>).display_order(BESIDE_SEND)
    }

    fn parse(&self, arguments: &ArgMatches) -> std::result::Result<Box<dyn FeatureCommand>, clap::Error> {
        Ok(Box::new(SystemIdCommand::from_arg_matches(arguments)?))
    }
}

#[async_trait(?Send)]
impl FeatureCommand for SystemIdCommand {
    fn after_a_signal(&self) -> &'static str {
        "the running leader may have done it all the same"
    }

    fn flags(&self, layers: Layers) -> quiver_service::Result<Layers> {
        Ok(layers)
    }

    async fn run(self: Box<Self>, caller: &dyn FeatureCaller) -> Result<()> {
        let (request, json) = match *self {
            Self::Grant { name, id } => (SystemIdRequest::Grant { name: name.to_string(), id }, None),
            Self::Withdraw { name } => (SystemIdRequest::Withdraw(name.to_string()), None),
            Self::List { json } => (SystemIdRequest::List, Some(json)),
        };
        let answer = caller.ask(FeatureRequest::new(SYSTEM_ID, &request)?).await?;
        match json {
            None => Ok(terminal::line(&answer.read::<String>()?)?),
            Some(json) => print_status(&answer.read::<Vec<GrantRow>>()?, json, |rows| GrantRow::table(rows)),
        }
    }
}

impl AliasFeature for LeaderDatagramFeature {
    fn part(&self) -> &'static str {
        SYSTEM_ID
    }

    fn kind(&self) -> &'static str {
        "MAVLink system id"
    }

    fn flag(&self) -> Arg {
        let flag = Arg::new("system_id").long("system-id").value_name("ID");
        flag.value_parser(clap::value_parser!(u32).range(1..))
            .help("Its MAVLink system id, where another drone's name is the same number")
    }
}
