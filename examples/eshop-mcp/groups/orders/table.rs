//! The table of the order tools.

use crate::{
    ctx::Role,
    groups::orders::{cancel, create, items, list, read as sheet, refund, search, split, status, timeline, update},
    tool::{Effect, Entry, NONE, Spec, read, write},
};

/// Makes the group's tools.
pub(crate) fn tools() -> Vec<Entry> {
    let mut tools = lists();
    tools.extend(sheets());
    tools.extend(takes());
    tools.extend(lines());
    tools.extend(money());
    tools.extend(ends());
    tools
}

fn lists() -> Vec<Entry> {
    vec![
        read(
            spec(
                "orders_list",
                "List orders",
                [
                    "Lists orders as cards by state, customer, warehouse and day, newest first unless sorted otherwise.",
                    "browsing a queue, such as all confirmed orders of a warehouse. For lines and addresses of one order use orders_get; to filter by payment, product, country, amount or text use orders_search; for counts over time use analytics_revenue_timeseries.",
                    "cards only, at most 100 a page; amounts are in each order's own currency and are not converted.",
                ],
            ),
            list::list,
        ),
        read(
            spec(
                "orders_search",
                "Search orders",
                [
                    "Finds orders by any mix of text, states, channel, payment, product, country, warehouse, carrier, amount and days, and sums the matches per currency and state.",
                    "the question has conditions that orders_list lacks, or asks how many and how much. For a plain queue use orders_list; for words in other records use core_search; for comparisons over time use analytics_revenue_summary.",
                    "text is matched as a part, ignoring case for ASCII only; sums are per currency and not converted; newest first.",
                ],
            ),
            search::search,
        ),
    ]
}

fn sheets() -> Vec<Entry> {
    vec![
        read(
            spec(
                "orders_get",
                "Get an order",
                [
                    "Gives one order whole: lines with prices and discounts, both addresses, notes, papers and parcels, and the states it can go to next.",
                    "before any write on an order, for its version and line numbers. Without a code use orders_search or core_search; for what happened when use orders_timeline; for the content of a paper use invoices_get or deliverylists_get.",
                    "papers and parcels are codes only.",
                ],
            ),
            sheet::get,
        ),
        read(
            spec(
                "orders_timeline",
                "Story of an order",
                [
                    "Tells what happened to an order and when: states, lines, discounts, payments, refunds, invoices, reminders, parcel events and staff notes, in one sequence.",
                    "a customer asks where the order is, or somebody asks who changed it. For the present state use orders_get; for a parcel's live position use balikobot_track; for one person's writes use core_activity_list.",
                    "at most 100 events a call; is_cut says that there are more.",
                ],
            ),
            timeline::timeline,
        ),
    ]
}

