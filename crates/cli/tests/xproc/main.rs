//! The scenarios with real processes, real files and real signals: registry and runner.
//!
//! Contract: one line for each scenario, `ok`, `skipped` or `FAILED`, those that failed once more, and a
//! last line with the counts; exit code 1 when one failed. Arguments choose scenarios by number or by a part of the name. The
//! same program is every child: with a role as its first argument it plays that role.
//!
//! "Table" is 64 slots and a grace of 3 epochs unless a scenario says otherwise. The watchdog's scans
//! are made one by one, so that lateness is counted exactly and a busy machine fails nothing.
#![forbid(unsafe_code)]

mod apart;
mod barrier;
mod burdens;
mod child;
mod churn;
mod controllers;
mod death;
mod demos;
mod elections;
mod false_deaths;
mod files;
mod forks;
mod layout;
mod leads;
mod leaving;
mod lines;
mod matrix;
mod misuse;
mod namespaces;
mod networks;
mod observers;
mod orders;
mod owners;
mod pace;
mod pair;
mod proxy;
mod rights;
mod roles;
mod runs;
mod scene;
mod setup;
mod silence;
mod standby;
mod steps;
mod takeovers;
mod tally;
mod watches;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use scene::Scene;

/// One scenario.
struct Scenario {
    number: u32,
    name: &'static str,
    needs: Needs,
    run: fn(&Scene),
}

/// What a scenario needs of the machine.
#[derive(Clone, Copy)]
enum Needs {
    Nothing,
    /// To become another user.
    Root,
    /// To mount a file system.
    Mounts,
    /// To make pid and time namespaces, by `unshare` and `nsenter`.
    Namespaces,
    /// To make network namespaces with a bridge.
    Networks,
    /// To run a program in Python.
    Python,
    /// Core dumps that are written to the process's folder.
    CoreFiles,
}

macro_rules! scenarios {
    ($($number:literal $needs:ident $module:ident::$name:ident,)*) => {
        &[$(Scenario {
            number: $number,
            name: stringify!($name),
            needs: Needs::$needs,
            run: $module::$name,
        },)*]
    };
}

