//! The overview of all commands, in groups, with which help begins.

use std::fmt::Write as _;

use clap::CommandFactory;

use super::Arguments;

/// Commands by what they are for. Clap has headings for options alone.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Simulate", &["run", "sweep", "check", "demo"]),
    ("Look", &["report", "serve", "explain", "compare", "export"]),
    ("Judge", &["papers", "acceptance", "search"]),
    ("Real packets (need root)", &["link", "live", "router", "host", "apply", "gateway"]),
    ("Set up", &["new", "build"]),
];

/// Returns the whole command line, as help, completions and man pages show it.
pub(crate) fn command() -> clap::Command {
    let command = Arguments::command();
    let template = template(&command);
    command.help_template(template)
}

/// Returns the commands that may stand at the place of the first one that is unknown.
pub(crate) fn allowed(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut command = Arguments::command();
    for word in words.filter(|word| !word.starts_with('-')) {
        let Some(next) = command.find_subcommand(&word) else { break };
        command = next.clone();
    }
    let shown = command.get_subcommands().filter(|each| !each.is_hide_set());
    shown.map(|each| each.get_name().to_owned()).collect()
}

fn template(command: &clap::Command) -> String {
    let (header, literal) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let mut list = String::new();
    for (group, names) in GROUPS {
        let _ = writeln!(list, "{header}{group}:{header:#}");
        for name in names {
            let about = command.find_subcommand(name).and_then(|each| each.get_about());
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(list, "  {literal}{name:<10}{literal:#}  {about}");
        }
        list.push('\n');
    }
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{header}Options:{header:#}\n{{options}}{{after-help}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_stands_in_one_group_and_on_one_line() {
        let command = Arguments::command();
        let mut shown: Vec<&str> = command
            .get_subcommands()
            .filter(|each| !each.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        assert!(grouped.len() <= 20, "{} commands; a newcomer looks through them all", grouped.len());
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, shown);
        let help = super::command().render_help().to_string();
        let (list, _) = help.split_once("\nOptions:\n").expect("options come after commands");
        for line in list.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
