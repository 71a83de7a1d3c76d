//! Fills invoices, credit notes, payments and reminders.

use rusqlite::{Connection, params};

use crate::{
    common::{OrderStatus, PaymentMethod, PaymentStatus},
    date::Date,
    error::ShopError,
    seed::{lcg::Lcg, orders::Order},
};

/// Fills the tables; `end` is the shop's usual day.
///
/// # Errors
/// `Db` when the database fails.
pub(crate) fn fill(db: &Connection, orders: &[Order], end: Date) -> Result<(), ShopError> {
    let mut lcg = Lcg::new(67);
    let mut numbers = Numbers::default();
    let mut by_day: Vec<(Date, &Order)> = orders
        .iter()
        .filter(|o| o.has_left() || o.status == OrderStatus::Packed)
        .map(|o| (o.shipped.unwrap_or(end), o))
        .collect();
    by_day.sort_by_key(|(day, order)| (*day, order.id));
    for (day, order) in by_day {
        invoice(db, order, day, &mut numbers, &mut lcg, end)?;
    }
    // Paid, but nothing has left yet: the payment stands with the order alone.
    for order in orders.iter().filter(|o| !o.has_left() && o.payment == PaymentStatus::Paid) {
        payment(db, order, None, order.total_cents(), order.placed)?;
    }
    Ok(())
}

/// The last numbers given, by year.
#[derive(Debug, Default)]
struct Numbers(std::collections::BTreeMap<String, i64>);

impl Numbers {
    fn next(&mut self, day: Date) -> String {
        let text = day.to_string();
        let year = text.split('-').next().unwrap_or_default().to_owned();
        let n = self.0.entry(year.clone()).or_insert(0);
        *n += 1;
        format!("{year}{n:06}")
    }
}

fn invoice(
    db: &Connection,
    order: &Order,
    day: Date,
    numbers: &mut Numbers,
    lcg: &mut Lcg,
    end: Date,
) -> Result<(), ShopError> {
    let total = order.total_cents();
    let due = day.plus_days(order.customer.terms_days.max(7));
    let number = order.has_left().then(|| numbers.next(day));
    let paid = match order.payment {
        _ if number.is_none() => 0,
        PaymentStatus::Unpaid => 0,
        PaymentStatus::Partial => total / 2,
        _ => total,
    };
    let invoice_id = invoice_row(db, order, (day, due), number.as_deref(), paid)?;
    lines(db, order, invoice_id, 1)?;
    if number.is_none() {
        return Ok(());
    }
    if paid > 0 {
        let on = paid_on(order, due, lcg, end);
        payment(db, order, Some(invoice_id), paid, on)?;
    }
    if paid < total {
        reminders(db, invoice_id, due, end)?;
    }
    match order.delivered {
        Some(day) if order.status == OrderStatus::Returned => credit_note(db, order, invoice_id, day, numbers),
        _ => Ok(()),
    }
}

/// Writes the head of an invoice, a draft when it has no number, and returns its row.
fn invoice_row(
    db: &Connection,
    order: &Order,
    (day, due): (Date, Date),
    number: Option<&str>,
    paid: i64,
) -> Result<i64, ShopError> {
    let status = match number {
        None => "draft",
        Some(_) if paid == order.total_cents() => "paid",
        Some(_) => "issued",
    };
    db.execute(
        "insert into invoices (number, kind, status, customer_id, order_id, currency, net_cents, vat_cents, total_cents,
             paid_cents, issued_on, due_on, variable_symbol, created_at, updated_at)
         values (?1, 'invoice', ?2, ?3, ?4, ?5, 0, 0, ?6, ?7, ?8, ?9, ?1, ?10, ?10)",
        params![
            number,
            status,
            order.customer.id,
            order.id,
            order.customer.currency,
            order.total_cents(),
            paid,
            number.map(|_| day),
            number.map(|_| due),
            format!("{day}T15:05:00")
        ],
    )?;
    Ok(db.last_insert_rowid())
}

