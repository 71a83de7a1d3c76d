//! The table of the core tools.

use crate::{
    ctx::Role,
    groups::core::{calendar, desk, money, notes, search, tasks},
    tool::{Effect, Entry, NONE, Spec, read, write},
};

/// Makes the group's tools.
pub(crate) fn tools() -> Vec<Entry> {
    let mut tools = desk_tools();
    tools.extend(reference_tools());
    tools.extend(note_tools());
    tools.extend(task_tools());
    tools
}

fn desk_tools() -> Vec<Entry> {
    vec![
        read(
            Spec {
                name: "core_whoami",
                title: "Who am I",
                does: "Tells whose desk this is: login, name, role.",
                when: "before planning writes, or after `forbidden`. About the shop itself: core_shop_info.",
                effects: NONE,
                limits: "only the acting user; the role is read live.",
                effect: Effect::Read,
                role: Role::Viewer,
            },
            desk::whoami,
        ),
        read(
            Spec {
                name: "core_shop_info",
                title: "About the shop",
                does: "Gives the shop's name, contact, home currency, today's date and its people.",
                when: "you need today or a login for a task. Stock per warehouse: store_stock_list.",
                effects: NONE,
                limits: "settings cannot be changed here.",
                effect: Effect::Read,
                role: Role::Viewer,
            },
            desk::shop_info,
        ),
        read(
            Spec {
                name: "core_search",
                title: "Search everything",
                does: "Finds orders, customers, products, invoices and shipments by a word: name, e-mail, SKU, code or number.",
                when: "you have words but no code. With a code: orders_get, customers_get and the like; for many filters on orders: orders_search.",
                effects: NONE,
                limits: "substring match, case-insensitive for ASCII only; newest first per kind.",
                effect: Effect::Read,
                role: Role::Viewer,
            },
            search::search,
        ),
    ]
}

fn reference_tools() -> Vec<Entry> {
    vec![
        read(
            Spec {
                name: "core_currency_convert",
                title: "Convert currency",
                does: "Converts an amount at the shop's accounting rate, rounded half up.",
                when: "comparing amounts in two currencies. Reports convert by themselves: analytics_revenue_summary.",
                effects: NONE,
                limits: "one fixed rate per currency, no history.",
                effect: Effect::Read,
                role: Role::Viewer,
            },
            money::currency_convert,
        ),
        read(
            Spec {
                name: "core_vat_rates_list",
                title: "VAT rates",
                does: "Lists VAT rates by country.",
                when: "checking a rate before pricing. A product's own rate: store_product_get.",
                effects: NONE,
                limits: "rates in force today.",
                effect: Effect::Read,
                role: Role::Viewer,
            },
            money::vat_rates_list,
        ),
        read(
            Spec {
                name: "core_calendar_workdays",
                title: "Count workdays",
                does: "Counts workdays up to `to`, or finds the day `add` workdays later; names the holidays passed.",
                when: "promising a delivery or a due date. A carrier's usual times: balikobot_carriers_list.",
                effects: NONE,
                limits: "give exactly one of `to` and `add`; holidays of 2025 to 2027.",
                effect: Effect::Read,
                role: Role::Viewer,
            },
            calendar::workdays,
        ),
    ]
}

fn task_tools() -> Vec<Entry> {
    vec![
        read(
            Spec {
                name: "core_tasks_list",
                title: "List tasks",
                does: "Lists tasks, most urgent due day first.",
                when: "asking what is to be done. Mere remarks: core_notes_list.",
                effects: NONE,
                limits: "at most 100.",
                effect: Effect::Read,
                role: Role::Viewer,
            },
            tasks::list,
        ),
        write(
            Spec {
                name: "core_task_create",
                title: "Add a task",
                does: "Creates an open task for a colleague.",
                when: "somebody must act. To record a fact: core_note_create.",
                effects: "a line in the activity log; nobody is e-mailed.",
                limits: "`due_on` not in the past.",
                effect: Effect::Add,
                role: Role::Clerk,
            },
            tasks::create,
        ),
    ]
}

fn note_tools() -> Vec<Entry> {
    vec![
        read(
            Spec {
                name: "core_activity_list",
                title: "Activity log",
                does: "Lists who changed what through these tools, newest first.",
                when: "you ask who did something. One order's whole story: orders_timeline.",
                effects: NONE,
                limits: "reads and dry runs leave no line.",
                effect: Effect::Read,
                role: Role::Viewer,
            },
            desk::activity_list,
        ),
        read(
            Spec {
                name: "core_notes_list",
                title: "Notes on a record",
                does: "Lists staff notes on one record, newest first.",
                when: "you want what colleagues wrote. What happened to an order: orders_timeline.",
                effects: NONE,
                limits: "one record per call.",
                effect: Effect::Read,
                role: Role::Viewer,
            },
            notes::list,
        ),
        write(
            Spec {
                name: "core_note_create",
                title: "Add a note",
                does: "Attaches a staff note to a record.",
                when: "a fact should stay with the record. Something to be done: core_task_create.",
                effects: "a line in the activity log.",
                limits: "customers never see it; cannot be edited.",
                effect: Effect::Add,
                role: Role::Clerk,
            },
            notes::create,
        ),
    ]
}
