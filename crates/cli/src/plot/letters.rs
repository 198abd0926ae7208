//! Letters as outlines, for what draws paths alone: shaping text would take a third of all crates. The texts of
//! charts are short and of one script: letters stand one after another, without kerning.

use std::fmt::Write as _;

use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::FONT_SIZE;

/// An SVG document of [`super::Figure::to_svg`] with a path in the place of each text.
pub(super) fn outlined(svg: &str) -> Result<String, String> {
    let font = Face::parse(epaint_default_fonts::UBUNTU_LIGHT, 0).map_err(|error| error.to_string())?;
    let mut out = String::new();
    for line in svg.lines() {
        match text_element(line) {
            Some((attributes, content)) => draw(&mut out, &font, attributes, &unescape(content)),
            None => out.push_str(line),
        }
        out.push('\n');
    }
    Ok(out)
}

/// Attributes and content of a line that is a text.
fn text_element(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("<text")?.strip_suffix("</text>")?.split_once('>')
}

fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let (_, value) = attributes.split_once(&format!(" {name}=\""))?;
    value.split('"').next()
}

/// The other way round than [`super::escape`].
fn unescape(content: &str) -> String {
    content.replace("&quot;", "\"").replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")
}

fn draw(out: &mut String, font: &Face<'_>, attributes: &str, content: &str) {
    let number = |name: &str| attribute(attributes, name)?.parse::<f32>().ok();
    let scale = number("font-size").unwrap_or(FONT_SIZE as f32) / f32::from(font.units_per_em());
    // The font's own sign for what it has not.
    let glyphs = || content.chars().map(|letter| font.glyph_index(letter).unwrap_or(GlyphId(0)));
    let width = |glyph| f32::from(font.glyph_hor_advance(glyph).unwrap_or(0)) * scale;
    let whole: f32 = glyphs().map(width).sum();
    let start = match attribute(attributes, "text-anchor") {
        Some("middle") => -whole / 2.0,
        Some("end") => -whole,
        _ => 0.0,
    };
    out.push_str("<path");
    for name in ["fill", "transform"] {
        if let Some(value) = attribute(attributes, name) {
            let _ = write!(out, " {name}=\"{value}\"");
        }
    }
    out.push_str(" d=\"");
    let x = number("x").unwrap_or(0.0) + start;
    let mut pen = Pen { out, x, y: number("y").unwrap_or(0.0), scale };
    for glyph in glyphs() {
        // A space has no outline.
        let _ = font.outline_glyph(glyph, &mut pen);
        pen.x += width(glyph);
    }
    out.push_str("\"/>");
}

/// Writes an outline at a place; a font's y goes up.
struct Pen<'a> {
    out: &'a mut String,
    x: f32,
    y: f32,
    scale: f32,
}

impl Pen<'_> {
    fn to(&mut self, command: char, points: &[(f32, f32)]) {
        self.out.push(command);
        for (x, y) in points {
            let _ = write!(self.out, "{:.3} {:.3} ", self.x + x * self.scale, self.y - y * self.scale);
        }
    }
}

impl OutlineBuilder for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        self.to('M', &[(x, y)]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.to('L', &[(x, y)]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.to('Q', &[(x1, y1), (x, y)]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.to('C', &[(x1, y1), (x2, y2), (x, y)]);
    }

    fn close(&mut self) {
        self.out.push('Z');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Horizontal places that an outline visits.
    fn places(line: &str) -> Vec<f32> {
        let path = outlined(line).expect("the font is one");
        let d = attribute(path.trim_end(), "d").expect("a path").to_owned();
        let numbers = d.split(|c: char| !c.is_ascii_digit() && c != '.' && c != '-');
        numbers.filter_map(|number| number.parse().ok()).step_by(2).collect()
    }

    #[test]
    fn a_text_stands_where_its_anchor_says() {
        let ends = |anchor: &str| {
            let places = places(&format!("<text x=\"100.0\" y=\"50.0\" text-anchor=\"{anchor}\">HIH</text>"));
            (places.iter().copied().fold(f32::MAX, f32::min), places.iter().copied().fold(0.0, f32::max))
        };
        let ((start, _), (_, end), middle) = (ends("start"), ends("end"), ends("middle"));
        assert!((100.0..103.0).contains(&start) && (97.0..100.0).contains(&end), "{start} {end}");
        assert!(((middle.0 + middle.1) / 2.0 - 100.0).abs() < 0.01, "{middle:?}");
    }

    #[test]
    fn an_escaped_letter_is_one_and_other_lines_stay() {
        let one =
            outlined("<text x=\"0.0\" y=\"9.0\" fill=\"#555555\">&lt;</text>\n<rect/>\n").expect("drawn");
        assert!(
            one.starts_with("<path fill=\"#555555\" d=\"M") && one.ends_with("Z\"/>\n<rect/>\n"),
            "{one}"
        );
        assert_eq!(one.matches('M').count(), 1, "{one}");
    }
}
