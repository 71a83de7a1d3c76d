//! The list of products, and one product with everything about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, Direction, Limit, Offset, Page, ProductId},
    ctx::{Ctx, Listing},
    date::Date,
    error::ShopError,
    groups::{
        orders::expire,
        store::{
            codes::{PriceList, ProductStatus, Slug, SupplierId},
            view::{
                FREE_OF_PRODUCT, ProductCard, VARIANT_TABLES, VariantCard, product_card, product_columns, product_of,
                variant_card, variant_columns,
            },
        },
    },
    query::Filter,
    values::words,
};

words!(/// What to sort by.
    ProductSort { Name = "name", UpdatedAt = "updated_at", Free = "free" });

/// Which products.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParams {
    /// Part of the name, brand or description.
    #[schemars(length(min = 2, max = 80), example = &"merino")]
    text: Option<String>,
    /// Only this category and those below it.
    category: Option<Slug>,
    /// Only this supplier's products.
    supplier_id: Option<SupplierId>,
    /// States to include; all when absent.
    #[serde(default)]
    #[schemars(length(max = 3), example = [ProductStatus::Active])]
    status: Vec<ProductStatus>,
    /// Only products with pieces free to sell, or only those without.
    #[schemars(example = true)]
    in_stock: Option<bool>,
    #[serde(default = "name")]
    sort: ProductSort,
    #[serde(default = "asc")]
    direction: Direction,
    #[serde(default)]
    limit: Limit,
    #[serde(default)]
    offset: Offset,
}

fn name() -> ProductSort {
    ProductSort::Name
}

fn asc() -> Direction {
    Direction::Asc
}

/// Keeps product `p` to a category and those below it.
///
/// # Errors
/// `Refused` with `not_found` when there is no such category.
pub(crate) fn in_category(ctx: &Ctx<'_>, filter: &mut Filter, slug: Option<&Slug>) -> Result<(), ShopError> {
    let Some(Slug(slug)) = slug else {
        return Ok(());
    };
    if ctx.value::<i64>("select count(*) from categories where slug = ?", [slug])? == 0 {
        return Err(ShopError::not_found("category", slug, "store_categories_list").at("category"));
    }
    filter.bind(
        "p.id in (select pc.product_id from product_categories pc join categories c on c.id = pc.category_id
         left join categories parent on parent.id = c.parent_id where ? in (c.slug, parent.slug))",
        Some(slug),
    )
}

pub(crate) fn list(ctx: &Ctx<'_>, params: ListParams) -> Result<Page<ProductCard>, ShopError> {
    expire(ctx)?;
    let mut filter = Filter::default();
    if let Some(text) = &params.text {
        filter.contains(&["p.name", "p.brand", "p.description"], text);
    }
    in_category(ctx, &mut filter, params.category.as_ref())?;
    filter.bind("p.supplier_id = ?", params.supplier_id.as_ref())?;
    filter.any("p.status", &params.status)?;
    filter.bind(&format!("({FREE_OF_PRODUCT} > 0) = ?"), params.in_stock.as_ref())?;
    let column = match params.sort {
        ProductSort::Name => "p.name",
        ProductSort::UpdatedAt => "p.updated_at",
        ProductSort::Free => "free",
    };
    let listing = Listing {
        columns: &product_columns(ctx.today),
        from: "products p",
        order: &format!("{column} {d}, p.id {d}", d = params.direction),
        limit: params.limit,
        offset: params.offset,
    };
    ctx.page(listing, &filter, product_card)
}

/// Which product.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetParams {
    id: ProductId,
    #[serde(default = "retail")]
    price_list: PriceList,
    #[serde(default = "czk")]
    currency: Currency,
}

/// The list that visitors of the e-shop see.
pub(crate) fn retail() -> PriceList {
    PriceList::Retail
}

/// The shop's own currency.
pub(crate) fn czk() -> Currency {
    Currency::Czk
}

/// A product with texts, categories and variants.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProductSheet {
    product: ProductCard,
    description: String,
    /// Rate in CZ.
    vat_percent: i64,
    supplier: String,
    /// All categories, main one first.
    categories: Vec<Slug>,
    variants: Vec<VariantCard>,
    /// Pieces ordered in the last 90 days, less cancelled orders.
    sold_90_days: i64,
    /// Pieces in open orders.
    open_pieces: i64,
    created_on: Date,
    updated_at: String,
}

const SHEET: &str = "select p.description, p.vat_percent, s.name as supplier, p.created_at, p.updated_at,
        (select coalesce(sum(i.quantity), 0) from order_items i join orders o on o.id = i.order_id
             join variants v on v.id = i.variant_id
         where v.product_id = p.id and o.status <> 'cancelled' and substr(o.placed_at, 1, 10) > ?2) as sold,
        (select coalesce(sum(i.quantity), 0) from order_items i join orders o on o.id = i.order_id
             join variants v on v.id = i.variant_id
         where v.product_id = p.id and o.status in ('new', 'confirmed', 'on_hold', 'picking', 'packed')) as open
    from products p join suppliers s on s.id = p.supplier_id where p.id = ?1";

pub(crate) fn get(ctx: &Ctx<'_>, params: GetParams) -> Result<ProductSheet, ShopError> {
    expire(ctx)?;
    let id = params.id;
    let product = product_of(ctx, id, "id")?;
    let categories = ctx.all(
        "select c.slug from product_categories pc join categories c on c.id = pc.category_id
         where pc.product_id = ? order by pc.is_main desc, c.slug",
        [id],
        |row| Ok(Slug(row.get(0)?)),
    )?;
    let columns = variant_columns(params.price_list, params.currency, ctx.today);
    let sql = format!("select {columns} from {VARIANT_TABLES} where v.product_id = ? order by v.id");
    let variants = ctx.all(&sql, [id], variant_card)?;
    let since = ctx.today.plus_days(-90);
    Ok(ctx.db.query_row(SHEET, rusqlite::params![id, since], |row| {
        Ok(ProductSheet {
            product,
            description: row.get("description")?,
            vat_percent: row.get("vat_percent")?,
            supplier: row.get("supplier")?,
            categories,
            variants,
            sold_90_days: row.get("sold")?,
            open_pieces: row.get("open")?,
            created_on: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
        })
    })?)
}
