//! A picture on a page, and the numbers in it: both can be saved.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::showing::chart::Picture;
use congestlab_text::cells::Alike;
use congestlab_text::printable::escape;

/// More numbers below a picture are in its files alone.
const ROWS_MAX: usize = 600;

/// A picture and what it was drawn from.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Its name as a file, without an ending.
    pub name: String,
    /// What it shows, for those who can not see it.
    pub about: String,
    /// The picture, as a file of its own.
    pub svg: String,
    /// Its numbers.
    pub picture: Picture,
}

/// The picture as HTML, with a table of its points. Longer ones are in a file, of which `elsewhere` says where it is.
///
/// It is an image, and not a part of the page: the letters of its font are its own, and no name of a class meets another.
pub fn figure(drawn: &Drawn, elsewhere: &str) -> String {
    format!(
        "<figure class=\"picture\" data-name=\"{}\">\n<img alt=\"{}\" src=\"data:image/svg+xml;base64,{}\">\n{}</figure>\n",
        escape(&drawn.name),
        escape(&drawn.about),
        STANDARD.encode(&drawn.svg),
        numbers(drawn, elsewhere)
    )
}

fn numbers(drawn: &Drawn, elsewhere: &str) -> String {
    let Drawn { name, picture, .. } = drawn;
    let curves =
        || picture.panels.iter().flat_map(|panel| panel.curves.iter().map(move |curve| (panel, curve)));
    let count: usize = curves().map(|(_, curve)| curve.points.len()).sum();
    if count > ROWS_MAX {
        let at = if elsewhere.is_empty() { String::new() } else { format!(" are in {}", escape(elsewhere)) };
        return format!("<p class=\"note\">Its {count} points{at}.</p>\n");
    }
    let has_intervals = curves().any(|(_, curve)| !curve.spread.is_empty());
    let headings = if has_intervals { &["mean", "95 % from", "to"][..] } else { &["value"] };
    let headings: String =
        headings.iter().map(|heading| format!("<th scope=\"col\">{heading}</th>")).collect();
    let mut html = format!(
        "<details class=\"values\"><summary>As a table</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Numbers of {}\"><table>\n<tr><th scope=\"col\">line</th><th scope=\"col\">{}</th>\
         <th scope=\"col\">quantity</th>{headings}</tr>\n",
        escape(name),
        escape(&picture.x_label)
    );
    let number = |value: f64, form: &Alike| format!("<td data-value=\"{value}\">{}</td>", form.write(value));
    let of_axis = Alike::of(curves().flat_map(|(_, curve)| curve.points.iter().map(|(x, _)| *x)));
    let of_panels: Vec<Alike> = picture
        .panels
        .iter()
        .map(|panel| {
            let values = panel.curves.iter().flat_map(|curve| {
                let ends = curve.spread.iter().flat_map(|(_, low, high)| [*low, *high]);
                curve.points.iter().map(|(_, y)| *y).chain(ends)
            });
            Alike::of(values)
        })
        .collect();
    let forms = picture.panels.iter().zip(&of_panels);
    for (panel, form, curve) in
        forms.flat_map(|(panel, form)| panel.curves.iter().map(move |curve| (panel, form, curve)))
    {
        for (place, &(x, y)) in curve.points.iter().enumerate() {
            let interval = match curve.spread.get(place).filter(|spread| spread.0 == x) {
                Some(&(_, low, high)) => number(low, form) + &number(high, form),
                None if has_intervals => "<td></td><td></td>".to_owned(),
                None => String::new(),
            };
            let at = match picture.categories.get(x as usize) {
                Some(name) => format!("<td>{}</td>", escape(name)),
                None => number(x, &of_axis),
            };
            let _ = writeln!(
                html,
                "<tr><th scope=\"row\">{}</th>{at}<td>{}</td>{}{interval}</tr>",
                escape(&curve.name),
                escape(&panel.label),
                number(y, form)
            );
        }
    }
    html + "</table></div></details>\n"
}
