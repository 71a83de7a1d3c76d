//! The order in which the tables are filled.

use rusqlite::Connection;

use crate::{
    date::Date,
    error::ShopError,
    seed::{carriers, catalog, notebook, office, order_rows, orders, papers, parcels, people, stock, visits},
};

/// Days from the first order to the shop's usual day, 2026-11-27.
const DAYS: i64 = 422;

/// Fills an empty database. The data ends on the shop's usual day, whatever `--today` says.
///
/// # Errors
/// `Db` when the database fails.
#[expect(clippy::expect_used, reason = "a constant day, and every test fills the database")]
pub(crate) fn fill(db: &Connection) -> Result<(), ShopError> {
    let end = Date::try_new(2026, 11, 27).expect("the calendar has this day");
    let first_day = end.plus_days(-DAYS);
    office::fill(db)?;
    carriers::fill(db)?;
    let variants = catalog::fill(db, first_day)?;
    let customers = people::fill(db, first_day)?;
    let orders = orders::make(&customers, &variants, first_day, end);
    order_rows::fill(db, &orders)?;
    stock::fill(db, &variants, &orders, first_day)?;
    papers::fill(db, &orders, end)?;
    parcels::fill(db, &orders)?;
    visits::fill(db, &orders, first_day, end)?;
    notebook::fill(db)
}

#[cfg(test)]
mod tests {
    use crate::testkit::TestShop;

    #[test]
    fn data_has_the_size_of_a_small_shop() {
        let shop = TestShop::new();
        let count = |table: &str| shop.sql::<i64>(&format!("select count(*) from {table}"), []);
        assert_eq!((count("products"), count("customers")), (60, 80));
        assert!((350..=450).contains(&count("orders")), "{}", count("orders"));
        let n_overdue =
            shop.sql::<i64>("select count(*) from invoices where status = 'issued' and due_on < '2026-11-27'", []);
        assert!((5..60).contains(&n_overdue), "{n_overdue}");
    }

    #[test]
    fn movements_add_up_to_the_stock() {
        let wrong =
            "select count(*) from stock s where on_hand <> (select coalesce(sum(delta), 0) from stock_movements m
                     where m.variant_id = s.variant_id and m.warehouse_id = s.warehouse_id)";
        assert_eq!(TestShop::new().sql::<i64>(wrong, []), 0);
    }

    #[test]
    fn invoices_add_up_to_their_lines_and_orders() {
        let wrong = "select count(*) from invoices i where total_cents <> (select sum(total_cents) from invoice_lines l where l.invoice_id = i.id)
                     or net_cents + vat_cents <> total_cents
                     or abs(total_cents) <> (select total_cents from orders o where o.id = i.order_id)";
        assert_eq!(TestShop::new().sql::<i64>(wrong, []), 0);
    }

    #[test]
    fn two_shops_are_equal() {
        assert_eq!(TestShop::new().contents(), TestShop::new().contents());
    }

    #[test]
    fn payment_states_follow_from_payments() {
        let wrong = "select count(*) from orders o join (select o.id, coalesce(sum(p.amount_cents), 0) as paid from orders o
                         left join payments p on p.order_id = o.id group by o.id) s on s.id = o.id
                     where payment_status <> case when paid = 0 then 'unpaid' when paid < total_cents then 'partial' else 'paid' end
                       and payment_status not in ('refunded', 'part_refunded')";
        assert_eq!(TestShop::new().sql::<i64>(wrong, []), 0);
    }
}
