//! The list of goods: what the shop sells, at which price, in which variants.

/// A product as listed here.
pub(crate) struct Good {
    pub(crate) name: &'static str,
    pub(crate) brand: &'static str,
    /// Slug of the main category.
    pub(crate) category: &'static str,
    /// Retail price in whole CZK, VAT included.
    pub(crate) price: i64,
    pub(crate) weight_g: i64,
    /// Names of variants, separated by spaces; empty for a product with one only.
    pub(crate) variants: &'static str,
}

const fn good(
    category: &'static str,
    brand: &'static str,
    name: &'static str,
    (price, weight_g): (i64, i64),
    variants: &'static str,
) -> Good {
    Good { name, brand, category, price, weight_g, variants }
}

/// Categories: slug, name, slug of the parent, prefix of SKUs.
pub(crate) const CATEGORIES: [(&str, &str, &str, &str); 15] = [
    ("camping", "Camping", "", ""),
    ("wear", "Clothing", "", ""),
    ("gear", "Gear", "", ""),
    ("tents", "Tents", "camping", "TNT"),
    ("sleeping", "Sleeping bags and mats", "camping", "SLP"),
    ("cooking", "Cooking", "camping", "COO"),
    ("boots", "Boots", "wear", "BTS"),
    ("jackets", "Jackets", "wear", "JKT"),
    ("layers", "Base and mid layers", "wear", "LAY"),
    ("packs", "Backpacks", "gear", "PCK"),
    ("climbing", "Climbing", "gear", "CLB"),
    ("lights", "Lights", "gear", "LGT"),
    ("poles", "Poles and snowshoes", "gear", "POL"),
    ("maps", "Maps and books", "gear", "MAP"),
    ("care", "Care and repair", "gear", "CAR"),
];

const SIZES: &str = "S M L XL";
const SHOES: &str = "39 41 43 45";
const COLORS: &str = "green orange";

/// All goods. The last of each category never sells, for reports on dead stock.
pub(crate) const GOODS: [Good; 60] = [
    good("tents", "Rovnia", "Skála 2", (6990, 2350), COLORS),
    good("tents", "Rovnia", "Skála 3", (8490, 2980), COLORS),
    good("tents", "Nordlys", "Fjell 1 Solo", (9990, 1320), ""),
    good("tents", "Kamzík", "Family 4", (7490, 6800), ""),
    good("tents", "Nordlys", "Expedition 3", (21_990, 3900), ""),
    good("sleeping", "Rovnia", "Larch 0", (3290, 1180), "left right"),
    good("sleeping", "Rovnia", "Larch -10", (4890, 1540), "left right"),
    good("sleeping", "Kamzík", "Foam mat", (449, 380), ""),
    good("sleeping", "Nordlys", "Air mat R4", (2690, 540), "regular long"),
    good("sleeping", "Nordlys", "Down 900", (12_490, 890), ""),
    good("cooking", "Plamen", "Spider stove", (1290, 165), ""),
    good("cooking", "Plamen", "Gas 230", (149, 380), ""),
    good("cooking", "Plamen", "Gas 450", (219, 660), ""),
    good("cooking", "Kamzík", "Titan mug", (690, 85), ""),
    good("cooking", "Kamzík", "Cook set 2", (990, 420), ""),
    good("cooking", "Plamen", "Multi-fuel stove", (4290, 390), ""),
    good("boots", "Bergfalke", "Tatra Mid GTX", (4690, 1150), SHOES),
    good("boots", "Bergfalke", "Ridge Low", (3290, 840), SHOES),
    good("boots", "Kamzík", "Trail Runner", (2790, 610), SHOES),
    good("boots", "Bergfalke", "Alpin Pro", (8990, 1720), SHOES),
    good("boots", "Kamzík", "Winter Fell", (3990, 1300), SHOES),
    good("jackets", "Nordlys", "Storm 3L", (7990, 460), SIZES),
    good("jackets", "Nordlys", "Drizzle", (2990, 310), SIZES),
    good("jackets", "Rovnia", "Down Light", (4490, 380), SIZES),
    good("jackets", "Kamzík", "Softshell Moravia", (2490, 520), SIZES),
    good("jackets", "Nordlys", "Polar Parka", (13_990, 1450), SIZES),
    good("layers", "Ovis", "Merino 150 Shirt", (1690, 160), SIZES),
    good("layers", "Ovis", "Merino 200 Leggings", (1890, 190), SIZES),
    good("layers", "Kamzík", "Fleece Beskyd", (1290, 340), SIZES),
    good("layers", "Ovis", "Merino Socks", (349, 70), "36-38 39-41 42-44"),
    good("layers", "Ovis", "Merino Beanie", (590, 60), ""),
    good("layers", "Kamzík", "Wind Vest", (1490, 180), ""),
    good("packs", "Rovnia", "Daytrip 22", (1990, 780), COLORS),
    good("packs", "Rovnia", "Trek 45", (3690, 1490), COLORS),
    good("packs", "Rovnia", "Trek 65", (4490, 1890), COLORS),
    good("packs", "Nordlys", "Alpine 35", (4990, 1050), ""),
    good("packs", "Kamzík", "Rain cover", (390, 95), ""),
    good("packs", "Nordlys", "Haul Bag 90", (5490, 2100), ""),
    good("climbing", "Karabina", "Screwgate", (349, 78), ""),
    good("climbing", "Karabina", "Harness Vertical", (1890, 410), SIZES),
    good("climbing", "Karabina", "Rope 9.8 60 m", (4290, 3780), ""),
    good("climbing", "Karabina", "Helmet Cirrus", (1790, 250), ""),
    good("climbing", "Karabina", "Ice Axe Hornet", (3990, 590), ""),
    good("lights", "Lumen", "Head 300", (990, 85), ""),
    good("lights", "Lumen", "Head 600 Pro", (1990, 110), ""),
    good("lights", "Lumen", "Camp Lantern", (1290, 260), ""),
    good("lights", "Lumen", "Solar Panel 10", (1890, 420), ""),
    good("poles", "Bergfalke", "Carbon Poles", (2990, 410), ""),
    good("poles", "Kamzík", "Alu Poles", (1190, 520), ""),
    good("poles", "Kamzík", "Microspikes", (1490, 390), "M L"),
    good("poles", "Nordlys", "Snowshoes 25", (5490, 1980), ""),
    good("maps", "Kartograf", "Jeseníky 1:50 000", (169, 90), ""),
    good("maps", "Kartograf", "Krkonoše 1:50 000", (169, 90), ""),
    good("maps", "Kartograf", "Vysoké Tatry 1:25 000", (199, 90), ""),
    good("maps", "Kartograf", "Hut-to-hut guide", (449, 420), ""),
    good("care", "Ovis", "Wool wash", (229, 280), ""),
    good("care", "Nordlys", "Waterproofing spray", (349, 320), ""),
    good("care", "Rovnia", "Tent repair kit", (299, 110), ""),
    good("care", "Kamzík", "Seam sealer", (189, 60), ""),
    good("care", "Kamzík", "Boot wax", (149, 90), ""),
];