const SCENARIOS: &[Scenario] = scenarios![
    1 Nothing death::killed_worker_is_reported_dead_and_its_units_once,
    2 Nothing death::idle_deaths_never_fill_the_table,
    3 Nothing death::death_of_a_large_worker_is_seen_at_once,
    4 Nothing silence::stopped_worker_is_fenced_and_cannot_commit,
    6 Nothing silence::units_marked_between_scan_and_acknowledgement_are_never_lost,
    8 Nothing silence::watchdog_killed_half_way_loses_nothing,
    9 Nothing standby::one_of_two_watchdogs_ticks_and_the_other_takes_over,
    10 Nothing false_deaths::watchdog_that_was_stopped_accuses_nobody,
    11 Nothing false_deaths::starved_machine_kills_nobody,
    12 Nothing death::stop_within_the_grace_is_nothing,
    13 Nothing forks::a_fork_child_is_no_life_of_its_parent,
    14 Nothing owners::executing_another_program_is_a_death,
    15 Nothing death::zombie_is_dead,
    16 Nothing owners::opening_and_closing_the_files_again_is_no_death,
    17 Namespaces namespaces::a_reused_pid_neither_hides_a_death_nor_kills_the_next,
    18 Namespaces namespaces::first_processes_of_three_pid_namespaces_are_told_apart,
    19 Nothing misuse::stale_handle_writes_nothing,
    20 Nothing misuse::numbers_out_of_range_are_typed_errors,
    21 Nothing files::what_is_no_table_is_refused_by_name,
    22 Nothing files::create_on_a_live_table_attaches,
    23 Nothing files::killed_creator_leaves_nothing_half_made,
    24 Nothing files::many_creators_at_once_share_one_table,
    25 Nothing files::replaced_file_is_noticed,
    26 Mounts rights::full_file_system_is_an_error_and_no_signal,
    27 Root rights::other_user_is_refused_with_the_mode,
    28 Nothing observers::random_bytes_harm_no_call,
    29 Nothing observers::no_source_reads_the_wall_clock,
    30 Nothing misuse::words_at_their_maximum_wrap_or_retire,
    31 Nothing misuse::full_table_names_the_oldest_owners,
    32 Nothing churn::snapshots_of_a_churning_table_are_never_torn,
    33 Root rights::observer_sees_all_and_writes_nothing,
    34 CoreFiles owners::a_core_dump_delays_the_death_and_doubles_nothing,
    35 Nothing owners::a_process_lives_on_without_its_first_thread,
    36 Namespaces namespaces::equal_keeper_threads_of_two_pid_namespaces_are_told_apart,
    37 Nothing leaving::units_of_one_who_leaves_are_handed_back,
    38 Nothing churn::mark_beside_unregister_never_reaches_the_next_owner,
    39 Nothing silence::paused_watchdog_does_not_touch_the_next_owner,
    40 Namespaces namespaces::a_shifted_clock_proves_no_death,
    41 Namespaces namespaces::who_dies_claiming_is_replaced_by_its_namesake,
    42 Nothing forks::a_dropped_table_is_never_written_by_the_kernel,
    43 Nothing forks::a_fork_child_that_drops_its_copy_takes_nothing,
    44 Nothing death::deaths_found_by_recyclers_are_reported,
    45 Nothing files::reset_of_a_live_table_cuts_the_old_one_off,
    46 Nothing standby::a_recycled_slot_holds_no_lease,
    47 Nothing matrix::every_row_of_the_truth_matrix_has_the_wanted_verdict,
    50 Nothing elections::killed_leader_is_replaced_with_no_watchdog,
    51 Nothing elections::stopped_leader_is_fenced_and_its_token_is_refused,
    52 Nothing elections::of_64_candidates_at_once_never_two_hold_one_term,
    53 Nothing leads::one_of_many_leads_runs_its_command_whoever_is_killed,
    54 Nothing leads::command_of_a_lead_that_hangs_is_ended_before_the_next_one_starts,
    60 Nothing barrier::barrier_of_sixteen_is_never_early_and_never_stuck_whoever_is_killed,
    61 Nothing barrier::stopped_member_holds_the_others_up_until_it_is_fenced,
    62 Nothing barrier::death_of_the_one_awaited_releases_the_others_at_once,
    63 Nothing barrier::death_without_certificate_is_proven_by_those_who_wait,
    70 Nothing runs::service_that_tells_no_progress_any_more_is_fenced_and_started_again,
    71 Python runs::python_service_is_watched_killed_and_passed_on,
    72 Nothing watches::each_verdict_is_handed_to_a_command_until_it_takes_it_and_never_again,
    73 Nothing watches::a_command_that_hangs_stalls_no_verdict_and_a_standby_gives_its_units_again,
    74 Nothing watches::a_watch_that_was_stopped_while_another_took_over_acknowledges_nothing,
    102 Nothing takeovers::killed_primary_is_replaced_and_its_output_goes_on,
    104 Nothing takeovers::stopped_primary_that_goes_on_drives_nothing,
    105 Nothing takeovers::zombie_that_hears_no_partner_is_demoted_by_the_plant,
    107 Nothing takeovers::cut_pair_has_one_writer_and_is_one_again_when_healed,
    109 Nothing takeovers::primary_that_is_not_heard_is_replaced_once,
    110 Nothing takeovers::primary_that_does_not_hear_keeps_its_role_and_both_say_so,
    111 Nothing takeovers::dead_path_of_two_is_named_and_changes_nothing,
    145 Nothing takeovers::switch_over_loses_no_cycle_and_is_refused_without_a_standby,
    147 Nothing takeovers::standby_that_was_stopped_listens_before_it_judges,
    148 Nothing burdens::busy_machine_causes_no_false_takeover,
    154 Nothing controllers::primary_whose_controller_hangs_is_replaced,
    155 Nothing controllers::node_ends_with_its_controller_and_the_output_goes_on,
    156 Nothing burdens::storm_of_junk_costs_no_time_and_no_role,
    157 Nothing burdens::node_with_another_key_is_nobody,
    160 Networks networks::killed_primary_is_replaced_across_a_bridge,
    161 Networks networks::primary_whose_port_left_the_bridge_is_replaced_and_comes_back,
    162 Networks networks::primary_without_carrier_is_replaced_and_comes_back,
    163 Networks networks::primary_whose_frames_reach_only_the_plant_is_replaced_once,
    170 Nothing demos::demo_shows_every_fault_and_a_sound_pair,
    171 Nothing controllers::loop_around_the_plant_is_continued_without_a_jump,
    172 Namespaces apart::nodes_whose_clocks_began_at_other_times_are_one_pair,
    173 Nothing apart::second_of_a_kind_in_a_folder_ends_and_harms_nothing,
];

