//! From visit to order, by the channel that brought the visitor.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Currency, DateRange, OrderStatus, SalesChannel},
    ctx::Ctx,
    error::ShopError,
    groups::analytics::{
        facts::{Sale, SaleFilter, placed},
        figures::{Figure, Rate, mean_cents, percent},
        period::{Compare, Scope, Span, czk, previous},
        revenue::count,
    },
    values::words,
};

words!(/// What brought a visitor to the e-shop.
VisitChannel {
    Organic = "organic",
    Paid = "paid",
    Email = "email",
    Direct = "direct",
    Social = "social",
});

impl VisitChannel {
    /// All channels, in the order of reports.
    pub(crate) const ALL: [Self; 5] = [Self::Organic, Self::Paid, Self::Email, Self::Direct, Self::Social];
}

/// Which visits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConversionParams {
    /// Days of the visits and orders; the last 30 when absent.
    period: Option<DateRange>,
    #[serde(default = "previous")]
    compare: Compare,
    #[serde(default = "czk")]
    currency: Currency,
    #[serde(default)]
    #[schemars(description = "Channels to show; all when absent.", length(max = 5), example = [VisitChannel::Paid])]
    channels: Vec<VisitChannel>,
}

/// Channels and their sum.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Conversion {
    scope: Scope,
    channels: Vec<ChannelRow>,
    /// Over the channels shown.
    total: Steps,
}

/// A channel.
#[derive(Debug, Serialize, JsonSchema)]
struct ChannelRow {
    channel: VisitChannel,
    steps: Steps,
    /// Of all sessions shown.
    sessions_share_percent: Option<f64>,
    /// Of all revenue shown.
    revenue_share_percent: Option<f64>,
}

/// From session to revenue.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
struct Steps {
    sessions: Figure,
    product_views: i64,
    /// Sessions with a filled cart.
    carts: i64,
    /// Sessions that came to the checkout.
    checkouts: i64,
    /// Orders placed, later cancelled ones included.
    orders: Figure,
    /// carts / sessions.
    cart_percent: Option<f64>,
    /// checkouts / carts.
    checkout_percent: Option<f64>,
    /// orders / checkouts.
    completion_percent: Option<f64>,
    /// orders / sessions.
    conversion: Rate,
    /// Net of orders not cancelled, VAT included.
    revenue_cents: Figure,
    /// revenue / sessions.
    revenue_per_session_cents: i64,
}

/// Plain counts of a channel, or of several.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    sessions: i64,
    views: i64,
    carts: i64,
    checkouts: i64,
    orders: i64,
    revenue: i64,
}

impl Counts {
    fn plus(self, other: Self) -> Self {
        Self {
            sessions: self.sessions + other.sessions,
            views: self.views + other.views,
            carts: self.carts + other.carts,
            checkouts: self.checkouts + other.checkouts,
            orders: self.orders + other.orders,
            revenue: self.revenue + other.revenue,
        }
    }
}

pub(crate) fn conversion(ctx: &Ctx<'_>, params: ConversionParams) -> Result<Conversion, ShopError> {
    let scope = Scope::new(ctx, params.period, 30, params.compare, params.currency)?;
    let shown: Vec<VisitChannel> = VisitChannel::ALL
        .into_iter()
        .filter(|channel| params.channels.is_empty() || params.channels.contains(channel))
        .collect();
    let read = |span: Span| read(ctx, span, &shown, params.currency);
    let now = read(scope.period)?;
    let before = scope.compared.map(read).transpose()?;
    let sum = |counts: &[Counts]| counts.iter().fold(Counts::default(), |a, b| a.plus(*b));
    let all = sum(&now);
    let channels = shown
        .iter()
        .zip(&now)
        .enumerate()
        .map(|(at, (channel, counts))| {
            let earlier = before.as_ref().and_then(|before| before.get(at).copied());
            ChannelRow {
                channel: *channel,
                steps: steps(*counts, earlier),
                sessions_share_percent: percent(counts.sessions, all.sessions),
                revenue_share_percent: percent(counts.revenue, all.revenue),
            }
        })
        .collect();
    Ok(Conversion { scope, channels, total: steps(all, before.as_deref().map(sum)) })
}

fn read(ctx: &Ctx<'_>, span: Span, shown: &[VisitChannel], currency: Currency) -> Result<Vec<Counts>, ShopError> {
    let filter = SaleFilter { channel: Some(SalesChannel::Eshop), ..SaleFilter::default() };
    let orders = placed(ctx, span, &filter, currency)?;
    let sql = "select coalesce(sum(sessions), 0), coalesce(sum(product_views), 0), coalesce(sum(carts), 0), coalesce(sum(checkouts), 0)
               from visits where channel = ? and day between ? and ?";
    shown
        .iter()
        .map(|channel| {
            let here: Vec<&Sale> = orders.iter().filter(|order| order.source == channel.as_str()).collect();
            let kept = here.iter().filter(|o| o.status != OrderStatus::Cancelled);
            let revenue = kept.map(|order| order.net()).sum();
            Ok(ctx.db.query_row(sql, params![channel, span.from, span.to], |row| {
                Ok(Counts {
                    sessions: row.get(0)?,
                    views: row.get(1)?,
                    carts: row.get(2)?,
                    checkouts: row.get(3)?,
                    orders: count(here.len()),
                    revenue,
                })
            })?)
        })
        .collect()
}

fn steps(now: Counts, before: Option<Counts>) -> Steps {
    let figure = |of: fn(Counts) -> i64| Figure::new(of(now), before.map(of));
    Steps {
        sessions: figure(|counts| counts.sessions),
        product_views: now.views,
        carts: now.carts,
        checkouts: now.checkouts,
        orders: figure(|counts| counts.orders),
        cart_percent: percent(now.carts, now.sessions),
        checkout_percent: percent(now.checkouts, now.carts),
        completion_percent: percent(now.orders, now.checkouts),
        conversion: Rate::new((now.orders, now.sessions), before.map(|before| (before.orders, before.sessions))),
        revenue_cents: figure(|counts| counts.revenue),
        revenue_per_session_cents: mean_cents(now.revenue, now.sessions),
    }
}
