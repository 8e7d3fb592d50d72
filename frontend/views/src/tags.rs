//! The names of elements and attributes. One that is missing does not compile; it is added here.

use super::element::El;
use super::value::IntoValue;

macro_rules! elements {
    ($new:ident: $($name:ident)*) => {
        $(
            #[doc = concat!("`<", stringify!($name), ">`")]
            #[inline]
            pub fn $name() -> El {
                El::$new(stringify!($name))
            }
        )*
    };
}

macro_rules! attributes {
    ($($method:ident $name:literal)*) => {
        impl El {
            $(
                #[doc = concat!("Sets `", $name, "`.")]
                #[inline]
                #[must_use]
                pub fn $method(self, value: impl IntoValue) -> Self {
                    self.attr($name, value)
                }
            )*
        }
    };
}

/// The elements of HTML.
pub mod html {
    use super::El;

    // In the body of a page `<title>` belongs to a drawing; `view!` takes it for HTML where it does not see the drawing.
    pub use super::svg::title;

    elements! {
        html: a article aside b blockquote br button code datalist dd del details dialog div dl dt em fieldset figure
        footer form h1 h2 h3 h4 h5 h6 header hr i img input ins kbd label legend li main mark nav ol option p pre s
        section select small span strong sub summary sup table tbody td textarea th thead time tr ul
    }
}

/// The elements of SVG.
pub mod svg {
    use super::El;

    elements! { svg: circle defs g line marker path polygon polyline rect svg text title tspan }
}

attributes! {
    align "align"
    alt "alt"
    aria_busy "aria-busy"
    aria_current "aria-current"
    aria_describedby "aria-describedby"
    aria_disabled "aria-disabled"
    aria_expanded "aria-expanded"
    aria_haspopup "aria-haspopup"
    aria_hidden "aria-hidden"
    aria_invalid "aria-invalid"
    aria_label "aria-label"
    aria_labelledby "aria-labelledby"
    aria_live "aria-live"
    aria_pressed "aria-pressed"
    aria_required "aria-required"
    aria_selected "aria-selected"
    autocapitalize "autocapitalize"
    autocomplete "autocomplete"
    autofocus "autofocus"
    checked "checked"
    colspan "colspan"
    datetime "datetime"
    decoding "decoding"
    disabled "disabled"
    download "download"
    height "height"
    hidden "hidden"
    href "href"
    id "id"
    inputmode "inputmode"
    list "list"
    maxlength "maxlength"
    name "name"
    novalidate "novalidate"
    open "open"
    placeholder "placeholder"
    r#for "for"
    r#type "type"
    readonly "readonly"
    referrerpolicy "referrerpolicy"
    rel "rel"
    required "required"
    role "role"
    rows "rows"
    scope "scope"
    selected "selected"
    spellcheck "spellcheck"
    src "src"
    start "start"
    tabindex "tabindex"
    target "target"
    title "title"
    value "value"
    width "width"
    wrap "wrap"
}
