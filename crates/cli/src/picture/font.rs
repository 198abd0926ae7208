//! The letters of pictures: how wide they are, their outlines, and a font of those alone that a picture uses.
//!
//! Shaping text would take a third of all crates. The texts of charts are short and of one script: letters stand one
//! after another, without kerning. The font that goes into a picture has no tables for anything else, so a browser and a
//! reader of PDF set them as the PNG has them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use skrifa::instance::{LocationRef, Size};
use skrifa::metrics::{GlyphMetrics, Metrics};
use skrifa::outline::{DrawSettings, OutlinePen};
use skrifa::raw::TableProvider;
use skrifa::{FontRef, GlyphId, MetadataProvider, Tag};

use super::canvas::Segment;

/// Ubuntu Light, whose licence (the Ubuntu font licence) lets documents embed it.
static FACE: LazyLock<Option<FontRef<'static>>> =
    LazyLock::new(|| FontRef::new(epaint_default_fonts::UBUNTU_LIGHT).ok());

/// The font's own sign for what it has not.
fn glyph(face: &FontRef<'_>, letter: char) -> GlyphId {
    face.charmap().map(letter).unwrap_or(GlyphId::NOTDEF)
}

/// Metrics of the font and of its glyphs, in its own units.
fn metrics<'a>(face: &FontRef<'a>) -> (Metrics, GlyphMetrics<'a>) {
    let (size, location) = (Size::unscaled(), LocationRef::default());
    (face.metrics(size, location), face.glyph_metrics(size, location))
}

/// How wide a text is in a size.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let Some(face) = FACE.as_ref() else { return 0.0 };
    let (all, each) = metrics(face);
    let units = text.chars().map(|letter| f64::from(each.advance_width(glyph(face, letter)).unwrap_or(0.0)));
    units.sum::<f64>() * size / f64::from(all.units_per_em)
}

/// Whether every letter of a text is in the font.
#[cfg(test)]
pub(crate) fn has(text: &str) -> bool {
    FACE.as_ref().is_some_and(|face| text.chars().all(|letter| face.charmap().map(letter).is_some()))
}

/// The outlines of a text that begins at a place; y goes down.
pub(crate) fn outlines(text: &str, (x, y): (f64, f64), size: f64) -> Vec<Segment> {
    let Some(face) = FACE.as_ref() else { return Vec::new() };
    let (all, each) = metrics(face);
    let outlines = face.outline_glyphs();
    let scale = size / f64::from(all.units_per_em);
    let mut pen = Pen { segments: Vec::new(), x, y, scale, last: (0.0, 0.0) };
    for letter in text.chars() {
        let glyph = glyph(face, letter);
        if let Some(outline) = outlines.get(glyph) {
            // Of our own font, which is whole.
            let _ = outline.draw(DrawSettings::unhinted(Size::unscaled(), LocationRef::default()), &mut pen);
        }
        pen.x += f64::from(each.advance_width(glyph).unwrap_or(0.0)) * scale;
    }
    pen.segments
}

/// Takes an outline at a place; a font's y goes up.
struct Pen {
    segments: Vec<Segment>,
    x: f64,
    y: f64,
    scale: f64,
    /// Where it is, in units of the font.
    last: (f64, f64),
}

impl Pen {
    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl OutlinePen for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.last = (x.into(), y.into());
        self.segments.push(Segment::Move(self.at(self.last)));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.last = (x.into(), y.into());
        self.segments.push(Segment::Line(self.at(self.last)));
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        // The same curve with two middle points.
        let (from, middle, to) = (self.last, (f64::from(x1), f64::from(y1)), (f64::from(x), f64::from(y)));
        let near = |end: (f64, f64)| {
            (end.0 + (middle.0 - end.0) * 2.0 / 3.0, end.1 + (middle.1 - end.1) * 2.0 / 3.0)
        };
        self.last = to;
        self.segments.push(Segment::Curve(self.at(near(from)), self.at(near(to)), self.at(to)));
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let point = |x: f32, y: f32| (f64::from(x), f64::from(y));
        self.last = point(x, y);
        self.segments.push(Segment::Curve(
            self.at(point(x1, y1)),
            self.at(point(x2, y2)),
            self.at(self.last),
        ));
    }

    fn close(&mut self) {
        self.segments.push(Segment::Close);
    }
}

