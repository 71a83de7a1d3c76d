//! Makes up the orders: who bought what, when, how, and how far it got. Writes nothing.

use crate::{
    common::{Currency, OrderStatus, PaymentMethod, PaymentStatus, SalesChannel},
    date::Date,
    seed::{
        carriers::{CARRIERS, Carrier},
        catalog::Variant,
        lcg::Lcg,
        people::Customer,
    },
};

/// A line of an order.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) id: i64,
    pub(crate) variant: Variant,
    pub(crate) quantity: i64,
    pub(crate) unit_cents: i64,
    /// How many came back.
    pub(crate) refunded: i64,
}

impl Item {
    pub(crate) fn total_cents(&self) -> i64 {
        self.quantity * self.unit_cents
    }
}

/// An order with all that later steps write down.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) id: i64,
    pub(crate) customer: Customer,
    pub(crate) placed: Date,
    /// Time of day, `HH:MM:SS`.
    pub(crate) time: String,
    pub(crate) channel: SalesChannel,
    pub(crate) source: &'static str,
    pub(crate) warehouse_id: i64,
    pub(crate) carrier: Option<&'static Carrier>,
    pub(crate) method: PaymentMethod,
    pub(crate) status: OrderStatus,
    pub(crate) payment: PaymentStatus,
    pub(crate) shipped: Option<Date>,
    pub(crate) delivered: Option<Date>,
    pub(crate) items: Vec<Item>,
    pub(crate) discount_percent: i64,
    pub(crate) shipping_cents: i64,
}

impl Order {
    pub(crate) fn items_cents(&self) -> i64 {
        self.items.iter().map(Item::total_cents).sum()
    }

    pub(crate) fn discount_cents(&self) -> i64 {
        self.items_cents() * self.discount_percent / 100
    }

    pub(crate) fn total_cents(&self) -> i64 {
        self.items_cents() - self.discount_cents() + self.shipping_cents
    }

    /// What went back to the customer: everything of a returned order, else the returned items.
    pub(crate) fn refund_cents(&self) -> i64 {
        if self.status == OrderStatus::Returned {
            return self.total_cents();
        }
        let items: i64 = self.items.iter().map(|item| item.refunded * item.unit_cents).sum();
        items - items * self.discount_percent / 100
    }

    pub(crate) fn has_left(&self) -> bool {
        self.shipped.is_some()
    }

    pub(crate) fn placed_at(&self) -> String {
        format!("{}T{}", self.placed, self.time)
    }
}

/// Makes all orders from `first_day` to the day before `end`.
pub(crate) fn make(customers: &[Customer], variants: &[Variant], first_day: Date, end: Date) -> Vec<Order> {
    let mut lcg = Lcg::new(47);
    // A variant stands in the pool as often as its weight says.
    let pool: Vec<&Variant> = variants.iter().flat_map(|v| (0..v.weight).map(move |_| v)).collect();
    let mut orders: Vec<Order> = Vec::new();
    let mut item_id = 0;
    for offset in 0..end.days_since(first_day) {
        let day = first_day.plus_days(offset);
        for _ in 0..orders_on(day, end, &mut lcg) {
            let id = i64::try_from(orders.len()).unwrap_or(0) + 1;
            let mut order = order(&mut lcg, id, customers, day);
            items(&mut lcg, &mut order, &pool, &mut item_id);
            progress(&mut lcg, &mut order, end);
            orders.push(order);
        }
    }
    orders
}

fn orders_on(day: Date, end: Date, lcg: &mut Lcg) -> i64 {
    if end.days_since(day) <= 6 {
        // The week of Black Friday, so that every state of an order occurs.
        return lcg.range(3, 6);
    }
    let text = day.to_string();
    let percent = match text.split('-').nth(1) {
        Some("11" | "12") => 78,
        Some("06" | "07" | "08") => 65,
        Some("01" | "02") => 42,
        _ => 48,
    };
    i64::from(lcg.chance(percent)) + i64::from(lcg.chance(percent / 2)) + i64::from(lcg.chance(8))
}

