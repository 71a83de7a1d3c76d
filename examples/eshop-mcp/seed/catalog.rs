//! Fills categories, suppliers, products, variants and prices from the list of goods.

use rusqlite::{Connection, params};

use crate::{
    common::Currency,
    date::Date,
    error::ShopError,
    seed::{
        goods::{CATEGORIES, GOODS, Good},
        lcg::Lcg,
    },
};

/// Suppliers: name, country, currency, lead time in days, smallest order in hundredths; brands follow.
const SUPPLIERS: [(&str, &str, &str, i64, i64, &str); 6] = [
    ("Rovnia Textil s.r.o.", "CZ", "CZK", 7, 500_000, "Rovnia"),
    ("Nordlys AS", "DE", "EUR", 21, 100_000, "Nordlys"),
    ("Kamzík Outdoor a.s.", "SK", "EUR", 9, 30_000, "Kamzík Ovis"),
    ("Bergfalke GmbH", "AT", "EUR", 14, 80_000, "Bergfalke"),
    ("Plamen i Lumen sp. z o.o.", "PL", "PLN", 10, 120_000, "Plamen Lumen"),
    ("Karabina & Kartograf s.r.o.", "CZ", "CZK", 5, 200_000, "Karabina Kartograf"),
];

/// What later steps need to know of a variant.
#[derive(Debug, Clone)]
pub(crate) struct Variant {
    pub(crate) id: i64,
    /// How often it sells, relative to the others; 0 never.
    pub(crate) weight: i64,
    pub(crate) vat_percent: i64,
    pub(crate) cost_cents: i64,
    pub(crate) weight_g: i64,
    pub(crate) name: String,
    /// Retail price in CZK cents.
    price_cents: i64,
}

impl Variant {
    /// Price in the list of a segment and a currency; the same that stands in table `prices`.
    pub(crate) fn price(&self, segment: &str, currency: Currency) -> i64 {
        let percent = match segment {
            "wholesale" => 72,
            "club" => 93,
            _ => 100,
        };
        let czk = self.price_cents * percent / 100;
        match currency {
            Currency::Czk => czk / 1000 * 1000,
            // Rounded to x.90, as shops do.
            Currency::Eur => czk / 2435 * 100 + 90,
            Currency::Pln => czk / 572 * 100 + 90,
        }
    }
}

/// Fills the catalog and returns the variants in order of their numbers.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn fill(db: &Connection, first_day: Date) -> Result<Vec<Variant>, ShopError> {
    categories(db)?;
    for (name, country, currency, lead_days, min_order, _) in SUPPLIERS {
        db.execute(
            "insert into suppliers (name, country, email, currency, lead_days, min_order_cents) values (?, ?, ?, ?, ?, ?)",
            params![name, country, format!("orders@{}.example", country.to_lowercase()), currency, lead_days, min_order],
        )?;
    }
    let mut lcg = Lcg::new(11);
    let mut variants = Vec::new();
    for (index, good) in (1_i64..).zip(&GOODS) {
        let is_last = GOODS.get(usize::try_from(index).unwrap_or(0)).is_none_or(|next| next.category != good.category);
        let weight = if is_last { 0 } else { lcg.range(2, 12) };
        product(db, (index, good), first_day, &mut lcg, weight, &mut variants)?;
    }
    Ok(variants)
}

fn categories(db: &Connection) -> Result<(), ShopError> {
    for (slug, name, parent, _) in CATEGORIES {
        db.execute(
            "insert into categories (slug, name, parent_id) values (?1, ?2, (select id from categories where slug = ?3))",
            [slug, name, parent],
        )?;
    }
    Ok(())
}

fn product(
    db: &Connection,
    (id, good): (i64, &Good),
    first_day: Date,
    lcg: &mut Lcg,
    weight: i64,
    variants: &mut Vec<Variant>,
) -> Result<(), ShopError> {
    let vat_percent = if good.category == "maps" { 0 } else { 21 };
    let created_at = format!("{}T09:00:00", first_day.plus_days(-lcg.range(40, 400)));
    let status = if id % 30 == 0 { "archived" } else { "active" };
    let weight = if status == "archived" { 0 } else { weight };
    product_row(db, (id, good), (status, vat_percent), &created_at)?;
    let prefix = CATEGORIES.iter().find(|c| c.0 == good.category).map_or("GEN", |c| c.3);
    for name in good.variants.split(' ') {
        let cost_percent = lcg.range(48, 62);
        let variant = Variant {
            id: i64::try_from(variants.len()).unwrap_or(0) + 1,
            weight,
            vat_percent,
            cost_cents: good.price * cost_percent,
            weight_g: good.weight_g,
            name: format!("{} {} {name}", good.brand, good.name).trim_end().to_owned(),
            price_cents: good.price * 100,
        };
        let mut sku = format!("{prefix}-{id:03}");
        if !name.is_empty() {
            sku.push('-');
            sku.extend(name.chars().take(5).flat_map(char::to_uppercase));
        }
        rows(db, id, (&sku, name), &variant, lcg)?;
        variants.push(variant);
    }
    Ok(())
}

fn product_row(
    db: &Connection,
    (id, good): (i64, &Good),
    (status, vat_percent): (&str, i64),
    created_at: &str,
) -> Result<(), ShopError> {
    let supplier = (1_i64..).zip(SUPPLIERS).find(|(_, s)| s.5.contains(good.brand));
    db.execute(
        "insert into products (id, name, brand, description, status, vat_percent, supplier_id, created_at, updated_at)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)",
        params![
            id,
            good.name,
            good.brand,
            format!("{} {} from our {} range, {} g.", good.brand, good.name, good.category, good.weight_g),
            status,
            vat_percent,
            supplier.map_or(1, |(id, _)| id),
            created_at
        ],
    )?;
    db.execute(
        "insert into product_categories (product_id, category_id, is_main) select ?, id, 1 from categories where slug = ?",
        params![id, good.category],
    )?;
    Ok(())
}

fn rows(
    db: &Connection,
    product_id: i64,
    (sku, name): (&str, &str),
    variant: &Variant,
    lcg: &mut Lcg,
) -> Result<(), ShopError> {
    db.execute(
        "insert into variants (id, product_id, sku, name, ean, weight_g, cost_cents, status, reorder_point, reorder_qty)
         values (?, ?, ?, ?, ?, ?, ?, 'active', ?, ?)",
        params![
            variant.id,
            product_id,
            sku,
            name,
            format!("8594{:09}", variant.id * 7_310_411 % 1_000_000_000),
            variant.weight_g,
            variant.cost_cents,
            lcg.range(3, 8),
            lcg.range(2, 5) * 5
        ],
    )?;
    for segment in ["retail", "club", "wholesale"] {
        for currency in [Currency::Czk, Currency::Eur, Currency::Pln] {
            db.execute(
                "insert into prices (variant_id, list, currency, amount_cents, valid_from, created_at)
                 values (?, ?, ?, ?, '2025-06-01', '2025-06-01T08:00:00')",
                params![variant.id, segment, currency, variant.price(segment, currency)],
            )?;
        }
    }
    Ok(())
}