/// A font of few letters.
pub(crate) struct Subset {
    /// A TrueType file.
    pub(crate) file: Vec<u8>,
    /// The place of each letter in it.
    pub(crate) glyphs: BTreeMap<char, u16>,
    /// Widths by place, in thousandths of the size.
    pub(crate) widths: Vec<f32>,
    /// Left, bottom, right, top of all glyphs; ascender and descender, in thousandths.
    pub(crate) bounds: [f32; 4],
    pub(crate) ascender: f32,
    pub(crate) descender: f32,
}

impl Subset {
    /// Of the letters of some texts. `None`: the font is none, which a test refutes.
    pub(crate) fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Self> {
        let face = FACE.as_ref()?;
        let letters: BTreeSet<char> = texts.flat_map(str::chars).collect();
        let source = Source::of(face)?;
        // The sign for what is missing comes first, then letters in their order, then parts of letters.
        let mut kept = vec![0u16];
        let mut glyphs = BTreeMap::new();
        for letter in letters {
            // TrueType numbers glyphs in 16 bits.
            let old = u16::try_from(glyph(face, letter).to_u32()).ok()?;
            glyphs.insert(letter, place(&mut kept, old));
        }
        let mut outlines = Vec::new();
        let mut next = 0;
        while let Some(&old) = kept.get(next) {
            outlines.push(source.outline(old, &mut kept)?);
            next += 1;
        }
        let (all, each) = metrics(face);
        let per_mille = |units: f32| units * 1000.0 / f32::from(all.units_per_em);
        let box_ = all.bounds?;
        Some(Self {
            file: source.file(&kept, &outlines, &glyphs)?,
            glyphs,
            widths: kept
                .iter()
                .map(|&old| per_mille(each.advance_width(old.into()).unwrap_or(0.0)))
                .collect(),
            bounds: [box_.x_min, box_.y_min, box_.x_max, box_.y_max].map(per_mille),
            ascender: per_mille(all.ascent),
            descender: per_mille(all.descent),
        })
    }
}

/// The place of a glyph among those that are kept.
fn place(kept: &mut Vec<u16>, old: u16) -> u16 {
    let at = kept.iter().position(|&other| other == old).unwrap_or_else(|| {
        kept.push(old);
        kept.len() - 1
    });
    at as u16
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// Tables of a TrueType font (OpenType 1.9, chapters of those names).
struct Source<'a> {
    face: &'a FontRef<'a>,
    glyf: &'a [u8],
    loca: &'a [u8],
    is_long: bool,
}