fn paid_on(order: &Order, due: Date, lcg: &mut Lcg, end: Date) -> Date {
    let day = match order.method {
        PaymentMethod::Card | PaymentMethod::Cash => order.placed,
        PaymentMethod::BankTransfer => order.placed.plus_days(1),
        PaymentMethod::Cod => order.delivered.unwrap_or(order.placed),
        PaymentMethod::Invoice => due.plus_days(lcg.range(-8, 18)),
    };
    day.min(end)
}

/// Writes the lines of an order with amounts times `sign`, and the sums into the invoice.
fn lines(db: &Connection, order: &Order, invoice_id: i64, sign: i64) -> Result<(), ShopError> {
    let mut lines: Vec<(String, Option<i64>, i64, i64, i64)> = order
        .items
        .iter()
        .map(|item| {
            let v = &item.variant;
            (v.name.clone(), Some(v.id), item.quantity, item.unit_cents, v.vat_percent)
        })
        .collect();
    if order.discount_cents() > 0 {
        let text = format!("Discount {} %", order.discount_percent);
        lines.push((text, None, 1, -order.discount_cents(), 21));
    }
    if order.shipping_cents > 0 {
        lines.push(("Shipping".into(), None, 1, order.shipping_cents, 21));
    }
    let (mut net_sum, mut vat_sum) = (0, 0);
    for (line, (text, variant_id, quantity, unit, vat_percent)) in (1_i64..).zip(lines) {
        let total = sign * quantity * unit;
        let net = total * 100 / (100 + vat_percent);
        net_sum += net;
        vat_sum += total - net;
        db.execute(
            "insert into invoice_lines (invoice_id, line, description, variant_id, quantity, unit_cents, vat_percent, net_cents, vat_cents, total_cents)
             values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![invoice_id, line, text, variant_id, sign * quantity, unit, vat_percent, net, total - net, total],
        )?;
    }
    db.execute("update invoices set net_cents = ?, vat_cents = ? where id = ?", params![net_sum, vat_sum, invoice_id])?;
    Ok(())
}

fn credit_note(
    db: &Connection,
    order: &Order,
    invoice_id: i64,
    day: Date,
    numbers: &mut Numbers,
) -> Result<(), ShopError> {
    let number = numbers.next(day);
    db.execute(
        "insert into invoices (number, kind, status, customer_id, order_id, corrects_id, currency, net_cents, vat_cents,
             total_cents, paid_cents, issued_on, due_on, variable_symbol, created_at, updated_at)
         values (?1, 'credit_note', 'paid', ?2, ?3, ?4, ?5, 0, 0, ?6, ?6, ?7, ?7, ?1, ?8, ?8)",
        params![
            number,
            order.customer.id,
            order.id,
            invoice_id,
            order.customer.currency,
            -order.total_cents(),
            day,
            format!("{day}T18:05:00")
        ],
    )?;
    lines(db, order, db.last_insert_rowid(), -1)
}

fn payment(
    db: &Connection,
    order: &Order,
    invoice_id: Option<i64>,
    amount_cents: i64,
    day: Date,
) -> Result<(), ShopError> {
    let method = match order.method {
        PaymentMethod::Invoice => PaymentMethod::BankTransfer,
        method => method,
    };
    db.execute(
        "insert into payments (invoice_id, order_id, amount_cents, currency, method, paid_on, reference, created_at)
         values (?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            invoice_id,
            order.id,
            amount_cents,
            order.customer.currency,
            method,
            day,
            format!("ORD-{:06}", order.id),
            format!("{day}T06:00:00")
        ],
    )?;
    Ok(())
}

fn reminders(db: &Connection, invoice_id: i64, due: Date, end: Date) -> Result<(), ShopError> {
    for (level, days) in [(1, 7), (2, 21)] {
        let day = due.plus_days(days);
        if day < end {
            db.execute(
                "insert into reminders (invoice_id, level, channel, fee_cents, message, sent_at, user_id)
                 values (?, ?, 'email', 0, ?, ?, 2)",
                params![
                    invoice_id,
                    level,
                    "Please check whether your payment has gone out.",
                    format!("{day}T09:00:00")
                ],
            )?;
        }
    }
    Ok(())
}
