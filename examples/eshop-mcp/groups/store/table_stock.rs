//! The second half of the table: stock, warehouses, suppliers.

use crate::{
    ctx::Role,
    groups::store::{movements, places, reorder, stock_adjust, stock_list, stock_reserve, stock_transfer, table::spec},
    tool::{Effect, Entry, Spec, read, write},
};

/// Makes the tools of the stock.
pub(crate) fn tools() -> Vec<Entry> {
    let mut tools = stock_reads();
    tools.extend(stock_writes());
    tools.extend(place_tools());
    tools
}

fn stock_reads() -> Vec<Entry> {
    vec![
        read(
            spec(
                "store_stock_list",
                "List stock",
                [
                    "Lists stock row by row, a variant in a warehouse each, with pieces on hand, reserved and free, against the reorder point.",
                    "looking over a warehouse, or for what is low or out. For one variant with its movements use store_stock_get; for what to order use store_reorder_suggest; for goods that do not move use analytics_dead_stock.",
                    "archived products are left out; at most 100 rows a page; the reorder point is for all warehouses together.",
                ],
            ),
            stock_list::list,
        ),
        read(
            spec(
                "store_stock_get",
                "Stock of a variant",
                [
                    "Gives the stock of one variant in every warehouse, the open orders and reservations that hold pieces, and its latest movements.",
                    "a number looks wrong, pieces are promised to somebody, or before a write on the stock, for the version. For many variants use store_stock_list; for how fast it turns use analytics_stock_turnover.",
                    "movements are cut at limit, latest first; reservations whose day has passed are left out.",
                ],
            ),
            movements::get,
        ),
    ]
}

fn stock_writes() -> Vec<Entry> {
    vec![
        write(
            Spec {
                name: "store_stock_adjust",
                title: "Correct the stock",
                does: "Books pieces in or out of a warehouse by a difference, or sets what was counted, with a reason.",
                when: "a delivery arrived, a count differs, or something broke. Between warehouses use store_stock_transfer; goods that a customer sent back go with orders_refund and restock; to hold pieces use store_stock_reserve.",
                effects: "changes the pieces on hand and adds a movement with the reason; writes the activity log; no supplier is told and no invoice is booked.",
                limits: "never below what is reserved; receipt and found only add, damage, loss and sample only take away; a booking is undone only by the opposite one.",
                effect: Effect::Destroy,
                role: Role::Clerk,
            },
            stock_adjust::adjust,
        ),
        write(
            Spec {
                name: "store_stock_transfer",
                title: "Move stock",
                does: "Moves pieces of one or more variants from one warehouse to another in one step.",
                when: "a warehouse runs out while another has enough. To ship an order from elsewhere use orders_update with a warehouse; for a delivery from outside use store_stock_adjust.",
                effects: "takes the pieces off one warehouse and puts them into the other at once, with a movement on each side; writes the activity log.",
                limits: "only free pieces move, reserved ones stay; if one line fails nothing moves; there is no state on the way.",
                effect: Effect::Destroy,
                role: Role::Clerk,
            },
            stock_transfer::transfer,
        ),
        write(
            Spec {
                name: "store_stock_reserve",
                title: "Reserve stock",
                does: "Holds pieces of a variant by hand until a day, changes such a reservation, or lets it go.",
                when: "pieces are promised without an order, wanted for a display or a photo. For a customer who buys use orders_create, which reserves by itself; for what is held now use store_stock_get.",
                effects: "lowers what is free in the warehouse; after the last day the pieces are free again without a call; writes the activity log.",
                limits: "only free pieces; 90 days at most; SKU and warehouse of a reservation stay, and those of orders cannot be changed here.",
                effect: Effect::Destroy,
                role: Role::Clerk,
            },
            stock_reserve::reserve,
        ),
    ]
}

fn place_tools() -> Vec<Entry> {
    vec![
        read(
            spec(
                "store_warehouses_list",
                "List warehouses",
                [
                    "Lists the warehouses with town, kind, pieces, purchase worth and open orders.",
                    "you need a warehouse's code or compare the warehouses. For single variants use store_stock_list; for the shop's address and people use core_shop_info.",
                    "worth is at today's purchase prices in CZK; warehouses cannot be added here.",
                ],
            ),
            places::warehouses,
        ),
        read(
            spec(
                "store_suppliers_list",
                "List suppliers",
                [
                    "Lists suppliers with contact, lead time, smallest order, currency, brands and number of products.",
                    "you ask who delivers a product or brand and how fast. For what to order from them use store_reorder_suggest; for their products use store_products_list.",
                    "what is on order at a supplier is not kept here.",
                ],
            ),
            places::suppliers,
        ),
        read(
            spec(
                "store_reorder_suggest",
                "What to order",
                [
                    "Suggests what to order from each supplier: variants whose free pieces will not last until a delivery, with quantities in whole packs and their cost.",
                    "planning purchases. For what is low right now use store_stock_list; for sales ahead with seasons use analytics_forecast_demand; to book a delivery that came use store_stock_adjust.",
                    "reckons with the mean of past sales, knows no seasons and nothing that is on order already; orders nothing by itself.",
                ],
            ),
            reorder::suggest,
        ),
    ]
}