fn order(lcg: &mut Lcg, id: i64, customers: &[Customer], day: Date) -> Order {
    let customer = buyer(lcg, customers, day).clone();
    let channel = channel(lcg, &customer);
    let is_store = channel == SalesChannel::Store;
    let source = match channel {
        SalesChannel::Eshop => {
            *lcg.pick(&["organic", "organic", "organic", "paid", "paid", "email", "direct", "social"])
        }
        _ => "none",
    };
    let warehouse_id = match (is_store, lcg.chance(85)) {
        (true, _) => 2,
        (false, true) => 1,
        (false, false) => 3,
    };
    let country = customer.country.as_str();
    let fitting: Vec<&'static Carrier> = CARRIERS.iter().filter(|c| c.countries.contains(country)).collect();
    let carrier = (!is_store).then(|| *lcg.pick(&fitting));
    let method = method(lcg, &customer, channel);
    Order {
        id,
        customer,
        placed: day,
        time: format!("{:02}:{:02}:{:02}", lcg.range(7, 21), lcg.range(0, 59), lcg.range(0, 59)),
        channel,
        source,
        warehouse_id,
        carrier,
        method,
        status: OrderStatus::New,
        payment: PaymentStatus::Unpaid,
        shipped: None,
        delivered: None,
        items: Vec::new(),
        discount_percent: if lcg.chance(12) { *lcg.pick(&[5, 10]) } else { 0 },
        shipping_cents: 0,
    }
}

/// Two draws and mostly the smaller one: early customers buy more often.
fn buyer<'a>(lcg: &mut Lcg, customers: &'a [Customer], day: Date) -> &'a Customer {
    let known: Vec<&Customer> = customers.iter().filter(|c| c.since <= day).collect();
    let (one, other) = (*lcg.pick(&known), *lcg.pick(&known));
    if other.id < one.id && lcg.chance(60) { other } else { one }
}

fn channel(lcg: &mut Lcg, customer: &Customer) -> SalesChannel {
    match (customer.segment, customer.country.as_str(), lcg.range(1, 100)) {
        ("wholesale", _, 1..=60) => SalesChannel::Phone,
        ("wholesale", ..) => SalesChannel::Eshop,
        (_, "CZ", 1..=14) => SalesChannel::Store,
        (_, _, 1..=74) => SalesChannel::Eshop,
        (_, _, 75..=90) => SalesChannel::Marketplace,
        _ => SalesChannel::Phone,
    }
}

fn method(lcg: &mut Lcg, customer: &Customer, channel: SalesChannel) -> PaymentMethod {
    match (channel, customer.terms_days > 0, lcg.range(1, 100)) {
        (SalesChannel::Store, _, 1..=60) => PaymentMethod::Card,
        (SalesChannel::Store, ..) => PaymentMethod::Cash,
        (_, true, _) => PaymentMethod::Invoice,
        (_, _, 1..=55) => PaymentMethod::Card,
        (_, _, 56..=80) => PaymentMethod::BankTransfer,
        _ => PaymentMethod::Cod,
    }
}

fn items(lcg: &mut Lcg, order: &mut Order, pool: &[&Variant], item_id: &mut i64) {
    let is_wholesale = order.customer.segment == "wholesale";
    for _ in 0..lcg.range(1, if is_wholesale { 5 } else { 3 }) {
        let variant = *lcg.pick(pool);
        let quantity = if is_wholesale { lcg.range(2, 8) } else { 1 + i64::from(lcg.chance(20)) };
        if order.items.iter().any(|item| item.variant.id == variant.id) {
            continue;
        }
        *item_id += 1;
        order.items.push(Item {
            id: *item_id,
            variant: variant.clone(),
            quantity,
            unit_cents: variant.price(order.customer.segment, order.customer.currency),
            refunded: 0,
        });
    }
    let (free_from, per_unit) = match order.customer.currency {
        Currency::Czk => (200_000, 1),
        Currency::Eur => (8000, 25),
        Currency::Pln => (35_000, 6),
    };
    if order.items_cents() < free_from {
        order.shipping_cents = order.carrier.map_or(0, |c| c.price_cents / per_unit / 10 * 10);
    }
}

