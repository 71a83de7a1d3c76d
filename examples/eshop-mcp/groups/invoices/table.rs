//! The table of the invoice tools.

use crate::{
    ctx::Role,
    groups::invoices::{create, credit, issue, list, overdue, pay, payments, read as sheet, remind},
    tool::{Effect, Entry, NONE, Spec, read, write},
};

/// Makes the group's tools.
pub(crate) fn tools() -> Vec<Entry> {
    let mut tools = lists();
    tools.extend(debts());
    tools.extend(papers());
    tools.extend(corrections());
    tools.extend(money());
    tools
}

fn lists() -> Vec<Entry> {
    vec![
        read(
            spec(
                "invoices_list",
                "List invoices",
                [
                    "Finds invoices and credit notes by any mix of text, state, kind, customer, order, product, country, amount and days, and sums the matches per currency, kind and state.",
                    "looking for a paper, or asking how much was billed and how much of it is open. For lines and VAT of one use invoices_get; for debts by age use invoices_overdue_list; for money that came in use invoices_payments_list; for turnover over time use analytics_revenue_timeseries.",
                    "cards only, at most 100 a page; text is matched as a part, ignoring case for ASCII only; amounts stay in each paper's currency, and cancelled ones are in the sums unless `status` leaves them out.",
                ],
            ),
            list::list,
        ),
        read(
            spec(
                "invoices_get",
                "Get an invoice",
                [
                    "Gives one invoice or credit note whole: supplier and buyer, lines, VAT recapitulation, payments, reminders, credit notes, and the writes its state allows next.",
                    "before any write on an invoice, for its version and line numbers, or to answer what a customer was billed for. Without code or number use invoices_list; for the goods' own state use orders_get; for what led to it use orders_timeline.",
                    "takes exactly one of id and number; drafts have no number; the buyer is shown as the customer is now, not as on the day of issue; no printable file is made.",
                ],
            ),
            sheet::get,
        ),
    ]
}

fn debts() -> Vec<Entry> {
    vec![
        read(
            spec(
                "invoices_overdue_list",
                "List overdue invoices",
                [
                    "Lists issued invoices past their due day with age, contact, last reminder and the day from which the next may go out, and sums what is open per currency and age.",
                    "chasing debts, or judging a customer before delivering on invoice. To remind use invoices_reminder_send; for invoices not yet due use invoices_list; for one customer's whole balance use customers_get; for how late customers pay on average use analytics_payment_delay.",
                    "counts calendar days up to the shop's today; drafts, credit notes, paid and cancelled invoices are left out; fees of reminders are not in what is open.",
                ],
            ),
            overdue::list,
        ),
        read(
            spec(
                "invoices_payments_list",
                "List payments",
                [
                    "Lists recorded payments by invoice, order, customer, reference, way, direction, amount and day, and sums the matches per currency, way and direction.",
                    "checking whether money has arrived, or what a bank statement line was booked on. To record one use invoices_payment_record; for what is still missing use invoices_overdue_list; for all payments of one paper invoices_get is shorter.",
                    "shows what was recorded, not the bank account; money out is what was paid back on credit notes or moved to another order; refunds of orders without a credit note are in orders_timeline only.",
                ],
            ),
            payments::list,
        ),
    ]
}

