//! The table of the parcel tools.

use crate::{
    ctx::Role,
    groups::balikobot::{branches, cancel, carriers, create, label, shipments, track},
    tool::{Effect, Entry, NONE, Spec, read, write},
};

/// Makes the group's tools.
pub(crate) fn tools() -> Vec<Entry> {
    let mut tools = carrier_tools();
    tools.extend(shipment_tools());
    tools.extend(paper_tools());
    tools.extend(writes());
    tools
}

fn carrier_tools() -> Vec<Entry> {
    vec![
        read(
            spec(
                "balikobot_carriers_list",
                "List carriers",
                [
                    "Lists carriers with prices, costs, countries, limits and usual days, and tells for a parcel or an order which of them take it and why the others do not.",
                    "choosing a carrier for an order or a quote. For the boxes and counters of one use balikobot_branches_search; to put a carrier on an order use orders_update; for how punctual they are use analytics_carrier_performance.",
                    "prices are in CZK before the shop's free-shipping rule; a carrier of kind pickup needs a branch besides.",
                ],
            ),
            carriers::list,
        ),
        read(
            spec(
                "balikobot_branches_search",
                "Find a branch",
                [
                    "Finds boxes and counters where a customer can pick a parcel up, by carrier, words, country, kind and nearness of the postcode.",
                    "a carrier of kind pickup is chosen and balikobot_shipment_create needs the branch. For which carriers have branches use balikobot_carriers_list.",
                    "near means close postcode numbers, not distance by road; words are matched as parts, ignoring case for ASCII only.",
                ],
            ),
            branches::search,
        ),
    ]
}

fn shipment_tools() -> Vec<Entry> {
    vec![
        read(
            spec(
                "balikobot_shipments_list",
                "List shipments",
                [
                    "Lists shipments by state, carrier, order, tracking number, day, cash on delivery and lateness, newest first.",
                    "you look for parcels: those waiting for the driver, those that are late, those of one order. For one parcel whole use balikobot_shipment_get; for its way use balikobot_track; for rates over time use analytics_carrier_performance.",
                    "cards only, at most 100 a page; late compares the expected day with today and knows no holidays.",
                ],
            ),
            shipments::list,
        ),
        read(
            spec(
                "balikobot_shipment_get",
                "Get a shipment",
                [
                    "Gives one shipment whole: recipient, branch, weight, cash, insured worth, cost, moments, and whether it can still be cancelled.",
                    "before balikobot_shipment_cancel, for the version, or to check what was sent. With an order's code only use balikobot_shipments_list; for the events on the way use balikobot_track.",
                    "the pieces inside are those of the order, see orders_get.",
                ],
            ),
            shipments::get,
        ),
    ]
}

fn paper_tools() -> Vec<Entry> {
    vec![
        read(
            spec(
                "balikobot_label_get",
                "Get a label",
                [
                    "Gives the label of a shipment with addresses, weight and cash to collect, as text for label printers or as a PDF in base64.",
                    "the parcel is packed and the label is to be printed or printed again, usually right after balikobot_shipment_create. For the paper with the pieces use deliverylists_print.",
                    "only while created or handed_over; one label a call; the PDF has no barcode and no accents.",
                ],
            ),
            label::get,
        ),
        read(
            spec(
                "balikobot_track",
                "Track a shipment",
                [
                    "Tells where a shipment is: its events in order, its state, the expected day and the carrier's page for the customer.",
                    "a customer asks for the parcel, with our code or the carrier's number. For the whole story of the order use orders_timeline; for all late parcels use balikobot_shipments_list.",
                    "exactly one of id and tracking_no; shows what the carrier has reported so far.",
                ],
            ),
            track::track,
        ),
    ]
}

fn writes() -> Vec<Entry> {
    vec![
        write(
            Spec {
                name: "balikobot_shipment_create",
                title: "Create a shipment",
                does: "Orders the transport of a packed order at a carrier, with weight, cash on delivery and insured worth taken from the order unless given.",
                when: "the goods are in the carton. Before, move the order with orders_status_change; to choose a carrier use balikobot_carriers_list, and a branch balikobot_branches_search; for a parcel sent by mistake use balikobot_shipment_cancel.",
                effects: "registers the parcel at the carrier, which charges the shop; makes label and tracking number; writes the first event and the activity log; the order's state and price stay.",
                limits: "only for orders packed or shipped; one shipment under way per order unless split; country, weight and cash must suit the carrier; the branch must be open and in the recipient's country.",
                effect: Effect::AddOutside,
                role: Role::Clerk,
            },
            create::create,
        ),
        write(
            Spec {
                name: "balikobot_shipment_cancel",
                title: "Cancel a shipment",
                does: "Calls a shipment off at the carrier before the driver has picked it up.",
                when: "weight, branch, carrier or address was wrong, or the parcel is not to leave. To call the whole order off use orders_cancel, which takes its parcels along; for a parcel on its way use balikobot_track.",
                effects: "tells the carrier, ends the tracking number and its label, frees the cash on delivery for another parcel; writes an event and the activity log; the order stays as it is.",
                limits: "only while created; cannot be undone, a new shipment gets a new number.",
                effect: Effect::DestroyOutside,
                role: Role::Clerk,
            },
            cancel::cancel,
        ),
    ]
}

fn spec(name: &'static str, title: &'static str, [does, when, limits]: [&'static str; 3]) -> Spec {
    Spec { name, title, does, when, effects: NONE, limits, effect: Effect::Read, role: Role::Viewer }
}
