//! The table of the customer tools.

use crate::{
    ctx::Role,
    groups::customers::{address, create, credit, list, merge, read as sheet, update},
    tool::{Effect, Entry, NONE, Spec, read, write},
};

/// Makes the group's tools.
pub(crate) fn tools() -> Vec<Entry> {
    let mut tools = reads();
    tools.extend(records());
    tools.extend(decisions());
    tools
}

fn reads() -> Vec<Entry> {
    vec![
        read(
            spec(
                "customers_list",
                "List customers",
                [
                    "Finds customers by any mix of text, kind, segment, country, currency, consent, debts, days and silence, as cards with orders, last order and what they owe.",
                    "looking somebody up, or picking a group to write to. For everything about one use customers_get; for words in other records use core_search; for the best ones by turnover use analytics_top_customers, and for those about to leave analytics_churn_risk.",
                    "text is matched as a part, ignoring case for ASCII only; at most 100 a page; amounts are in each customer's own currency, so sorting by them mixes currencies.",
                ],
            ),
            list::list,
        ),
        read(
            spec(
                "customers_get",
                "Get a customer",
                [
                    "Gives one customer whole: contact, numbers, addresses, credit and debts, purchases per year, latest orders, notes, and the latest changes of the record.",
                    "before any write on a customer, for its version and address numbers, or when somebody calls. Without code or e-mail use customers_list; for all orders use orders_list; for open papers use invoices_list; for lifetime value use analytics_customer_ltv.",
                    "takes exactly one of id and email; orders, notes and changes only up to `recent` each; a merged customer is shown closed, its orders are with the other.",
                ],
            ),
            sheet::get,
        ),
    ]
}

fn spec(name: &'static str, title: &'static str, [does, when, limits]: [&'static str; 3]) -> Spec {
    Spec { name, title, does, when, effects: NONE, limits, effect: Effect::Read, role: Role::Viewer }
}

fn records() -> Vec<Entry> {
    vec![
        write(
            Spec {
                name: "customers_create",
                title: "Create a customer",
                does: "Creates a person or company with billing and shipping address, and names others with the same name or phone.",
                when: "somebody orders for the first time and customers_list does not know them. To change one use customers_update; for another address use customers_address_add; when the answer names a similar one that is the same use customers_merge.",
                effects: "stores the customer and both addresses as defaults; writes the activity log; no e-mail is sent and no login to the e-shop is made.",
                limits: "e-mail and registration number must be new; wholesale prices, payment terms and credit are for companies; the credit limit starts at 0; payment terms over 30 days take role manager.",
                effect: Effect::Add,
                role: Role::Clerk,
            },
            create::create,
        ),
        write(
            Spec {
                name: "customers_update",
                title: "Change a customer",
                does: "Changes name, contact, numbers, segment, currency, payment terms, consent or default address of a customer; fields left out stay as they are.",
                when: "the customer's own data changed. For a new address use customers_address_add; for the credit limit use customers_credit_limit_set; for the address of one order use orders_update.",
                effects: "segment and payment terms hold for later orders and invoices, placed orders keep their prices; buyer data on invoices follows; writes the activity log.",
                limits: "kind and existing addresses cannot change; the currency only without orders, invoices and credit limit; e-mail and registration number must be free; not for merged customers; payment terms over 30 days take role manager.",
                effect: Effect::Set,
                role: Role::Clerk,
            },
            update::update,
        ),
        write(
            Spec {
                name: "customers_address_add",
                title: "Add an address",
                does: "Adds a billing or shipping address to a customer, as default if wanted.",
                when: "the customer moved or ships to a second place for good. For one order only use orders_update; to make a known address the default use customers_update.",
                effects: "with make_default, orders created later take it when none is given; placed orders keep theirs; writes the activity log.",
                limits: "not one that the customer has already; the postcode must have the digits of its country; addresses cannot be changed or removed, since orders refer to them; not for merged customers.",
                effect: Effect::Add,
                role: Role::Clerk,
            },
            address::add,
        ),
    ]
}

fn decisions() -> Vec<Entry> {
    vec![
        write(
            Spec {
                name: "customers_merge",
                title: "Merge customers",
                does: "Joins two records of one customer: moves orders, invoices, addresses, notes and tasks of the duplicate to the one that stays, and closes the duplicate.",
                when: "both are certainly the same; compare them with customers_get before, and try with dry_run. When only data is wrong use customers_update; when they are merely related leave a note with core_note_create.",
                effects: "the one that stays keeps its data and defaults, and takes phone and numbers over only where it has none; the duplicate loses credit and consent; every moved order and invoice gets a new version; writes the activity log of both.",
                limits: "same currency and same kind only; not for customers merged before; credit limits do not add up; cannot be undone.",
                effect: Effect::Destroy,
                role: Role::Manager,
            },
            merge::merge,
        ),
        write(
            Spec {
                name: "customers_credit_limit_set",
                title: "Set a credit limit",
                does: "Sets how much a company may owe on issued invoices, and answers with its credit before and after.",
                when: "a company wants to order on invoice, or pays badly. To see what is used first use customers_get; for how late it pays use analytics_payment_delay; for days to pay use customers_update.",
                effects: "orders_create checks the new limit from now on, placed orders stay; keeps the reason in the customer's history; with review_on adds a task for you; writes the activity log.",
                limits: "in the customer's currency, 1,000,000.00 at most; 0 for persons; not raised while an invoice is more than 30 days past due; a limit below what is owed only stops further orders on invoice.",
                effect: Effect::Set,
                role: Role::Manager,
            },
            credit::set,
        ),
    ]
}