fn progress(lcg: &mut Lcg, order: &mut Order, end: Date) {
    let age = end.days_since(order.placed);
    let roll = lcg.range(1, 100);
    order.status = if order.channel == SalesChannel::Store { OrderStatus::Delivered } else { status(age, roll) };
    let carrier_days = order.carrier.map_or((0, 0), |c| c.days);
    let late = if lcg.chance(15) { lcg.range(1, 4) } else { 0 };
    let shipped = order.placed.plus_days(if order.carrier.is_some() { lcg.range(1, 2).min(age) } else { 0 });
    let delivered = shipped.plus_days(lcg.range(carrier_days.0, carrier_days.1) + late);
    match order.status {
        OrderStatus::Shipped => order.shipped = Some(shipped),
        OrderStatus::Delivered | OrderStatus::Returned => {
            order.shipped = Some(shipped);
            order.delivered = Some(delivered.min(end));
        }
        _ => {}
    }
    if order.status == OrderStatus::Delivered
        && order.method != PaymentMethod::Invoice
        && lcg.chance(6)
        && let Some(item) = order.items.first_mut()
    {
        item.refunded = 1;
    }
    if order.status == OrderStatus::Returned {
        for item in &mut order.items {
            item.refunded = item.quantity;
        }
    }
    order.payment = payment(lcg, order);
}

fn status(age: i64, roll: i64) -> OrderStatus {
    match (age, roll) {
        (13.., 1..=6) => OrderStatus::Cancelled,
        (13.., 7..=10) => OrderStatus::Returned,
        (13.., 11..=99) => OrderStatus::Delivered,
        (5..=12, 1..=5) => OrderStatus::OnHold,
        (5..=12, 6..=60) => OrderStatus::Delivered,
        (3..=4, 1..=20) => OrderStatus::Packed,
        (3..=4, 21..=40) => OrderStatus::Picking,
        (3..=4, 41..=60) => OrderStatus::Confirmed,
        (3.., _) => OrderStatus::Shipped,
        (2, 1..=25) => OrderStatus::Packed,
        (2, 26..=55) => OrderStatus::Picking,
        (2, 56..=62) => OrderStatus::Cancelled,
        (_, 1..=45) => OrderStatus::New,
        (_, 46..=55) => OrderStatus::Picking,
        _ => OrderStatus::Confirmed,
    }
}

fn payment(lcg: &mut Lcg, order: &Order) -> PaymentStatus {
    match order.status {
        OrderStatus::Cancelled => return PaymentStatus::Unpaid,
        OrderStatus::Returned => return PaymentStatus::Refunded,
        _ if order.items.iter().any(|item| item.refunded > 0) => {
            return PaymentStatus::PartRefunded;
        }
        _ => {}
    }
    match order.method {
        PaymentMethod::Card | PaymentMethod::Cash => PaymentStatus::Paid,
        PaymentMethod::BankTransfer if order.status == OrderStatus::New => PaymentStatus::Unpaid,
        PaymentMethod::BankTransfer => PaymentStatus::Paid,
        PaymentMethod::Cod if order.delivered.is_some() => PaymentStatus::Paid,
        PaymentMethod::Cod => PaymentStatus::Unpaid,
        // Invoices run long: what is old enough has mostly been paid.
        PaymentMethod::Invoice => match order.delivered {
            Some(_) if lcg.chance(8) => PaymentStatus::Partial,
            Some(_) if lcg.chance(80) => PaymentStatus::Paid,
            _ => PaymentStatus::Unpaid,
        },
    }
}
