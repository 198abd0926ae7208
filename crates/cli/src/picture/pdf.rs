//! A picture as PDF: one page of its size, text as text in an embedded font of its letters.

use pdf_writer::types::{CidFontType, FontFlags, LineJoinStyle, SystemInfo, UnicodeCmap};
use pdf_writer::{Content, Finish as _, Name, Pdf, Rect, Ref, Str};

use super::canvas::{Anchor, Canvas, Item, Mode, Segment};
use super::font::{self, Subset};
use super::png::parts;
use congestlab_scenario::style::{Colour, PAPER};

const FONT: Name<'_> = Name(b"F0");
/// Six letters and a plus say that a font is not whole (ISO 32000-1, 9.6.4).
const FONT_NAME: &str = "CNGLAB+Ubuntu-Light";
const IDENTITY: SystemInfo<'_> =
    SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

pub(super) fn write(canvas: &Canvas) -> Result<Vec<u8>, String> {
    let font = Subset::of(canvas.texts()).ok_or("the font has no outlines")?;
    let [catalog, pages, page, content, type0, cid, descriptor, file, unicode] =
        [1, 2, 3, 4, 5, 6, 7, 8, 9].map(Ref::new);
    let points = 72.0 / canvas.unit.per_inch();
    let (width, height) = ((canvas.width * points) as f32, (canvas.height * points) as f32);
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([page]).count(1);
    let mut opacities: Vec<f64> = Vec::new();
    let drawn = draw(canvas, &font, points, height, &mut opacities);
    let mut leaf = pdf.page(page);
    leaf.media_box(Rect::new(0.0, 0.0, width, height)).parent(pages).contents(content);
    let mut resources = leaf.resources();
    resources.fonts().pair(FONT, type0);
    let mut states = resources.ext_g_states();
    for (place, opacity) in opacities.iter().enumerate() {
        let mut state = states
            .insert(Name(state_name(place).as_bytes()))
            .start::<pdf_writer::writers::ExtGraphicsState<'_>>();
        state.non_stroking_alpha(*opacity as f32).stroking_alpha(*opacity as f32);
    }
    states.finish();
    resources.finish();
    leaf.finish();
    pdf.stream(content, &drawn);
    embed(&mut pdf, &font, [type0, cid, descriptor, file, unicode]);
    Ok(pdf.finish())
}

fn state_name(place: usize) -> String {
    format!("G{place}")
}

fn draw(canvas: &Canvas, font: &Subset, points: f64, height: f32, opacities: &mut Vec<f64>) -> Vec<u8> {
    let mode = if canvas.mode == Mode::Dark { Mode::Dark } else { Mode::Light };
    let mut content = Content::new();
    let rgb = |colour: Colour| parts(mode.of(colour)).map(|part| f32::from(part) / 255.0);
    // From here on y goes down, and a unit is one of the canvas.
    content.transform([points as f32, 0.0, 0.0, -points as f32, 0.0, height]);
    let [r, g, b] = rgb(PAPER);
    content.set_fill_rgb(r, g, b).rect(0.0, 0.0, canvas.width as f32, canvas.height as f32).fill_nonzero();
    for item in &canvas.items {
        match item {
            Item::Path { segments, ink, .. } => {
                content.save_state();
                if ink.opacity < 1.0 {
                    let place =
                        opacities.iter().position(|other| *other == ink.opacity).unwrap_or_else(|| {
                            opacities.push(ink.opacity);
                            opacities.len() - 1
                        });
                    content.set_parameters(Name(state_name(place).as_bytes()));
                }
                if let Some(fill) = ink.fill {
                    let [r, g, b] = rgb(fill);
                    content.set_fill_rgb(r, g, b);
                    path(&mut content, segments);
                    content.fill_nonzero();
                }
                if let Some((stroke, width, dash)) = ink.stroke {
                    let [r, g, b] = rgb(stroke);
                    content.set_stroke_rgb(r, g, b).set_line_width(width as f32);
                    content.set_line_join(LineJoinStyle::RoundJoin);
                    content.set_dash_pattern(dash.iter().map(|length| *length as f32), 0.0);
                    path(&mut content, segments);
                    content.stroke();
                }
                content.restore_state();
            }
            Item::Text { at, size, anchor, is_turned, colour, text } => {
                let shift = match anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => -font::width(text, *size) / 2.0,
                    Anchor::End => -font::width(text, *size),
                } as f32;
                let (x, y) = (at.0 as f32, at.1 as f32);
                let [r, g, b] = rgb(*colour);
                content.set_fill_rgb(r, g, b);
                content.begin_text().set_font(FONT, *size as f32);
                content.set_text_matrix(if *is_turned {
                    [0.0, -1.0, -1.0, 0.0, x, y - shift]
                } else {
                    [1.0, 0.0, 0.0, -1.0, x + shift, y]
                });
                let glyphs = text.chars().filter_map(|letter| font.glyphs.get(&letter));
                let bytes: Vec<u8> = glyphs.flat_map(|glyph| glyph.to_be_bytes()).collect();
                content.show(Str(&bytes)).end_text();
            }
        }
    }
    content.finish().into_vec()
}

fn path(content: &mut Content, segments: &[Segment]) {
    for segment in segments {
        match *segment {
            Segment::Move((x, y)) => content.move_to(x as f32, y as f32),
            Segment::Line((x, y)) => content.line_to(x as f32, y as f32),
            Segment::Curve(a, b, c) => {
                content.cubic_to(a.0 as f32, a.1 as f32, b.0 as f32, b.1 as f32, c.0 as f32, c.1 as f32)
            }
            Segment::Close => content.close_path(),
        };
    }
}

/// A composite font whose codes are the places of glyphs (ISO 32000-1, 9.7), and which letters they are.
fn embed(pdf: &mut Pdf, font: &Subset, [type0, cid, descriptor, file, unicode]: [Ref; 5]) {
    let name = Name(FONT_NAME.as_bytes());
    pdf.type0_font(type0)
        .base_font(name)
        .encoding_predefined(Name(b"Identity-H"))
        .descendant_font(cid)
        .to_unicode(unicode);
    let mut of = pdf.cid_font(cid);
    of.subtype(CidFontType::Type2).base_font(name).system_info(IDENTITY).font_descriptor(descriptor);
    of.cid_to_gid_map_predefined(Name(b"Identity"));
    of.widths().consecutive(0, font.widths.iter().copied());
    of.finish();
    let [left, bottom, right, top] = font.bounds;
    pdf.font_descriptor(descriptor)
        .name(name)
        .flags(FontFlags::NON_SYMBOLIC)
        .bbox(Rect::new(left, bottom, right, top))
        .italic_angle(0.0)
        .ascent(font.ascender)
        .descent(font.descender)
        .cap_height(font.ascender)
        .stem_v(60.0)
        .font_file2(file);
    pdf.stream(file, &font.file).pair(Name(b"Length1"), i32::try_from(font.file.len()).unwrap_or(i32::MAX));
    let mut letters = UnicodeCmap::new(Name(b"congestlab"), IDENTITY);
    for (letter, glyph) in &font.glyphs {
        letters.pair(*glyph, *letter);
    }
    pdf.cmap(unicode, &letters.finish());
}
