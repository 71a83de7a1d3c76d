//! The table of the store tools: catalog and prices. Stock is in `table_stock.rs`.

use crate::{
    ctx::Role,
    groups::store::{
        categories, price_set, prices, product_archive, product_create, product_update, products, table_stock, variants,
    },
    tool::{Effect, Entry, NONE, Spec, read, write},
};

/// Makes the group's tools.
pub(crate) fn tools() -> Vec<Entry> {
    let mut tools = product_reads();
    tools.extend(product_writes());
    tools.extend(variant_tools());
    tools.extend(category_tools());
    tools.extend(price_tools());
    tools.extend(table_stock::tools());
    tools
}

fn product_reads() -> Vec<Entry> {
    vec![
        read(
            spec(
                "store_products_list",
                "List products",
                [
                    "Lists products as cards with brand, state, main category, free pieces and lowest retail price, by words, category, supplier, state and stock.",
                    "browsing the catalog or looking for a product's code. For SKUs, EANs and weights use store_variants_list; for one product whole use store_product_get; for what sells best use analytics_top_products.",
                    "cards only, at most 100 a page; words are matched as parts, ignoring case for ASCII only.",
                ],
            ),
            products::list,
        ),
        read(
            spec(
                "store_product_get",
                "Get a product",
                [
                    "Gives one product whole: texts, VAT rate, supplier, categories, and all variants with today's price and free pieces, besides what was sold in 90 days and what open orders hold.",
                    "before store_product_update or store_product_archive, for the version, or to tell a customer about a product. Without a code use store_products_list; for stock per warehouse use store_stock_get; for past and planned prices use store_prices_list.",
                    "prices of one list and currency a call; free pieces are summed over the warehouses.",
                ],
            ),
            products::get,
        ),
    ]
}

fn product_writes() -> Vec<Entry> {
    vec![
        write(
            Spec {
                name: "store_product_create",
                title: "Enter a product",
                does: "Enters a new product with its variants as a draft, and makes the SKUs.",
                when: "the shop takes up a product that it never had. For a further color or size of one it has use store_product_update with add_variants; for an archived product use store_product_update with a state.",
                effects: "adds product, variants and empty stock rows in all warehouses; writes the activity log; nothing is sold before it has prices and is active.",
                limits: "brand and name together must be new; the category must have no subcategories; prices come with store_price_set, pieces with store_stock_adjust.",
                effect: Effect::Add,
                role: Role::Clerk,
            },
            product_create::create,
        ),
        write(
            Spec {
                name: "store_product_update",
                title: "Change a product",
                does: "Changes name, brand, text, VAT rate, supplier or state of a product, or adds variants; fields left out stay as they are.",
                when: "a product's data is wrong, a draft is to be sold, or a new size arrives. For weight, EAN or cost of a variant use store_variant_update; for categories use store_category_assign; to end a product use store_product_archive.",
                effects: "shows or hides the product in the e-shop at once; new variants get empty stock rows; orders placed before keep their price and VAT; writes the activity log.",
                limits: "to become active every active variant needs a retail price in CZK; an archived product comes back with a state only, which takes role manager.",
                effect: Effect::Set,
                role: Role::Clerk,
            },
            product_update::update,
        ),
        write(
            Spec {
                name: "store_product_archive",
                title: "Archive a product",
                does: "Takes a product with all its variants out of the catalog.",
                when: "it will not be sold again. To hide it for a while use store_product_update with state draft; to end a single size or color use store_variant_update with state discontinued; for candidates use analytics_dead_stock.",
                effects: "ends sales at once; stock, prices, categories and past orders stay as they are; writes the activity log.",
                limits: "refused while open orders have it; pieces that are left stay in the stock, and the answer says how many.",
                effect: Effect::Destroy,
                role: Role::Manager,
            },
            product_archive::archive,
        ),
    ]
}

fn variant_tools() -> Vec<Entry> {
    vec![
        read(
            spec(
                "store_variants_list",
                "List variants",
                [
                    "Lists variants with SKU, EAN, weight, purchase price, today's price in a list and currency, free pieces and reorder values.",
                    "you need a SKU for an order, or look for sizes and colors that are free. For stock row by row use store_stock_list; for products as a whole use store_products_list; for all lists and periods of a price use store_prices_list.",
                    "at most 100 a page, sorted by SKU; free pieces are summed over the warehouses, and free_in only filters.",
                ],
            ),
            variants::list,
        ),
        write(
            Spec {
                name: "store_variant_update",
                title: "Change a variant",
                does: "Changes name, EAN, weight, purchase price, state or reorder values of one variant; fields left out stay as they are.",
                when: "a scale, a scanner or a supplier's price list says otherwise, or one size ends. For what all variants share use store_product_update; for sales prices use store_price_set; for pieces use store_stock_adjust.",
                effects: "a new weight counts for the next parcels, a new purchase price for later orders and margins, discontinued ends sales of this SKU; writes the activity log.",
                limits: "the SKU itself cannot change; an EAN must have a right check digit and be unused; the purchase price takes role manager.",
                effect: Effect::Set,
                role: Role::Clerk,
            },
            variants::update,
        ),
    ]
}

fn category_tools() -> Vec<Entry> {
    vec![
        read(
            spec(
                "store_categories_list",
                "List categories",
                [
                    "Lists the tree of categories with slugs, names, numbers of active products and free pieces.",
                    "you need the slug of a category for a filter or for store_category_assign. For the products in one use store_products_list; for how well they sell use analytics_category_performance.",
                    "two levels; categories cannot be added or renamed here.",
                ],
            ),
            categories::list,
        ),
        write(
            Spec {
                name: "store_category_assign",
                title: "Sort a product in",
                does: "Changes which categories a product is in, and which of them is the main one.",
                when: "customers look for a product elsewhere, or it was entered in the wrong place. For slugs use store_categories_list; for other data of the product use store_product_update.",
                effects: "moves the product in the e-shop's menu and in reports by category, which go by the main one; SKUs keep their prefix; writes the activity log.",
                limits: "only categories without subcategories; exactly one is the main one, so it cannot be removed without naming another.",
                effect: Effect::Set,
                role: Role::Clerk,
            },
            categories::assign,
        ),
    ]
}

fn price_tools() -> Vec<Entry> {
    vec![
        read(
            spec(
                "store_prices_list",
                "List prices",
                [
                    "Lists prices by variant, list and currency with the days they hold for and the margin they leave.",
                    "checking what a customer of a segment pays on a day, or what is planned. For the retail price beside the stock use store_variants_list; for margins of real sales use analytics_margin_report.",
                    "prices include VAT and are per piece; discounts of single orders are not prices, see orders_get.",
                ],
            ),
            prices::list,
        ),
        write(
            Spec {
                name: "store_price_set",
                title: "Set a price",
                does: "Sets the price of a variant in one list and one currency, from a day on or for a period.",
                when: "a lasting price changes or an offer is planned. For a discount on one order use orders_discount_apply; to look before use store_prices_list; for a purchase price use store_variant_update.",
                effects: "ends the price before on the eve of the period and lets it go on afterwards; raises the variant's version; orders placed before keep their price; writes the activity log.",
                limits: "not in the past; one list and currency a call, others are not converted along; prices that begin within the period stop the call unless replaced.",
                effect: Effect::Set,
                role: Role::Manager,
            },
            price_set::set,
        ),
    ]
}

/// What a read of the group says about itself.
pub(crate) fn spec(name: &'static str, title: &'static str, [does, when, limits]: [&'static str; 3]) -> Spec {
    Spec { name, title, does, when, effects: NONE, limits, effect: Effect::Read, role: Role::Viewer }
}
