//! A one-page A6 document of text lines, written by hand: a label needs no library.
//!
//! **Source:** ISO 32000-1, 7.5 (file structure) and 9.4 (text); Helvetica is one of the standard fonts.

/// Letters beyond ASCII and what carriers print instead.
const FOLDED: [(&str, char); 30] = [
    ("áäàâą", 'a'),
    ("čćç", 'c'),
    ("ďđ", 'd'),
    ("éěęëè", 'e'),
    ("íîï", 'i'),
    ("ĺľł", 'l'),
    ("ňńñ", 'n'),
    ("óöôőò", 'o'),
    ("ŕř", 'r'),
    ("šśß", 's'),
    ("ť", 't'),
    ("úůüűù", 'u'),
    ("ý", 'y'),
    ("žźż", 'z'),
    ("ÁÄÀÂĄ", 'A'),
    ("ČĆÇ", 'C'),
    ("ĎĐ", 'D'),
    ("ÉĚĘËÈ", 'E'),
    ("ÍÎÏ", 'I'),
    ("ĹĽŁ", 'L'),
    ("ŇŃÑ", 'N'),
    ("ÓÖÔŐÒ", 'O'),
    ("ŔŘ", 'R'),
    ("ŠŚ", 'S'),
    ("Ť", 'T'),
    ("ÚŮÜŰÙ", 'U'),
    ("Ý", 'Y'),
    ("ŽŹŻ", 'Z'),
    ("–—", '-'),
    ("„“”", '"'),
];

/// Writes a page; each line has its size in points. The result is ASCII.
pub(crate) fn page(lines: &[(u32, String)]) -> String {
    let mut text = "BT 24 390 Td\n".to_owned();
    for (points, line) in lines {
        let leading = points + 6;
        let line = literal(line);
        text.push_str(&format!("/F1 {points} Tf 0 -{leading} Td ({line}) Tj\n"));
    }
    text.push_str("ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 298 420] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{text}\nendstream", text.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    let mut pdf = "%PDF-1.4\n".to_owned();
    let mut table = "0000000000 65535 f \n".to_owned();
    for (number, object) in (1..).zip(&objects) {
        table.push_str(&format!("{:010} 00000 n \n", pdf.len()));
        pdf.push_str(&format!("{number} 0 obj\n{object}\nendobj\n"));
    }
    let (start, size) = (pdf.len(), objects.len() + 1);
    pdf.push_str(&format!(
        "xref\n0 {size}\n{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    ));
    pdf
}

/// Folds text to ASCII and escapes it for a string in parentheses.
fn literal(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars().map(fold) {
        if matches!(letter, '(' | ')' | '\\') {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

fn fold(letter: char) -> char {
    if letter.is_ascii_graphic() || letter == ' ' {
        return letter;
    }
    FOLDED.iter().find(|(letters, _)| letters.contains(letter)).map_or('?', |(_, folded)| *folded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_folded_and_escaped() {
        assert_eq!(literal("Dvořáková (Žilina) 漢"), "Dvorakova \\(Zilina\\) ?");
    }

    #[test]
    fn the_table_points_at_the_objects() {
        let pdf = page(&[(12, "SHP-000001".to_owned())]);
        let start: usize = pdf.lines().rev().nth(1).unwrap().parse().unwrap();
        let table: Vec<&str> = pdf.split_at(start).1.lines().collect();
        assert_eq!(table[..2], ["xref", "0 6"]);
        for number in 1..=5 {
            let offset: usize = table[2 + number].split(' ').next().unwrap().parse().unwrap();
            assert!(pdf.split_at(offset).1.starts_with(&format!("{number} 0 obj")));
        }
    }
}
