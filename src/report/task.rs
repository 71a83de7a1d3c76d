//! What a whole task costs: every request sends again what came before, so a menu is paid once a step. Pure sums over
//! requests, the same for a task that is imagined and for one that was measured.

use serde::Serialize;

/// A task as it is imagined.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Plan {
    /// Calls of upstream tools.
    pub steps: usize,
    /// Skills that are loaded before the first of them, where no set says it.
    pub loads: usize,
    /// Tokens of one result.
    pub result_tokens: usize,
    /// Tokens by which the model writes a call.
    pub call_tokens: usize,
    /// What a token costs that the prompt cache has, against one that it does not.
    pub cache_read: f64,
}

/// One request to the model.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// Tokens of the definitions and instructions that it sends.
    pub menu: usize,
    /// Tokens by which the conversation grows after it: the model's call and its result.
    pub grows: usize,
}

/// What a task costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Cost {
    /// To the model.
    pub requests: usize,
    /// Tokens sent with all of them.
    pub sent: usize,
    /// The same in tokens at the full price, where a prompt cache has what the request before sent.
    pub with_cache: f64,
}

/// A task by each way of offering tools.
#[derive(Debug, Clone, Serialize)]
pub struct Task {
    /// The skills that are loaded.
    pub set: String,
    /// Calls before the first that does something.
    pub discovery_calls: usize,
    /// Every tool of every upstream listed, as without gatekey.
    pub direct: Cost,
    /// Opened tools are called by key, the list stays.
    pub dispatch: Cost,
    /// Opened tools join the list.
    pub list: Cost,
}

/// What one skill adds to a task.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Opening {
    /// The result of loading it.
    pub(super) load: usize,
    /// Definitions that join the list.
    pub(super) schemas: usize,
}

/// What a task is put together of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Menus {
    /// Every definition.
    pub(super) full: usize,
    /// What a fresh client gets.
    pub(super) start: usize,
    /// What a call by key is longer than one by name.
    pub(super) overhead: usize,
}

/// The sum over `turns`. A prompt cache keeps the beginning that two requests have in common; definitions stand first, so a
/// changed list makes everything new.
pub fn cost(turns: &[Turn], cache_read: f64) -> Cost {
    let mut cost = Cost { requests: turns.len(), ..Cost::default() };
    let (mut history, mut before) = (0, None);
    for turn in turns {
        let whole = turn.menu + history;
        let cached = before.filter(|(menu, _)| *menu == turn.menu).map_or(0, |(_, whole)| whole);
        cost.sent += whole;
        cost.with_cache += as_float(whole - cached) + as_float(cached) * cache_read;
        before = Some((turn.menu, whole));
        history += turn.grows;
    }
    cost
}

/// The task in which the skills of `openings` are loaded one after the other.
pub(super) fn task(set: String, plan: Plan, menus: Menus, openings: &[Opening]) -> Task {
    let ends = |menu| Turn { menu, grows: 0 };
    let steps = |menu, overhead| {
        let grows = plan.call_tokens + overhead + plan.result_tokens;
        std::iter::repeat_n(Turn { menu, grows }, plan.steps).chain([ends(menu)])
    };
    let load = |opening: &Opening| plan.call_tokens + opening.load;
    let loads = openings.iter().map(|opening| Turn { menu: menus.start, grows: load(opening) });
    let mut menu = menus.start;
    let mut growing = Vec::new();
    for opening in openings {
        growing.push(Turn { menu, grows: load(opening) });
        menu += opening.schemas;
    }
    growing.extend(steps(menu, 0));
    let direct: Vec<Turn> = steps(menus.full, 0).collect();
    let dispatch: Vec<Turn> = loads.chain(steps(menus.start, menus.overhead)).collect();
    Task {
        set,
        discovery_calls: openings.len(),
        direct: cost(&direct, plan.cache_read),
        dispatch: cost(&dispatch, plan.cache_read),
        list: cost(&growing, plan.cache_read),
    }
}

pub(super) fn as_float(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_sent_again_and_a_cache_knows_it_unless_the_menu_changed() {
        let turns = [Turn { menu: 100, grows: 10 }, Turn { menu: 100, grows: 10 }, Turn { menu: 150, grows: 0 }];
        let all = cost(&turns, 0.1);
        assert_eq!((all.requests, all.sent), (3, 100 + 110 + 170));
        assert!((all.with_cache - (100.0 + 10.0 + 100.0 * 0.1 + 170.0)).abs() < 1e-9, "{all:?}");
    }

    #[test]
    fn a_task_is_the_sum_that_the_documentation_states() {
        let plan = Plan { steps: 4, loads: 1, result_tokens: 500, call_tokens: 50, cache_read: 0.1 };
        let menus = Menus { full: 100_000, start: 6_000, overhead: 20 };
        let made = task("a".into(), plan, menus, &[Opening { load: 4_000, schemas: 70_000 }]);
        assert_eq!(made.direct.sent, 5 * 100_000 + 550 * (1 + 2 + 3 + 4));
        assert_eq!(made.dispatch.sent, 6 * 6_000 + 4_050 * 5 + 570 * (1 + 2 + 3 + 4));
        assert_eq!(made.list.sent, 6_000 + 5 * 76_000 + 4_050 * 5 + 550 * (1 + 2 + 3 + 4));
        assert_eq!((made.direct.requests, made.dispatch.requests, made.discovery_calls), (5, 6, 1));
        let new = 6_000.0 + 4_050.0 + 4.0 * 570.0;
        assert!((made.dispatch.with_cache - (new + 0.1 * (as_float(made.dispatch.sent) - new))).abs() < 1e-6);
    }
}
