-- The shop's database. Amounts are integers in hundredths of the currency and include VAT.
-- Days are YYYY-MM-DD, moments YYYY-MM-DDTHH:MM:SS. `version` counts the writes on a record.

create table settings (key text primary key, value text not null);
create table users (id integer primary key, login text not null unique, name text not null, role text not null);
create table currencies (code text primary key, czk_micro integer not null); -- CZK for one unit, times 1,000,000
create table vat_rates (
    id integer primary key, country text not null, kind text not null, -- standard, reduced, zero
    percent integer not null, valid_from text not null, label text not null);
create table holidays (country text not null, day text not null, name text not null, primary key (country, day));
create table activity (
    id integer primary key, at text not null, user_id integer not null references users, tool text not null,
    about text not null, summary text not null); -- about: a record's code or a SKU
create table notes (
    id integer primary key, about text not null, body text not null, author_id integer not null references users,
    created_at text not null);
create table tasks (
    id integer primary key, title text not null, about text, assignee_id integer not null references users,
    priority text not null, -- low, normal, high
    status text not null, -- open, done
    due_on text, created_by integer not null references users, created_at text not null, version integer not null default 1);

create table customers (
    id integer primary key, kind text not null, -- person, company
    name text not null, email text not null unique, phone text, reg_no text, vat_no text,
    currency text not null references currencies, segment text not null, -- retail, club, wholesale
    credit_limit_cents integer not null default 0, payment_terms_days integer not null default 0,
    marketing_consent integer not null default 0, merged_into integer references customers,
    created_at text not null, updated_at text not null, version integer not null default 1);
create table addresses (
    id integer primary key, customer_id integer not null references customers, kind text not null, -- billing, shipping
    name text not null, street text not null, city text not null, postcode text not null, country text not null,
    is_default integer not null default 0);

create table categories (
    id integer primary key, slug text not null unique, name text not null, parent_id integer references categories);
create table suppliers (
    id integer primary key, name text not null, country text not null, email text not null, currency text not null,
    lead_days integer not null, min_order_cents integer not null);
create table products (
    id integer primary key, name text not null, brand text not null, description text not null,
    status text not null, -- draft, active, archived
    vat_percent integer not null, supplier_id integer not null references suppliers,
    created_at text not null, updated_at text not null, version integer not null default 1);
create table product_categories (
    product_id integer not null references products, category_id integer not null references categories,
    is_main integer not null default 0, primary key (product_id, category_id));
create table variants (
    id integer primary key, product_id integer not null references products, sku text not null unique,
    name text not null, -- of the variant alone: "green", "42", or "" when there is one only
    ean text not null unique, weight_g integer not null, cost_cents integer not null, -- in CZK, without VAT
    status text not null, -- active, discontinued
    reorder_point integer not null, reorder_qty integer not null, version integer not null default 1);
create table prices (
    id integer primary key, variant_id integer not null references variants, list text not null, -- as customers.segment
    currency text not null, amount_cents integer not null, valid_from text not null, valid_to text,
    created_at text not null);
create index prices_variant on prices (variant_id, list, currency);

create table warehouses (
    id integer primary key, code text not null unique, name text not null, city text not null, kind text not null); -- main, store, outlet
create table stock (
    variant_id integer not null references variants, warehouse_id integer not null references warehouses,
    on_hand integer not null, reserved integer not null default 0, version integer not null default 1,
    primary key (variant_id, warehouse_id),
    check (on_hand >= 0 and reserved >= 0 and reserved <= on_hand)); -- free to sell: on_hand - reserved
create table stock_movements (
    id integer primary key, variant_id integer not null references variants, warehouse_id integer not null references warehouses,
    delta integer not null, -- the sum over all movements is stock.on_hand
    kind text not null, -- receipt, sale, return, adjust, transfer
    reason text, order_id integer references orders, user_id integer references users, at text not null);
create table reservations ( -- by hand, for no order; those of orders follow from open order items
    id integer primary key, variant_id integer not null references variants, warehouse_id integer not null references warehouses,
    quantity integer not null, reason text not null, status text not null, -- active, released
    expires_on text, user_id integer not null references users, created_at text not null);

create table orders (
    id integer primary key, customer_id integer not null references customers, status text not null,
    channel text not null, -- eshop, store, phone, marketplace
    source text not null, -- as visits.channel: organic, paid, email, direct, social; none outside the e-shop
    warehouse_id integer not null references warehouses, -- ships all items
    currency text not null, items_cents integer not null, discount_cents integer not null, shipping_cents integer not null,
    total_cents integer not null, -- items - discount + shipping
    refunded_cents integer not null default 0,
    payment_method text not null, payment_status text not null,
    billing_address_id integer not null references addresses, shipping_address_id integer not null references addresses,
    carrier_id integer references carriers, -- none: picked up at the store
    customer_note text, internal_note text, parent_id integer references orders, -- the order it was split from
    placed_at text not null, shipped_at text, delivered_at text, cancelled_at text, cancel_reason text,
    updated_at text not null, version integer not null default 1);
