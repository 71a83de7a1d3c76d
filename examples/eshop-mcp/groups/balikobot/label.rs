//! The label of a shipment, for the label printer or for paper.

use data_encoding::BASE64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Address, ShipmentId},
    ctx::Ctx,
    error::ShopError,
    groups::balikobot::{
        codes::ShipmentStatus,
        pdf,
        view::{ShipmentCard, card_of},
    },
    values::words,
};

words!(/// Form of the label: `zpl` for label printers, `pdf` for paper (A6).
    LabelFormat { Zpl = "zpl", Pdf = "pdf" });
words!(/// How `content` is written.
    Encoding { Text = "text", Base64 = "base64" });

/// Which label.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LabelParams {
    id: ShipmentId,
    #[serde(default = "zpl")]
    format: LabelFormat,
}

fn zpl() -> LabelFormat {
    LabelFormat::Zpl
}

/// A label.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Label {
    id: ShipmentId,
    tracking_no: String,
    file_name: String,
    media_type: String,
    encoding: Encoding,
    content: String,
    /// Size of the decoded document.
    size_bytes: usize,
}

pub(crate) fn get(ctx: &Ctx<'_>, params: LabelParams) -> Result<Label, ShopError> {
    let LabelParams { id, format } = params;
    let card = card_of(ctx, id)?;
    if !matches!(card.status, ShipmentStatus::Created | ShipmentStatus::HandedOver) {
        return Err(ShopError::state(
            format!("shipment {id} is {}; a label takes created or handed_over", card.status),
            "for a new parcel use `balikobot_shipment_create`",
        ));
    }
    let lines = lines(ctx, &card)?;
    let (document, media_type, encoding) = match format {
        LabelFormat::Zpl => (zpl_document(&card, &lines), "application/zpl", Encoding::Text),
        LabelFormat::Pdf => (pdf::page(&lines), "application/pdf", Encoding::Base64),
    };
    let size_bytes = document.len();
    let content = match encoding {
        Encoding::Text => document,
        Encoding::Base64 => BASE64.encode(document.as_bytes()),
    };
    Ok(Label {
        id,
        file_name: format!("{id}.{format}"),
        media_type: media_type.to_owned(),
        encoding,
        content,
        size_bytes,
        tracking_no: card.tracking_no,
    })
}

/// What stands on the label: size of the type in points, text.
fn lines(ctx: &Ctx<'_>, card: &ShipmentCard) -> Result<Vec<(u32, String)>, ShopError> {
    let sql = "select a.*, k.name as carrier_name, b.name as branch_name,
                   (select value from settings where key = 'name') as shop
               from shipments s join orders o on o.id = s.order_id join addresses a on a.id = o.shipping_address_id
                   join carriers k on k.id = s.carrier_id left join branches b on b.id = s.branch_id where s.id = ?";
    Ok(ctx.db.query_row(sql, [card.id], |row| {
        let to = Address::read(row)?;
        let mut lines = vec![
            (18, row.get("carrier_name")?),
            (14, card.tracking_no.clone()),
            (9, format!("From: {}, Brno", row.get::<_, String>("shop")?)),
            (16, to.name),
        ];
        match row.get::<_, Option<String>>("branch_name")? {
            Some(branch) => lines.push((14, branch)),
            None => {
                lines.push((14, to.street));
                lines.push((14, format!("{} {}", to.postcode, to.city)));
            }
        }
        lines.push((14, to.country.to_string()));
        let kilograms = format!("{}.{:03} kg", card.weight_g / 1000, card.weight_g % 1000);
        lines.push((9, format!("{}  {}  {kilograms}", card.id, card.order_id)));
        if card.cod_cents > 0 {
            let (whole, rest) = (card.cod_cents / 100, card.cod_cents % 100);
            lines.push((18, format!("COD {whole}.{rest:02} {}", card.currency)));
        }
        Ok(lines)
    })?)
}

/// Writes the label in the printers' language, 100 x 150 mm at 203 dpi, with the number as Code 128.
fn zpl_document(card: &ShipmentCard, lines: &[(u32, String)]) -> String {
    let mut zpl = "^XA^CI28^PW800^LL1200\n".to_owned();
    let mut y = 40;
    for (points, text) in lines {
        // Carets and tildes start commands.
        let text = text.replace(['^', '~'], " ");
        let height = points * 3;
        zpl.push_str(&format!("^FO40,{y}^A0N,{height},{height}^FD{text}^FS\n"));
        y += height + 20;
    }
    zpl.push_str(&format!("^FO40,{y}^BY3^BCN,180,Y,N,N^FD{}^FS\n^XZ\n", card.tracking_no));
    zpl
}