fn spec(name: &'static str, title: &'static str, [does, when, limits]: [&'static str; 3]) -> Spec {
    Spec { name, title, does, when, effects: NONE, limits, effect: Effect::Read, role: Role::Viewer }
}

fn takes() -> Vec<Entry> {
    vec![
        write(
            Spec {
                name: "orders_create",
                title: "Create an order",
                does: "Takes down an order for a customer at today's prices of the customer's list and currency, and prices the shipping.",
                when: "a customer orders by phone, by e-mail or in the store. To add to an order that has not been picked use orders_item_add; a customer that is not known yet comes first with customers_create.",
                effects: "reserves the pieces in the warehouse, stores a given shipping address with the customer, writes timeline and activity log; no e-mail is sent and nothing is charged.",
                limits: "all lines ship from one warehouse and must be free there; on invoice only within the credit limit; prices cannot be given, see orders_discount_apply.",
                effect: Effect::Add,
                role: Role::Clerk,
            },
            create::create,
        ),
        write(
            Spec {
                name: "orders_update",
                title: "Change an order",
                does: "Changes notes, carrier, payment method, shipping address or warehouse of an order; fields left out stay as they are.",
                when: "the customer corrects something. For lines use orders_item_add and orders_item_remove; for states use orders_status_change; for the customer's own data use customers_update.",
                effects: "a new carrier prices the shipping anew, a new warehouse moves the reserved pieces, a new address is stored with the customer; writes timeline and activity log.",
                limits: "notes at any time, all else only while new, confirmed or on hold; the payment method only while unpaid.",
                effect: Effect::Set,
                role: Role::Clerk,
            },
            update::update,
        ),
        write(
            Spec {
                name: "orders_status_change",
                title: "Move an order on",
                does: "Moves an order to its next state: new > confirmed > picking > packed > shipped > delivered, with on_hold before packing and returned after shipping.",
                when: "work on the order went a step further. To call it off use orders_cancel; to pick and confirm goods piece by piece use deliverylists_pick_start; to hand a parcel to a carrier use balikobot_shipment_create.",
                effects: "shipped takes the pieces out of stock that no delivery list took, and dates the shipping, delivered dates the delivery; other states change nothing else; writes timeline and activity log; no e-mail is sent.",
                limits: "one step at a time as orders_get lists in next_statuses; card and bank transfer must be paid before confirmed; returned does not restock, see orders_refund.",
                effect: Effect::Destroy,
                role: Role::Clerk,
            },
            status::change,
        ),
    ]
}

fn lines() -> Vec<Entry> {
    vec![
        write(
            Spec {
                name: "orders_item_add",
                title: "Add pieces",
                does: "Adds pieces of a variant to an order; the same variant at the same price joins its line, anything else opens a new one.",
                when: "the customer wants more before picking starts. After that use orders_create; to find SKUs use store_variants_list, and to see what is free use store_stock_get.",
                effects: "reserves the pieces in the order's warehouse, recomputes percent discounts and totals, leaves the shipping price as it is, and sets the payment state anew; writes timeline and activity log.",
                limits: "only while new, confirmed or on hold; pieces must be free in the order's warehouse; a price of your own takes role manager.",
                effect: Effect::Add,
                role: Role::Clerk,
            },
            items::add,
        ),
        write(
            Spec {
                name: "orders_item_remove",
                title: "Remove pieces",
                does: "Removes pieces of a line, or the whole line with its discounts.",
                when: "the customer wants less before picking starts. To remove everything use orders_cancel; to send a part later use orders_split; after delivery use orders_refund.",
                effects: "frees the pieces in the order's warehouse, takes them off its delivery lists, recomputes percent discounts and totals, leaves the shipping price as it is, and sets the payment state anew; writes timeline and activity log.",
                limits: "only while new, confirmed or on hold; the last pieces of an order cannot be removed; nothing is paid back, see orders_refund.",
                effect: Effect::Destroy,
                role: Role::Clerk,
            },
            items::remove,
        ),
        write(
            Spec {
                name: "orders_split",
                title: "Split an order",
                does: "Moves pieces into a new order of the same customer, with the same state, address, carrier and payment.",
                when: "a part can be sent now and the rest is not there yet. To drop pieces use orders_item_remove; to ship from another warehouse use orders_update on the new order afterwards.",
                effects: "creates an order that refers to this one, takes reserved pieces, percent discounts and the part's share of payments along but not delivery lists, ships it free; writes timeline and activity log.",
                limits: "only while new, confirmed or on hold; something must stay; not with discounts of a fixed amount or refunds.",
                effect: Effect::Destroy,
                role: Role::Clerk,
            },
            split::split,
        ),
    ]
}

fn money() -> Vec<Entry> {
    vec![
        write(
            Spec {
                name: "orders_discount_apply",
                title: "Grant a discount",
                does: "Grants a discount on a line or on the whole order, in percent or as an amount; several add up.",
                when: "a price was promised, or something went wrong before the order left. After payment use orders_refund; for a lasting price use store_price_set.",
                effects: "recomputes totals; keeps the reason with the discount; a percent discount follows later changes of lines; writes timeline and activity log.",
                limits: "only while new, confirmed or on hold; at most half of what is left to pay for the line or order; cannot be taken back one by one.",
                effect: Effect::Destroy,
                role: Role::Manager,
            },
            refund::discount,
        ),
        write(
            Spec {
                name: "orders_refund",
                title: "Refund an order",
                does: "Pays money back for pieces of an order, or an amount without reference to pieces, and can put the pieces back on the shelf.",
                when: "goods came back, were damaged, or a paid order was cancelled. Before payment use orders_discount_apply; to correct the invoice use invoices_credit_note_create afterwards.",
                effects: "raises what is refunded, sets the payment state, with restock raises the stock; writes timeline and activity log; the bank is not told, so the money has to be sent by hand.",
                limits: "never more than was paid and not yet refunded, nor more pieces than the line has; the shipping price comes back only by amount; cannot be undone.",
                effect: Effect::Destroy,
                role: Role::Manager,
            },
            refund::refund,
        ),
    ]
}

fn ends() -> Vec<Entry> {
    vec![write(
        Spec {
            name: "orders_cancel",
            title: "Cancel an order",
            does: "Calls an order off for good before it has left the warehouse.",
            when: "the customer, the stock or the payment lets it fail. To wait instead use orders_status_change to on_hold; to drop a part use orders_item_remove; for an issued invoice use invoices_cancel besides.",
            effects: "frees all reserved pieces, puts back what delivery lists took, cancels these lists, parcels not handed over and draft invoices; writes timeline and activity log; no e-mail is sent.",
            limits: "not after shipped; cannot be undone; money comes back only with orders_refund.",
            effect: Effect::Destroy,
            role: Role::Manager,
        },
        cancel::cancel,
    )]
}
