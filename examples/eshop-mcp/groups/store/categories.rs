//! The tree of categories, and which of them a product is in.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Change, ProductId, Version, first},
    ctx::Ctx,
    error::ShopError,
    groups::{
        orders::expire,
        store::{
            codes::Slug,
            product_create::leaf,
            view::{ProductCard, ProductChange, close, open},
        },
    },
    query::Filter,
};

/// Which categories.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParams {
    /// Only this category and those below it.
    root: Option<Slug>,
    /// Part of the slug or the name.
    #[schemars(length(min = 2, max = 40), example = &"sleep")]
    text: Option<String>,
    /// Also categories without active products.
    #[serde(default = "yes")]
    #[schemars(example = false)]
    include_empty: bool,
}

fn yes() -> bool {
    true
}

/// The tree, each category after the one above it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Categories {
    categories: Vec<Category>,
}

/// A category.
#[derive(Debug, Serialize, JsonSchema)]
struct Category {
    slug: Slug,
    name: String,
    /// Category above it; absent at the top.
    parent: Option<Slug>,
    /// Active products in it, without those below.
    n_products: i64,
    /// Pieces of them free to sell.
    free: i64,
}

const CATEGORIES: &str = "select c.slug, c.name, parent.slug as parent,
        (select count(*) from product_categories pc join products p on p.id = pc.product_id
         where pc.category_id = c.id and p.status = 'active') as n_products,
        (select coalesce(sum(s.on_hand - s.reserved), 0) from product_categories pc join products p on p.id = pc.product_id
             join variants v on v.product_id = p.id join stock s on s.variant_id = v.id
         where pc.category_id = c.id and p.status = 'active') as free
    from categories c left join categories parent on parent.id = c.parent_id";

pub(crate) fn list(ctx: &Ctx<'_>, params: ListParams) -> Result<Categories, ShopError> {
    expire(ctx)?;
    let mut filter = Filter::default();
    filter.bind("? in (c.slug, parent.slug)", params.root.as_ref().map(|slug| &slug.0))?;
    if let Some(text) = &params.text {
        filter.contains(&["c.slug", "c.name"], text);
    }
    if !params.include_empty {
        filter.push("n_products > 0");
    }
    let order = "order by coalesce(parent.slug, c.slug), parent.slug is not null, c.slug";
    let sql = format!("{CATEGORIES}{} {order}", filter.to_sql());
    let categories = ctx.all(&sql, rusqlite::params_from_iter(&filter.values), |row| {
        Ok(Category {
            slug: Slug(row.get("slug")?),
            name: row.get("name")?,
            parent: row.get::<_, Option<String>>("parent")?.map(Slug),
            n_products: row.get("n_products")?,
            free: row.get("free")?,
        })
    })?;
    Ok(Categories { categories })
}

/// What to change about a product's categories.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AssignParams {
    id: ProductId,
    expected_version: Option<Version>,
    /// New main category; the old one stays as a further one unless it is in `remove`.
    main: Option<Slug>,
    /// Further categories to be in.
    #[serde(default)]
    #[schemars(length(max = 10), example = ["care"])]
    add: Vec<Slug>,
    /// Categories to leave; not the main one.
    #[serde(default)]
    #[schemars(length(max = 10), example = ["lights"])]
    remove: Vec<Slug>,
}

pub(crate) fn assign(ctx: &Ctx<'_>, params: AssignParams) -> Result<ProductChange, ShopError> {
    let card = open(ctx, params.id, params.expected_version)?;
    let before = slugs(ctx, card.id)?;
    for (index, slug) in params.add.iter().enumerate() {
        put(ctx, card.id, slug, &format!("add[{index}]"))?;
    }
    if let Some(main) = &params.main {
        let id = put(ctx, card.id, main, "main")?;
        ctx.run(
            "update product_categories set is_main = (category_id = ?2) where product_id = ?1",
            params![card.id, id],
        )?;
    }
    for (index, slug) in params.remove.iter().enumerate() {
        take(ctx, card.id, slug, &format!("remove[{index}]"))?;
    }
    let changes = changes(&card, params.main.as_ref(), &before, &slugs(ctx, card.id)?);
    if changes.is_empty() {
        return Err(ShopError::state(
            format!("product {} is in these categories already", card.id),
            "its categories are in `store_product_get`",
        ));
    }
    close(ctx, card.id, changes, "categories changed", None)
}

fn slugs(ctx: &Ctx<'_>, id: ProductId) -> Result<String, ShopError> {
    let sql = "select c.slug from product_categories pc join categories c on c.id = pc.category_id
               where pc.product_id = ? order by c.slug";
    let slugs: Vec<String> = ctx.all(sql, [id], first)?;
    Ok(slugs.join(", "))
}

fn changes(card: &ProductCard, main: Option<&Slug>, before: &str, after: &str) -> Vec<Change> {
    let mut changes = Vec::new();
    if let Some(main) = main.filter(|main| **main != card.category) {
        changes.push(Change::new("category", Some(&card.category.0), Some(&main.0)));
    }
    if before != after {
        changes.push(Change::new("categories", Some(before), Some(after)));
    }
    changes
}

fn put(ctx: &Ctx<'_>, id: ProductId, slug: &Slug, field: &str) -> Result<i64, ShopError> {
    let category_id = leaf(ctx, slug, field)?;
    ctx.run(
        "insert or ignore into product_categories (product_id, category_id) values (?, ?)",
        params![id, category_id],
    )?;
    Ok(category_id)
}

fn take(ctx: &Ctx<'_>, id: ProductId, slug: &Slug, field: &str) -> Result<(), ShopError> {
    let sql = "select pc.category_id, pc.is_main from product_categories pc join categories c on c.id = pc.category_id
               where pc.product_id = ? and c.slug = ?";
    let found: Option<(i64, bool)> = ctx.one(sql, params![id, slug.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    match found {
        Some((category_id, false)) => {
            ctx.run(
                "delete from product_categories where product_id = ? and category_id = ?",
                params![id, category_id],
            )?;
            Ok(())
        }
        Some(_) => Err(ShopError::state(
            format!("{} is the main category of product {id}", slug.0),
            "name another one as `main` in the same call",
        )
        .at(field)),
        None => Err(ShopError::invalid(field, &slug.0, "a category that the product is in")),
    }
}
