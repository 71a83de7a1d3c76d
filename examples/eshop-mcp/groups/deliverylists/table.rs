//! The table of the delivery list tools.

use crate::{
    ctx::Role,
    groups::deliverylists::{cancel, confirm, create, item, list, pick, print},
    tool::{Effect, Entry, NONE, Spec, read, write},
};

/// Makes the group's tools.
pub(crate) fn tools() -> Vec<Entry> {
    let mut tools = reads();
    tools.extend(plans());
    tools.extend(picks());
    tools.extend(papers());
    tools
}

fn reads() -> Vec<Entry> {
    vec![
        read(
            Spec {
                name: "deliverylists_list",
                title: "List delivery lists",
                does: "Lists delivery lists as cards with their order, picker and progress, by state, warehouse, picker, carrier, variant, day and whether they are printed; the oldest come first unless sorted otherwise.",
                when: "planning the work of the warehouse: what waits to be picked, what somebody is at, what was packed on a day. For shelves and lines of one list use deliverylists_get; for confirmed orders that have no list yet use orders_list with status confirmed; for parcels use balikobot_shipments_list.",
                effects: NONE,
                limits: "cards only, at most 100 a page; orders collected at the store mostly have no list.",
                effect: Effect::Read,
                role: Role::Viewer,
            },
            list::list,
        ),
        read(
            Spec {
                name: "deliverylists_get",
                title: "Get a delivery list",
                does: "Gives one delivery list whole: lines in the order of the shelves with bar code, planned and picked pieces and what is on hand, the address, both notes, the moments, and the tools that its state allows next.",
                when: "before any write on a list, for its version and line numbers, or to see what is missing. To find the list of an order use deliverylists_list with order_id; for prices use orders_get; for a text to print use deliverylists_print.",
                effects: NONE,
                limits: "on_hand is the count of this moment and includes pieces reserved for other orders; see store_stock_get for what is free.",
                effect: Effect::Read,
                role: Role::Viewer,
            },
            list::get,
        ),
    ]
}

fn plans() -> Vec<Entry> {
    vec![
        write(
            Spec {
                name: "deliverylists_create",
                title: "Make a delivery list",
                does: "Makes a delivery list in draft for an order: for all pieces that no other list has, or for the lines and quantities given.",
                when: "a confirmed order is to be picked, or the rest of one whose list was confirmed short. To change a draft use deliverylists_item_set; to send a part as an order of its own use orders_split first; to begin work on the list use deliverylists_pick_start.",
                effects: "adds the list with the shelf that each variant was last picked from, and a line in the order's timeline and the activity log; neither the stock nor the order's state change, as the pieces are reserved for the order already.",
                limits: "only for orders that are confirmed or picking; a piece is on one list at a time, cancelled lists not counted; the shelf is `unknown` for a variant that was never picked; the list belongs to the order's warehouse.",
                effect: Effect::Add,
                role: Role::Clerk,
            },
            create::create,
        ),
        write(
            Spec {
                name: "deliverylists_item_set",
                title: "Set a line of a list",
                does: "Sets one line of a delivery list: in draft how many pieces to pick, while picking how many were found and taken, and in either state its shelf.",
                when: "the picker reports a count or another shelf, or a draft is to hold less. To count all lines as picked at once use deliverylists_confirm with all_picked; to take pieces off the order itself use orders_item_remove; to correct what is on hand use store_stock_adjust.",
                effects: "changes the line and writes the activity log; stock and order stay as they are until the list is confirmed; a new shelf is proposed for later lists too.",
                limits: "only in draft or picking; picked is the whole count, at most what the list plans and what is on hand; planned at most what was ordered and is on no other list; the last line cannot be taken off.",
                effect: Effect::Set,
                role: Role::Clerk,
            },
            item::set,
        ),
    ]
}

fn picks() -> Vec<Entry> {
    vec![
        write(
            Spec {
                name: "deliverylists_pick_start",
                title: "Start picking",
                does: "Starts work on a delivery list: it goes from draft to picking, with a person who picks.",
                when: "somebody takes the list and goes to the shelves. Before that lines are planned with deliverylists_item_set; a list is made with deliverylists_create; when done use deliverylists_confirm.",
                effects: "stamps the moment and the picker, moves a confirmed order to picking with a line in its timeline, and writes the activity log; the stock does not change.",
                limits: "only a draft of an order that is confirmed or picking; once started the planned quantities are fixed; a viewer cannot be the picker.",
                effect: Effect::Destroy,
                role: Role::Clerk,
            },
            pick::start,
        ),
        write(
            Spec {
                name: "deliverylists_confirm",
                title: "Confirm a list",
                does: "Confirms that what the list says was picked: these pieces leave the stock, and an order with nothing left to take becomes packed.",
                when: "the goods lie on the packing table. To set counts before use deliverylists_item_set; to take a confirmation back use deliverylists_cancel; to hand the parcel over afterwards use balikobot_shipment_create.",
                effects: "lowers on hand and reserved by the picked pieces with a sale movement each, moves the order to packed or, while pieces are left, to picking; writes timeline and activity log. A later change of the order to shipped does not take these pieces again; no e-mail is sent.",
                limits: "only while picking and with the order confirmed, picking or packed in the same warehouse; refuses when nothing is picked, more than is on hand, or less than planned unless allow_short.",
                effect: Effect::Destroy,
                role: Role::Clerk,
            },
            confirm::confirm,
        ),
        write(
            Spec {
                name: "deliverylists_cancel",
                title: "Cancel a list",
                does: "Cancels a delivery list for good; one that was confirmed gives its pieces back to the shelf, reserved for the order as before.",
                when: "the list was a mistake, goods were damaged or the order is to be changed after packing. To cancel the order with its lists use orders_cancel; to change only a line use deliverylists_item_set; for goods that come back from a customer use orders_refund.",
                effects: "raises on hand and reserved by a return movement for each variant that the list took, moves a picking or packed order back to confirmed, or to picking while another list is at work; payments stay; writes timeline and activity log.",
                limits: "confirmed lists take role manager and an order that has not shipped; pieces that never left the stock are not put back; cannot be undone, but deliverylists_create makes a new list.",
                effect: Effect::Destroy,
                role: Role::Clerk,
            },
            cancel::cancel,
        ),
    ]
}

fn papers() -> Vec<Entry> {
    vec![write(
        Spec {
            name: "deliverylists_print",
            title: "Print a list",
            does: "Writes a delivery list as plain text: a picking list with shelves, bar codes and boxes to tick, or a delivery note for the parcel.",
            when: "somebody picks from paper, or the parcel needs a note. For the data use deliverylists_get; for a carrier's label use balikobot_label_get; for a tax document use invoices_get.",
            effects: "the first print stamps the list as printed and raises its version, later ones are marked as a copy; each writes the activity log; nothing is sent to a printer.",
            limits: "not for cancelled lists; no prices; the left part of a line is cut where it does not fit the width; a delivery note of a list not yet confirmed shows planned pieces.",
            effect: Effect::Set,
            role: Role::Clerk,
        },
        print::print,
    )]
}
