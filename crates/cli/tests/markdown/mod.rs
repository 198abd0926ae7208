//! Links and anchors of Markdown, as GitHub and mdBook make them.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

fn events(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
}

/// The anchor that a heading gets.
fn slug(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The places that a link to the document can name after `#`: its headings, and every `id="..."` in it.
pub(crate) fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut count: BTreeMap<String, u32> = BTreeMap::new();
    let mut heading: Option<String> = None;
    for event in events(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&heading.take().unwrap_or_default());
                let before = count.entry(slug.clone()).or_default();
                anchors.insert(if *before == 0 { slug } else { format!("{slug}-{before}") });
                *before += 1;
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                let ids = html.split("id=\"").skip(1).filter_map(|rest| rest.split_once('"'));
                anchors.extend(ids.map(|(id, _)| id.to_owned()));
            }
            _ => {}
        }
    }
    anchors
}

/// Where the links and pictures of the document lead, each with its line.
pub(crate) fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (event, place) in events(text).into_offset_iter() {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
            let line = text[..place.start].matches('\n').count() + 1;
            links.push((line, dest_url.into_string()));
        }
    }
    links
}
