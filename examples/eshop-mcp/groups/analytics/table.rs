//! The table of the analytics tools.

use crate::{
    ctx::Role,
    groups::analytics::{
        anomalies, basket, carriers, categories, churn, cohorts, conversion, customers, dead, forecast, funnel, ltv,
        margin, payments, products, returns, revenue, series, turnover,
    },
    tool::{Effect, Entry, NONE, Spec, read},
};

/// Makes the group's tools.
pub(crate) fn tools() -> Vec<Entry> {
    let mut tools = money();
    tools.extend(orders());
    tools.extend(visits());
    tools.extend(rankings());
    tools.extend(goods());
    tools.extend(people());
    tools.extend(service());
    tools.extend(ahead());
    tools
}

fn spec(name: &'static str, title: &'static str, [does, when, limits]: [&'static str; 3]) -> Spec {
    Spec { name, title, does, when, effects: NONE, limits, effect: Effect::Read, role: Role::Viewer }
}

fn money() -> Vec<Entry> {
    vec![
        read(
            spec(
                "analytics_revenue_summary",
                "Revenue in one look",
                [
                    "Sums the orders of a period: goods, discounts, shipping, gross, refunds, net, average order, all and new customers, each compared with an earlier period; breaks net down by one attribute with shares.",
                    "the question is how much, or how much more than before. For a curve over time use analytics_revenue_timeseries; for what is left after the cost of goods use analytics_margin_report; for single orders and exact sums per currency use orders_search.",
                    "without cancelled orders, VAT included; refunds count on the day of the order; other currencies are converted at the shop's present rates; at most 400 days.",
                ],
            ),
            revenue::summary,
        ),
        read(
            spec(
                "analytics_revenue_timeseries",
                "Revenue over time",
                [
                    "Gives orders, pieces and net by day, week or month, with running sum, moving average, the compared days beside, the best and the worst step and a trend.",
                    "somebody wants a curve, a season or a trend. For one sum with a breakdown use analytics_revenue_summary; for days that stand out use analytics_anomalies; for what comes next use analytics_forecast_demand.",
                    "counts as analytics_revenue_summary does; weeks start on Monday, and the first and last step may be cut by the period; the trend is a straight line and knows no season.",
                ],
            ),
            series::series,
        ),
        read(
            Spec {
                role: Role::Manager,
                ..spec(
                    "analytics_margin_report",
                    "Margin",
                    [
                        "Works out revenue without VAT, cost of goods and margin, in total and by group, against an earlier period, and counts the lines sold below cost.",
                        "pricing, or finding what earns and what does not. For revenue alone use analytics_revenue_summary; to change a price use store_price_set; for stock that binds money use analytics_stock_turnover.",
                        "discounts are taken off, on whole orders in proportion; pieces that came back are taken out of both sides; cost is that of the day of the order; shipping, carriers and payment fees are not in it; months are not compared.",
                    ],
                )
            },
            margin::report,
        ),
    ]
}

fn orders() -> Vec<Entry> {
    vec![
        read(
            spec(
                "analytics_orders_funnel",
                "Way of the orders",
                [
                    "Shows how many orders of a period reached each stage from placed to delivered, their worth, how long each step took, what was cancelled or came back, and where the rest stands now.",
                    "orders seem to get stuck, or the warehouse wants to know its pace. For the orders themselves use orders_search with waiting_days; for visits before the order use analytics_conversion_by_channel; for carriers use analytics_carrier_performance.",
                    "counts cancelled orders too; recent orders have had less time to get on; hours come from the timelines, the first time each stage was reached, and are missing for orders split off.",
                ],
            ),
            funnel::funnel,
        ),
        read(
            spec(
                "analytics_basket_size",
                "Size of baskets",
                [
                    "Gives mean and median order, pieces and products in an order, how orders spread over sizes, and the pairs of products that are bought together, with support, confidence and lift.",
                    "planning bundles, free-shipping limits or recommendations. For the best sellers use analytics_top_products; for average orders by channel or country use analytics_revenue_summary with group_by.",
                    "cancelled orders are left out; amounts include shipping and VAT and are before refunds; pairs are of products, not variants, and of few orders they are chance: raise min_together.",
                ],
            ),
            basket::baskets,
        ),
    ]
}

fn visits() -> Vec<Entry> {
    vec![
        read(
            spec(
                "analytics_conversion_by_channel",
                "Conversion by channel",
                [
                    "Follows visits of the e-shop from session to cart, checkout and order, by the channel that brought them, with rates, revenue, revenue per session and shares.",
                    "judging campaigns and channels. For stages after the order use analytics_orders_funnel; for a day on which clicks jumped use analytics_anomalies; for revenue by sales channel use analytics_revenue_summary.",
                    "e-shop orders only; an order counts for the channel noted with it, on the day it was placed; cancelled orders count as orders but not as revenue; what campaigns cost is not known.",
                ],
            ),
            conversion::conversion,
        ),
        read(
            spec(
                "analytics_returns_rate",
                "Returns",
                [
                    "Works out which part of the pieces sold was refunded, in total and by group, how much money went back, and for which reasons.",
                    "a product seems to come back often. For one order use orders_timeline; to pay back use orders_refund; for parcels that were not collected use analytics_carrier_performance.",
                    "by the day of the order, so recent orders may still come back; a refund without pieces is in the amounts and reasons only; groups under min_pieces are left out.",
                ],
            ),
            returns::rate,
        ),
    ]
}

fn rankings() -> Vec<Entry> {
    vec![
        read(
            spec(
                "analytics_top_products",
                "Best products",
                [
                    "Ranks products or variants by revenue, pieces or orders, with share, running share, average price and the rank they had before.",
                    "asked what sells best, or which few products make most of the revenue. For categories use analytics_category_performance; for what does not sell use analytics_dead_stock; for what earns most use analytics_margin_report.",
                    "cancelled orders are left out; revenue is after discounts, before refunds, VAT included; only what sold is ranked; at most 100 ranks.",
                ],
            ),
            products::top,
        ),
        read(
            spec(
                "analytics_top_customers",
                "Best customers",
                [
                    "Ranks customers by net revenue, orders or average order, with shares, comparison, first and last order, and how much the top tenth brings.",
                    "asked who matters most in a period. For what they are worth in the long run use analytics_customer_ltv; for those who stay away use analytics_churn_risk; for one customer's data use customers_get.",
                    "only customers who ordered in the period; cancelled orders are left out; VAT is included, refunds are taken off; at most 100 ranks.",
                ],
            ),
            customers::top,
        ),
        read(
            spec(
                "analytics_category_performance",
                "Categories",
                [
                    "Compares categories, or their parents: revenue, share and its shift, pieces, orders, average price, returns, and the product that sold best.",
                    "deciding on assortment or seeing what grows. For products within a category use analytics_top_products with category; for its stock use analytics_stock_turnover; for the tree itself use store_categories_list.",
                    "a product counts for its main category only; counts as analytics_top_products does; an order with several categories counts in each.",
                ],
            ),
            categories::performance,
        ),
    ]
}

fn goods() -> Vec<Entry> {
    vec![
        read(
            spec(
                "analytics_stock_turnover",
                "Stock turnover",
                [
                    "Works out from stock movements how often stock turns over in a year and how many days it lasts, in total and by group, the slowest first.",
                    "judging how much money lies in stock. For pieces that do not move at all use analytics_dead_stock; for what to order use store_reorder_suggest; for the present count use store_stock_list.",
                    "worth is at the present cost without VAT, also for earlier days; average stock is the mean of the worth before the first and after the last day only; pieces put back are taken off.",
                ],
            ),
            turnover::turnover,
        ),
        read(
            spec(
                "analytics_dead_stock",
                "Dead stock",
                [
                    "Finds variants that lie in a warehouse and have neither sold nor been received there for a number of days, with worth at cost, last sale, sales elsewhere, and what could be done.",
                    "clearing shelves or planning a sale. To move pieces use store_stock_transfer; to lower a price use store_price_set; for goods that sell slowly use analytics_stock_turnover.",
                    "looks at today only and compares with no earlier day; a row is a variant in one warehouse; advice follows from last sales alone and knows no season.",
                ],
            ),
            dead::dead,
        ),
        read(
            spec(
                "analytics_forecast_demand",
                "Forecast demand",
                [
                    "Forecasts pieces a week for a variant, product, category or the whole shop: the mean of the last complete weeks times the season of last year, with a range, the stock set against it, and how well the mean did on past weeks.",
                    "planning purchases for the next weeks. For an order proposal by reorder point use store_reorder_suggest; for past revenue use analytics_revenue_timeseries; for present stock use store_stock_get.",
                    "the season is that of the whole shop, between half and double, and 1 where last year is not recorded; no trend, price or campaign is in it; with few pieces a week the range says more than the number.",
                ],
            ),
            forecast::forecast,
        ),
    ]
}

fn people() -> Vec<Entry> {
    vec![
        read(
            spec(
                "analytics_customer_cohorts",
                "Customer cohorts",
                [
                    "Groups customers by the month of their first order and shows for each month after it how many came back, their orders and net, and the mean over all cohorts.",
                    "asked whether customers stay, or whether newer ones stay better. For single customers who stay away use analytics_churn_risk; for what customers are worth use analytics_customer_ltv; for new customers in a period use analytics_revenue_summary.",
                    "month 0 is that of the first order; the present month is not complete and marked so; cancelled orders are left out; cohorts of a few customers jump.",
                ],
            ),
            cohorts::cohorts,
        ),
        read(
            spec(
                "analytics_customer_ltv",
                "Customer lifetime value",
                [
                    "Estimates what customers are worth: net so far plus their monthly net times a horizon, for active ones; by segment in the mean, and by customer.",
                    "deciding what winning or keeping a customer may cost. For a ranking within a period use analytics_top_customers; for who may leave use analytics_churn_risk; to change a credit limit use customers_credit_limit_set.",
                    "revenue with VAT, not profit; a straight line into the future without discounting; customers of less than three months count as three months old; customers without orders are left out.",
                ],
            ),
            ltv::ltv,
        ),
        read(
            spec(
                "analytics_churn_risk",
                "Churn risk",
                [
                    "Finds customers who have been away longer than is usual for them: days since the last order over the median gap between their orders, in four levels, with the net of their last year.",
                    "choosing whom to call or write to. For how cohorts stay use analytics_customer_cohorts; for a customer's data and consent use customers_get; to remember a call use core_task_create.",
                    "customers with fewer than min_orders show no rhythm and are only counted; gaps under 14 days count as 14; seasonal buyers look lost out of season.",
                ],
            ),
            churn::churn,
        ),
    ]
}

fn service() -> Vec<Entry> {
    vec![
        read(
            spec(
                "analytics_payment_delay",
                "Payment delay",
                [
                    "Shows how late invoices of a period were paid: share on time, days after the due day in total and by group, and what is open by age.",
                    "setting terms or credit limits, or planning cash. For the overdue invoices themselves use invoices_overdue_list; to remind use invoices_reminder_send; for one customer's payments use invoices_payments_list.",
                    "by day of issue; drafts, cancelled invoices and credit notes are left out; delays are of invoices paid in full, by their last payment, so invoices still open make the mean look better.",
                ],
            ),
            payments::delay,
        ),
        read(
            spec(
                "analytics_carrier_performance",
                "Carriers",
                [
                    "Compares carriers by the parcels handed over in a period: delivered, returned, on time, days taken, lateness, and what they cost against what customers paid for shipping.",
                    "choosing a carrier or talking to one. For one parcel use balikobot_track; for prices and countries of carriers use balikobot_carriers_list; for delays before the hand-over use analytics_orders_funnel.",
                    "on time is against the day expected when the parcel was made; parcels overdue today count as late; costs are without surcharges for weight or returns; free shipping makes the balance negative.",
                ],
            ),
            carriers::performance,
        ),
    ]
}

fn ahead() -> Vec<Entry> {
    vec![read(
        spec(
            "analytics_anomalies",
            "Unusual days",
            [
                "Finds days that stand out from the days around them in visits, orders, revenue or cancellations, by a robust z-score, and says what each may mean.",
                "something looks odd, or as a regular check of visits and sales. For the curve itself use analytics_revenue_timeseries; for channels in sum use analytics_conversion_by_channel; for the orders of a day use orders_search.",
                "a day is compared with up to `window` days before and after it, whatever their weekday; sessions, carts and checkouts are per channel; the usual spread counts as at least one, so days of few orders seldom stand out.",
            ],
        ),
        anomalies::anomalies,
    )]
}
