//! A picture as SVG: text stays text, with a font of its letters inside, so that it looks as in the PNG.

use std::fmt::Write as _;

use congestlab_scenario::printable;
use congestlab_scenario::style::{Colour, PAPER};

use super::canvas::{Anchor, Canvas, Item, Mode, Segment, Unit};
use super::font::Subset;

/// The family of the font inside; readers that take none from a file have one of the others.
const FAMILY: &str = "congestlab, Ubuntu, 'Helvetica Neue', Arial, sans-serif";

pub(super) fn write(canvas: &Canvas) -> String {
    let (width, height) = (number(canvas.width), number(canvas.height));
    let size = match canvas.unit {
        Unit::Pixel => format!("width=\"{width}\" height=\"{height}\""),
        Unit::Point => {
            let inches = |length: f64| format!("{}in", number4(length / canvas.unit.per_inch()));
            format!("width=\"{}\" height=\"{}\"", inches(canvas.width), inches(canvas.height))
        }
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" {size} viewBox=\"0 0 {width} {height}\" \
         font-family=\"{FAMILY}\" role=\"img\" aria-label=\"{}\">\n<style>\n",
        escape(&printable::line(&canvas.about, printable::MESSAGE))
    );
    if let Some(font) = Subset::of(canvas.texts()) {
        let _ = writeln!(
            svg,
            "@font-face {{ font-family: congestlab; src: url(data:font/ttf;base64,{}) format(\"truetype\"); }}",
            base64(&font.file)
        );
    }
    svg.push_str("text { font-kerning: none; font-variant-ligatures: none; white-space: pre; }\n");
    let mut body = String::new();
    let mut classes: Vec<(String, Colour)> = Vec::new();
    let mut paint = Painter { mode: canvas.mode, classes: &mut classes };
    let paper = paint.attributes(None, Some(PAPER));
    let _ = writeln!(body, "<path d=\"M0 0H{width}V{height}H0Z\"{paper}/>");
    for item in &canvas.items {
        item_of(&mut body, item, &mut paint);
    }
    if canvas.mode == Mode::Auto {
        svg.push_str("@media (prefers-color-scheme: dark) {\n");
        classes.sort_by(|a, b| a.0.cmp(&b.0));
        for (class, colour) in &classes {
            let property = if class.starts_with("s-") { "stroke" } else { "fill" };
            let _ = writeln!(svg, ".{class} {{ {property}: {}; }}", colour.dark);
        }
        svg.push_str("}\n");
    }
    svg.push_str("</style>\n");
    svg.push_str(&body);
    svg.push_str("</svg>\n");
    svg
}

/// Gives colours, and remembers which the other mode has to change.
struct Painter<'a> {
    mode: Mode,
    classes: &'a mut Vec<(String, Colour)>,
}

impl Painter<'_> {
    fn attributes(&mut self, stroke: Option<Colour>, fill: Option<Colour>) -> String {
        let mut attributes = String::new();
        let mut names = Vec::new();
        for (kind, property, colour) in [("s", "stroke", stroke), ("f", "fill", fill)] {
            match colour {
                Some(colour) => {
                    let _ = write!(attributes, " {property}=\"{}\"", self.mode.of(colour));
                    if self.mode == Mode::Auto {
                        let class = format!("{kind}-{}", colour.name);
                        if self.classes.iter().all(|(other, _)| *other != class) {
                            self.classes.push((class.clone(), colour));
                        }
                        names.push(class);
                    }
                }
                None if property == "fill" => attributes.push_str(" fill=\"none\""),
                None => {}
            }
        }
        if !names.is_empty() {
            let _ = write!(attributes, " class=\"{}\"", names.join(" "));
        }
        attributes
    }
}

fn item_of(svg: &mut String, item: &Item, paint: &mut Painter<'_>) {
    match item {
        Item::Path { segments, ink, tag } => {
            let mut attributes = paint.attributes(ink.stroke.map(|(colour, ..)| colour), ink.fill);
            if let Some((_, width, dash)) = ink.stroke {
                let _ = write!(attributes, " stroke-width=\"{}\" stroke-linejoin=\"round\"", number(width));
                if !dash.is_empty() {
                    let lengths: Vec<String> = dash.iter().map(|length| number(*length)).collect();
                    let _ = write!(attributes, " stroke-dasharray=\"{}\"", lengths.join(" "));
                }
            }
            if ink.opacity < 1.0 {
                let _ = write!(attributes, " opacity=\"{}\"", number(ink.opacity));
            }
            if let Some(tag) = tag {
                let _ = write!(
                    attributes,
                    " data-kind=\"{}\" data-name=\"{}\" data-points=\"{}\"",
                    tag.class,
                    escape(&tag.name),
                    tag.points
                );
            }
            let _ = writeln!(svg, "<path d=\"{}\"{attributes}/>", path(segments));
        }
        Item::Text { at: (x, y), size, anchor, is_turned, colour, text } => {
            let mut attributes = paint.attributes(None, Some(*colour));
            match anchor {
                Anchor::Start => {}
                Anchor::Middle => attributes.push_str(" text-anchor=\"middle\""),
                Anchor::End => attributes.push_str(" text-anchor=\"end\""),
            }
            let (x, y) = (number(*x), number(*y));
            if *is_turned {
                let _ = write!(attributes, " transform=\"rotate(-90 {x} {y})\"");
            }
            let size = number(*size);
            let _ = writeln!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{attributes}>{}</text>",
                escape(text)
            );
        }
    }
}

fn path(segments: &[Segment]) -> String {
    let mut path = String::new();
    let place = |(x, y): (f64, f64)| format!("{} {}", number(x), number(y));
    for segment in segments {
        let _ = match segment {
            Segment::Move(at) => write!(path, "M{}", place(*at)),
            Segment::Line(at) => write!(path, "L{}", place(*at)),
            Segment::Curve(a, b, c) => write!(path, "C{} {} {}", place(*a), place(*b), place(*c)),
            Segment::Close => write!(path, "Z"),
        };
    }
    path
}

/// Two decimals, as few digits as say it.
fn number(value: f64) -> String {
    trim(format!("{value:.2}"))
}

fn number4(value: f64) -> String {
    trim(format!("{value:.4}"))
}

fn trim(text: String) -> String {
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".into() } else { short.to_owned() }
}

/// Text in SVG; XML knows no controls.
fn escape(content: &str) -> String {
    printable::lines(content)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let sign = SIGNS[(word >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= chunk.len() { sign.into() } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{base64, number};

    #[test]
    fn bytes_are_written_as_the_rfc_has_them() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text, "RFC 4648, section 10");
        }
    }

    #[test]
    fn numbers_have_no_digits_that_say_nothing() {
        for (value, text) in [(1.0, "1"), (0.125, "0.12"), (-0.001, "0"), (100.0, "100"), (2.5, "2.5")] {
            assert_eq!(number(value), text);
        }
    }
}