/// What the first failing assertion of a scenario said.
static FAILURE: Mutex<Option<String>> = Mutex::new(None);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((roles::ROLE_ARGUMENT, rest)) = arguments
        .split_first()
        .map(|(first, rest)| (first.as_str(), rest))
    {
        return roles::play(rest);
    }
    std::panic::set_hook(Box::new(|panic| {
        let mut failure = FAILURE.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(panic.to_string());
    }));
    let chosen: Vec<&Scenario> = SCENARIOS
        .iter()
        .filter(|scenario| scenario.is_chosen(&arguments))
        .collect();
    let (mut passed, mut skipped) = (0, 0);
    let mut failed = Vec::new();
    for scenario in &chosen {
        match scenario.run_alone() {
            Outcome::Passed => passed += 1,
            Outcome::Skipped => skipped += 1,
            Outcome::Failed(line) => failed.push(line),
        }
    }
    for line in failed {
        println!("{line}");
    }
    let count = chosen.len();
    println!("xproc: {count} scenarios, {passed} passed, {skipped} skipped");
    ExitCode::from(u8::from(passed + skipped < count || count == 0))
}

enum Outcome {
    Passed,
    Skipped,
    /// With the line that said so.
    Failed(String),
}

impl Scenario {
    fn is_chosen(&self, filters: &[String]) -> bool {
        let mut filters = filters.iter().filter(|filter| !filter.starts_with('-'));
        let mut any = false;
        let matches = filters.any(|filter| {
            any = true;
            filter.parse() == Ok(self.number) || self.name.contains(filter.as_str())
        });
        matches || !any
    }

    fn run_alone(&self) -> Outcome {
        let title = format!("scenario {} {}", self.number, self.name);
        if let Some(reason) = self.needs.missing() {
            println!("{title} ... skipped ({reason})");
            return Outcome::Skipped;
        }
        let start = Instant::now();
        let scene = Scene::set(&title);
        let run = catch_unwind(AssertUnwindSafe(|| (self.run)(&scene)));
        let notes = scene.notes();
        drop(scene);
        let seconds = start.elapsed().as_secs_f64();
        let failure = FAILURE
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if run.is_ok() && failure.is_none() {
            println!("{title} ... ok ({seconds:.1} s{notes})");
            return Outcome::Passed;
        }
        // On one line, for those who look for it.
        let failure = failure.unwrap_or_default().replace('\n', " ");
        let line = format!("{title} ... FAILED: {failure} ({seconds:.1} s)");
        println!("{line}");
        Outcome::Failed(line)
    }
}

impl Needs {
    /// Why the machine does not have it.
    fn missing(self) -> Option<String> {
        let is_root = rustix::process::geteuid().is_root();
        match self {
            Self::Nothing => None,
            Self::Root | Self::Mounts | Self::Namespaces | Self::Networks if !is_root => {
                Some("not root".to_owned())
            }
            Self::Root => None,
            Self::Mounts => {
                let mounts = rustix::mount::fsopen("tmpfs", rustix::mount::FsOpenFlags::empty());
                mounts
                    .err()
                    .map(|_| "may not mount a file system".to_owned())
            }
            Self::Namespaces => namespaces::missing(),
            Self::Networks => networks::missing(),
            Self::Python => runs::python_missing(),
            Self::CoreFiles => owners::missing(),
        }
    }
}