impl<'a> Source<'a> {
    fn table(face: &'a FontRef<'a>, tag: &[u8; 4]) -> Option<&'a [u8]> {
        Some(face.data_for_tag(Tag::new(tag))?.as_bytes())
    }

    fn of(face: &'a FontRef<'a>) -> Option<Self> {
        Some(Self {
            face,
            glyf: Self::table(face, b"glyf")?,
            loca: Self::table(face, b"loca")?,
            is_long: u16_at(Self::table(face, b"head")?, 50)? == 1,
        })
    }

    fn offset(&self, index: usize) -> Option<usize> {
        if self.is_long {
            let high = usize::from(u16_at(self.loca, 4 * index)?);
            return Some(high << 16 | usize::from(u16_at(self.loca, 4 * index + 2)?));
        }
        Some(2 * usize::from(u16_at(self.loca, 2 * index)?))
    }

    /// A glyph without its hints, which want programs that the subset has not. Its parts are kept, too.
    fn outline(&self, old: u16, kept: &mut Vec<u16>) -> Option<Vec<u8>> {
        let (from, to) = (self.offset(old.into())?, self.offset(usize::from(old) + 1)?);
        let data = self.glyf.get(from..to)?;
        if data.is_empty() {
            return Some(Vec::new());
        }
        let contours = u16_at(data, 0)?.cast_signed();
        let mut out = data.to_vec();
        if let Ok(contours) = usize::try_from(contours) {
            let at = 10 + 2 * contours;
            let length = usize::from(u16_at(data, at)?);
            out.splice(at..at + 2 + length, [0, 0]);
        } else {
            // Flags of a part (OpenType, glyf): words for its place, more parts, kinds of scales, hints.
            const WORDS: u16 = 0x1;
            const SCALE: u16 = 0x8;
            const MORE: u16 = 0x20;
            const SCALES: u16 = 0x40;
            const MATRIX: u16 = 0x80;
            const HINTS: u16 = 0x100;
            let mut at = 10;
            loop {
                let flags = u16_at(data, at)?;
                let part = place(kept, u16_at(data, at + 2)?);
                out[at..at + 2].copy_from_slice(&(flags & !HINTS).to_be_bytes());
                out[at + 2..at + 4].copy_from_slice(&part.to_be_bytes());
                at += if flags & WORDS == 0 { 6 } else { 8 };
                at += match flags {
                    _ if flags & SCALE != 0 => 2,
                    _ if flags & SCALES != 0 => 4,
                    _ if flags & MATRIX != 0 => 8,
                    _ => 0,
                };
                if flags & MORE == 0 {
                    break;
                }
            }
            out.truncate(at);
        }
        out.resize(out.len().next_multiple_of(4), 0);
        Some(out)
    }

    fn file(&self, kept: &[u16], outlines: &[Vec<u8>], glyphs: &BTreeMap<char, u16>) -> Option<Vec<u8>> {
        let count = u16::try_from(kept.len()).ok()?;
        let table = |tag: &[u8; 4]| Self::table(self.face, tag).map(<[u8]>::to_vec);
        let mut head = table(b"head")?;
        head.get_mut(8..12)?.fill(0);
        head.get_mut(50..52)?.copy_from_slice(&[0, 1]);
        let mut hhea = table(b"hhea")?;
        hhea.get_mut(34..36)?.copy_from_slice(&count.to_be_bytes());
        let mut maxp = table(b"maxp")?;
        maxp.get_mut(4..6)?.copy_from_slice(&count.to_be_bytes());
        let mut post = table(b"post")?;
        post.truncate(32);
        // Version 3: glyphs have no names.
        post.get_mut(..4)?.copy_from_slice(&[0, 3, 0, 0]);
        let (mut hmtx, mut loca, mut glyf) = (Vec::new(), vec![0; 4], Vec::new());
        let (_, each) = metrics(self.face);
        for (&old, outline) in kept.iter().zip(outlines) {
            hmtx.extend((each.advance_width(old.into()).unwrap_or(0.0) as u16).to_be_bytes());
            hmtx.extend((each.left_side_bearing(old.into()).unwrap_or(0.0) as i16).to_be_bytes());
            glyf.extend(outline);
            loca.extend(u32::try_from(glyf.len()).ok()?.to_be_bytes());
        }
        let tables = [
            (*b"OS/2", table(b"OS/2")?),
            (*b"cmap", cmap(glyphs)?),
            (*b"glyf", glyf),
            (*b"head", head),
            (*b"hhea", hhea),
            (*b"hmtx", hmtx),
            (*b"loca", loca),
            (*b"maxp", maxp),
            (*b"name", table(b"name")?),
            (*b"post", post),
        ];
        Some(assemble(&tables))
    }
}

/// Format 4: a segment for each letter, and the end.
fn cmap(glyphs: &BTreeMap<char, u16>) -> Option<Vec<u8>> {
    let letters =
        glyphs.iter().filter_map(|(letter, glyph)| Some((u16::try_from(u32::from(*letter)).ok()?, *glyph)));
    let mut segments: Vec<(u16, u16)> = letters.filter(|(code, _)| *code != u16::MAX).collect();
    segments.push((u16::MAX, 0));
    let count = u16::try_from(segments.len()).ok()?;
    let selector = u16::try_from(count.ilog2()).ok()?;
    let range = 2 << selector;
    let length = 16 + 8 * count;
    // Version, one subtable: Windows, Unicode BMP, 12 bytes from here.
    let mut words = vec![0, 1, 3, 1, 0, 12];
    words.extend([4, length, 0, 2 * count, range, selector, 2 * count - range]);
    words.extend(segments.iter().map(|(code, _)| *code));
    words.push(0);
    words.extend(segments.iter().map(|(code, _)| *code));
    // Added to a code, modulo 2^16; that of the end gives 0.
    words.extend(segments.iter().map(|(code, glyph)| glyph.wrapping_sub(*code)));
    words.extend(segments.iter().map(|_| 0));
    Some(words.into_iter().flat_map(u16::to_be_bytes).collect())
}