fn spec(name: &'static str, title: &'static str, [does, when, limits]: [&'static str; 3]) -> Spec {
    Spec { name, title, does, when, effects: NONE, limits, effect: Effect::Read, role: Role::Viewer }
}

fn papers() -> Vec<Entry> {
    vec![
        write(
            Spec {
                name: "invoices_create",
                title: "Draft an invoice",
                does: "Drafts an invoice for a whole order, with its lines, discounts and shipping, or for a customer with lines given by hand, and computes the VAT per rate.",
                when: "goods are ready to leave, or a service without an order is billed. Nothing is owed before invoices_issue; to change what an order costs use orders_discount_apply before; to take something back use invoices_credit_note_create.",
                effects: "stores a draft without a number; order, stock and payments stay as they are; writes the activity log; no e-mail is sent.",
                limits: "one invoice per order, unless the earlier one is cancelled or credited in full; not for cancelled orders; prices include VAT, and rates are those of the shop's country; a draft cannot be edited, only cancelled and made anew.",
                effect: Effect::Add,
                role: Role::Clerk,
            },
            create::create,
        ),
        write(
            Spec {
                name: "invoices_issue",
                title: "Issue an invoice",
                does: "Issues a draft: gives it the next number of the year without gaps, the variable symbol, the day of issue and the due day.",
                when: "the draft was checked and the goods leave or have left. To see the draft first use invoices_get; to drop it use invoices_cancel; what is wrong afterwards is corrected with invoices_credit_note_create.",
                effects: "takes payments in advance over from the order, so that a prepaid invoice is paid at once; the rest counts against the customer's credit limit from now on; writes the activity log; no e-mail is sent.",
                limits: "drafts only, and not when the order was cancelled or costs something else by now; never before the day of the last number of that year nor in the future; cannot be undone.",
                effect: Effect::Destroy,
                role: Role::Clerk,
            },
            issue::issue,
        ),
    ]
}

fn corrections() -> Vec<Entry> {
    vec![
        write(
            Spec {
                name: "invoices_cancel",
                title: "Cancel an invoice",
                does: "Calls off a draft, or an issued invoice on which nothing was settled.",
                when: "the invoice should not exist: wrong customer, doubled, or the order fell through. With a payment or credit note on it use invoices_credit_note_create; to call off the order itself use orders_cancel, which cancels its drafts too.",
                effects: "nothing of it is owed any more and no reminders go out; a number once given stays with the cancelled paper, so the series has no gap; the order can be billed again; writes the activity log.",
                limits: "not when paid even in part, nor with a credit note, nor credit notes themselves; cannot be undone.",
                effect: Effect::Destroy,
                role: Role::Manager,
            },
            issue::cancel,
        ),
        write(
            Spec {
                name: "invoices_credit_note_create",
                title: "Write a credit note",
                does: "Writes and issues a credit note that takes back pieces of an invoice, an amount of it, or all that is left, with VAT per rate.",
                when: "billed goods came back, a price was wrong, or a discount is granted after issue. When money goes back for an order use orders_refund first, so that the credit note is settled by it; for an invoice on which nothing was settled invoices_cancel is simpler.",
                effects: "takes the next number of the year; lowers what is open on the invoice first, which may make it paid, then counts the order's refunds; what remains is to be paid back; order, stock and payment state of the order stay as they are; writes the activity log.",
                limits: "only for issued or paid invoices, and never more than is left of the invoice or of a line; dated today; cannot be undone.",
                effect: Effect::Destroy,
                role: Role::Manager,
            },
            credit::create,
        ),
    ]
}

fn money() -> Vec<Entry> {
    vec![
        write(
            Spec {
                name: "invoices_payment_record",
                title: "Record a payment",
                does: "Records money that came in for an issued invoice, or for an order in advance of its invoice, or that was paid back on a credit note.",
                when: "a bank statement, a card terminal or a carrier shows the money. To see what is recorded use invoices_payments_list; to give money back for an order use orders_refund.",
                effects: "an invoice becomes paid when nothing is open any more; the order's payment state follows from all its payments; a payment in advance waits on the order until invoices_issue takes it over; writes the activity log; no money moves and no e-mail is sent.",
                limits: "not more than is open, in the paper's own currency, not dated in the future; the same reference, amount and day only once; an order with an open invoice is paid through the invoice; a credit note takes role manager and, for an order, a refund to match; cannot be taken back.",
                effect: Effect::Add,
                role: Role::Clerk,
            },
            pay::record,
        ),
        write(
            Spec {
                name: "invoices_reminder_send",
                title: "Send a reminder",
                does: "Sends the next reminder of an overdue invoice by e-mail or post, with the standard text of its level or your own.",
                when: "an invoice is past its due day and the customer is silent. To find those that may be reminded use invoices_overdue_list with `remindable`; when the money has come use invoices_payment_record instead; to stop further debts use customers_credit_limit_set.",
                effects: "the customer gets the message; keeps level, text and fee with the invoice, shows in orders_timeline, writes the activity log.",
                limits: "only issued invoices past due; levels 1, 2, 3 in this order, at least 7 days apart, then no more; a fee from level 2 on, which is not added to the invoice; what was sent cannot be taken back.",
                effect: Effect::AddOutside,
                role: Role::Clerk,
            },
            remind::send,
        ),
    ]
}