create index orders_customer on orders (customer_id);
create index orders_placed on orders (placed_at);
create table order_items (
    id integer primary key, order_id integer not null references orders, line integer not null,
    variant_id integer not null references variants, quantity integer not null, unit_cents integer not null,
    discount_cents integer not null default 0, total_cents integer not null, -- quantity * unit - discount
    vat_percent integer not null, cost_cents integer not null, -- of one, in CZK without VAT, when ordered
    refunded_quantity integer not null default 0, unique (order_id, line));
create table order_events (
    id integer primary key, order_id integer not null references orders, at text not null, user_id integer references users,
    kind text not null, -- placed, status, item, discount, payment, refund, shipment, edit, split, note
    message text not null);
create index order_events_order on order_events (order_id);
create table discounts (
    id integer primary key, order_id integer not null references orders, item_id integer references order_items, -- none: whole order
    percent integer, -- none: a fixed amount
    amount_cents integer not null, reason text not null, user_id integer references users, created_at text not null);
create table refunds (
    id integer primary key, order_id integer not null references orders, amount_cents integer not null,
    reason text not null, -- damaged, wrong_item, not_as_described, changed_mind, late, goodwill
    method text not null, -- original, bank_transfer, voucher
    restocked integer not null, user_id integer references users, created_at text not null);
create table refund_items (
    refund_id integer not null references refunds, item_id integer not null references order_items,
    quantity integer not null, amount_cents integer not null, primary key (refund_id, item_id));

create table invoices (
    id integer primary key, number text unique, -- such as 2026000123; none while a draft
    kind text not null, -- invoice, credit_note
    status text not null, -- draft, issued, paid, cancelled
    customer_id integer not null references customers, order_id integer references orders,
    corrects_id integer references invoices, -- of a credit note
    currency text not null, net_cents integer not null, vat_cents integer not null,
    total_cents integer not null, -- negative on credit notes
    paid_cents integer not null default 0, issued_on text, due_on text, variable_symbol text, note text,
    cancelled_at text, cancel_reason text, created_at text not null, updated_at text not null, version integer not null default 1);
create index invoices_customer on invoices (customer_id);
create table invoice_lines (
    id integer primary key, invoice_id integer not null references invoices, line integer not null, description text not null,
    variant_id integer references variants, quantity integer not null, unit_cents integer not null, vat_percent integer not null,
    net_cents integer not null, vat_cents integer not null, total_cents integer not null, unique (invoice_id, line));
create table payments (
    id integer primary key, invoice_id integer references invoices, order_id integer references orders,
    amount_cents integer not null, currency text not null, method text not null, paid_on text not null,
    reference text, user_id integer references users, created_at text not null);
create table reminders (
    id integer primary key, invoice_id integer not null references invoices, level integer not null, -- 1 to 3
    channel text not null, -- email, post
    fee_cents integer not null default 0, message text not null, sent_at text not null, user_id integer references users);

create table delivery_lists (
    id integer primary key, order_id integer not null references orders, warehouse_id integer not null references warehouses,
    status text not null, -- draft, picking, confirmed, cancelled
    picker_id integer references users, note text, created_at text not null, picking_at text, confirmed_at text,
    cancelled_at text, printed_at text, updated_at text not null, version integer not null default 1);
create table delivery_list_items (
    id integer primary key, delivery_list_id integer not null references delivery_lists, order_item_id integer not null references order_items,
    quantity integer not null, picked integer not null default 0, location text not null, unique (delivery_list_id, order_item_id));

create table carriers (
    id integer primary key, code text not null unique, name text not null, kind text not null, -- home, pickup
    countries text not null, -- comma-separated
    price_cents integer not null, -- in CZK, what the customer pays
    cost_cents integer not null, -- in CZK, what the shop pays
    cod_fee_cents integer, -- none: no cash on delivery
    max_weight_g integer not null, days_min integer not null, days_max integer not null, tracking_url text not null);
create table branches (
    id integer primary key, carrier_id integer not null references carriers, code text not null unique, name text not null,
    kind text not null, -- box, counter
    street text not null, city text not null, postcode text not null, country text not null, opening text not null,
    is_open integer not null default 1);
create table shipments (
    id integer primary key, order_id integer not null references orders, carrier_id integer not null references carriers,
    branch_id integer references branches, status text not null, -- created, handed_over, in_transit, delivered, returned, cancelled
    tracking_no text not null unique, weight_g integer not null, cod_cents integer not null default 0,
    value_cents integer not null, currency text not null, cost_cents integer not null, -- in CZK
    expected_on text not null, label_at text, handed_over_at text, delivered_at text,
    created_at text not null, updated_at text not null, version integer not null default 1);
create table shipment_events (
    id integer primary key, shipment_id integer not null references shipments, at text not null, status text not null,
    place text not null, message text not null);

create table visits (
    day text not null, channel text not null, -- organic, paid, email, direct, social
    sessions integer not null, product_views integer not null, carts integer not null, checkouts integer not null,
    primary key (day, channel));