fn checksum(bytes: &[u8]) -> u32 {
    bytes.chunks(4).fold(0, |sum, chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        sum.wrapping_add(u32::from_be_bytes(word))
    })
}

/// The file: a directory of tables, in order, then the tables.
fn assemble(tables: &[([u8; 4], Vec<u8>)]) -> Vec<u8> {
    let count = tables.len() as u16;
    let selector = count.ilog2() as u16;
    let range = 16 << selector;
    let mut file = vec![0, 1, 0, 0];
    file.extend([count, range, selector, 16 * count - range].into_iter().flat_map(u16::to_be_bytes));
    let mut offset = 12 + 16 * tables.len();
    for (tag, bytes) in tables {
        file.extend(tag);
        let numbers = [checksum(bytes), offset as u32, bytes.len() as u32];
        file.extend(numbers.into_iter().flat_map(u32::to_be_bytes));
        offset += bytes.len().next_multiple_of(4);
    }
    let mut head = 0;
    for (tag, bytes) in tables {
        if tag == b"head" {
            head = file.len();
        }
        file.extend(bytes);
        file.resize(file.len().next_multiple_of(4), 0);
    }
    let adjustment = 0xB1B0_AFBA_u32.wrapping_sub(checksum(&file));
    file[head + 8..head + 12].copy_from_slice(&adjustment.to_be_bytes());
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subset_is_a_font_with_the_same_letters() {
        let text = "Throughput (Mbit/s), 95 % ä é µ 10²";
        assert!(has(text));
        let subset = Subset::of([text].into_iter()).expect("the font is one");
        assert!(subset.file.len() < 20_000, "{} B", subset.file.len());
        assert_eq!(checksum(&subset.file), 0xB1B0_AFBA, "of a whole font (OpenType, head)");
        let (face, whole) =
            (FontRef::new(&subset.file).expect("it is one"), FACE.as_ref().expect("it is one"));
        struct Trace(Vec<(f32, f32)>);
        impl OutlinePen for Trace {
            fn move_to(&mut self, x: f32, y: f32) {
                self.0.push((x, y));
            }
            fn line_to(&mut self, x: f32, y: f32) {
                self.0.push((x, y));
            }
            fn quad_to(&mut self, a: f32, b: f32, x: f32, y: f32) {
                self.0.extend([(a, b), (x, y)]);
            }
            fn curve_to(&mut self, a: f32, b: f32, c: f32, d: f32, x: f32, y: f32) {
                self.0.extend([(a, b), (c, d), (x, y)]);
            }
            fn close(&mut self) {}
        }
        for letter in text.chars() {
            let [new, old] = [&face, whole].map(|face| {
                let id = face.charmap().map(letter).expect("it has the letter");
                let mut trace = Trace(Vec::new());
                let settings = DrawSettings::unhinted(Size::unscaled(), LocationRef::default());
                face.outline_glyphs().get(id).map(|outline| outline.draw(settings, &mut trace));
                (metrics(face).1.advance_width(id), trace.0)
            });
            assert_eq!(new, old, "{letter}");
            assert_eq!(
                face.charmap().map(letter).map(|id| id.to_u32()),
                subset.glyphs.get(&letter).map(|&id| id.into())
            );
        }
        assert_eq!(face.charmap().map('Q'), None, "nothing else");
    }

    #[test]
    fn a_text_is_as_wide_as_its_outline() {
        let segments = outlines("HIH", (100.0, 50.0), 13.0);
        let xs = segments.iter().filter_map(|segment| match segment {
            Segment::Move((x, _)) | Segment::Line((x, _)) | Segment::Curve(_, _, (x, _)) => Some(*x),
            Segment::Close => None,
        });
        let (low, high) = xs.fold((f64::MAX, 0.0_f64), |(low, high), x| (low.min(x), high.max(x)));
        let end = 100.0 + width("HIH", 13.0);
        assert!((100.0..102.0).contains(&low) && (end - 2.0..end).contains(&high), "{low} {high} {end}");
    }
}
