//! A picture as PNG, with the font that comes with the program: the same on every machine.

use tiny_skia::{FillRule, Paint, Path, PathBuilder, Pixmap, Stroke, StrokeDash, Transform};

use super::canvas::{Anchor, Canvas, Item, Segment};
use super::font;
use congestlab_scenario::style::PAPER;

/// More pixels than any page or screen has.
const PIXELS_MAX: f64 = 4e8;

pub(super) fn write(canvas: &Canvas, dpi: f64) -> Result<Vec<u8>, String> {
    let scale = dpi / canvas.unit.per_inch();
    let (width, height) = ((canvas.width * scale).round(), (canvas.height * scale).round());
    let too_large = || format!("a picture of {width} x {height} pixels is too large");
    if width * height > PIXELS_MAX {
        return Err(too_large());
    }
    let mut pixels = Pixmap::new(width as u32, height as u32).ok_or_else(too_large)?;
    let mode = canvas.mode;
    pixels.fill(colour(mode.of(PAPER), 1.0));
    let transform = Transform::from_scale(scale as f32, scale as f32);
    for item in &canvas.items {
        match item {
            Item::Path { segments, ink, .. } => {
                let Some(path) = path(segments) else { continue };
                if let Some(fill) = ink.fill {
                    let paint = paint(mode.of(fill), ink.opacity);
                    pixels.fill_path(&path, &paint, FillRule::Winding, transform, None);
                }
                if let Some((stroke, width, dash)) = ink.stroke {
                    let dash: Vec<f32> = dash.iter().map(|length| *length as f32).collect();
                    let stroke_of = Stroke {
                        width: width as f32,
                        line_join: tiny_skia::LineJoin::Round,
                        dash: StrokeDash::new(dash, 0.0),
                        ..Stroke::default()
                    };
                    pixels.stroke_path(
                        &path,
                        &paint(mode.of(stroke), ink.opacity),
                        &stroke_of,
                        transform,
                        None,
                    );
                }
            }
            Item::Text { at, size, anchor, is_turned, colour, text } => {
                let shift = match anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => -font::width(text, *size) / 2.0,
                    Anchor::End => -font::width(text, *size),
                };
                let segments = font::outlines(text, (at.0 + shift, at.1), *size);
                let Some(path) = path(&segments) else { continue };
                let turn = if *is_turned {
                    Transform::from_rotate_at(-90.0, at.0 as f32, at.1 as f32)
                } else {
                    Transform::identity()
                };
                let paint = paint(mode.of(*colour), 1.0);
                pixels.fill_path(&path, &paint, FillRule::Winding, turn.post_concat(transform), None);
            }
        }
    }
    encode(&pixels, dpi)
}

fn path(segments: &[Segment]) -> Option<Path> {
    let mut builder = PathBuilder::new();
    for segment in segments {
        match *segment {
            Segment::Move((x, y)) => builder.move_to(x as f32, y as f32),
            Segment::Line((x, y)) => builder.line_to(x as f32, y as f32),
            Segment::Curve(a, b, c) => {
                builder.cubic_to(a.0 as f32, a.1 as f32, b.0 as f32, b.1 as f32, c.0 as f32, c.1 as f32);
            }
            Segment::Close => builder.close(),
        }
    }
    builder.finish()
}

/// The parts of `#rrggbb`, from 0 to 255.
pub(super) fn parts(hex: &str) -> [u8; 3] {
    [1, 3, 5].map(|at| hex.get(at..at + 2).and_then(|part| u8::from_str_radix(part, 16).ok()).unwrap_or(0))
}

fn colour(hex: &str, opacity: f64) -> tiny_skia::Color {
    let [r, g, b] = parts(hex);
    tiny_skia::Color::from_rgba8(r, g, b, (opacity.clamp(0.0, 1.0) * 255.0).round() as u8)
}

fn paint(hex: &str, opacity: f64) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color(colour(hex, opacity));
    paint
}

/// With the density (chunk pHYs), by which programs that set pages know how large it is.
fn encode(pixels: &Pixmap, dpi: f64) -> Result<Vec<u8>, String> {
    const INCHES_PER_METRE: f64 = 1.0 / 0.0254;
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, pixels.width(), pixels.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let density = (dpi * INCHES_PER_METRE).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: density,
        yppu: density,
        unit: png::Unit::Meter,
    }));
    let fault = |error: png::EncodingError| error.to_string();
    let mut writer = encoder.write_header().map_err(fault)?;
    // The paper is opaque, so that everything is.
    let colours: Vec<u8> =
        pixels.pixels().iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]).collect();
    writer.write_image_data(&colours).map_err(fault)?;
    writer.finish().map_err(fault)?;
    Ok(bytes)
}
