//! What the code of one file imports, names, defines and calls, without its tests.

use std::collections::BTreeSet;

use anyhow::Result;
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Expr, ExprMethodCall, Ident, ImplItem, ItemImpl, ItemMod, ItemUse, Macro, Meta, Type, UseTree, Visibility};

/// A name that a file imports.
pub struct Import {
    /// The path of the imported item, as it is written.
    pub path: String,
    /// Whether the import is a re-export (`pub use`).
    pub is_handed_on: bool,
}

impl Import {
    /// The name of the imported item where it is defined.
    pub fn name(&self) -> &str {
        self.path.rsplit("::").next().unwrap_or_default()
    }
}

/// What [`Code::parse`] finds in a file.
#[derive(Default)]
pub struct Code {
    /// The imports, also those inside of functions.
    pub imports: Vec<Import>,
    /// The paths with `::` outside of imports.
    pub paths: BTreeSet<String>,
    /// All identifiers outside of imports.
    pub words: BTreeSet<String>,
    /// The methods that are defined, each with the name of its type.
    pub methods: BTreeSet<(String, String)>,
    /// The methods that are called on a variable, each with the variable's name.
    pub calls: BTreeSet<(String, String)>,
}

impl Code {
    /// Parses the text of a file.
    pub fn parse(text: &str) -> Result<Self> {
        let mut code = Self::default();
        code.visit_file(&syn::parse_file(text)?);
        Ok(code)
    }

    fn import(&mut self, base: &str, tree: &UseTree, is_handed_on: bool) {
        let at = |name: &Ident| if base.is_empty() { name.to_string() } else { format!("{base}::{name}") };
        let path = match tree {
            UseTree::Path(path) => return self.import(&at(&path.ident), &path.tree, is_handed_on),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.import(base, tree, is_handed_on));
            }
            UseTree::Name(name) if name.ident == "self" => base.to_owned(),
            UseTree::Name(name) => at(&name.ident),
            UseTree::Rename(rename) if rename.ident == "self" => base.to_owned(),
            UseTree::Rename(rename) => at(&rename.ident),
            UseTree::Glob(_) => format!("{base}::*"),
        };
        self.imports.push(Import { path, is_handed_on });
    }

    /// Reads the arguments of a macro, which need not be Rust.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is = |at: usize, punct: char| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == punct);
        let (mut path, mut at) = (String::new(), 0);
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(name) => {
                    self.words.insert(name.to_string());
                    path.push_str(&name.to_string());
                    if is(at + 1, ':') && is(at + 2, ':') {
                        path.push_str("::");
                        at += 3;
                        continue;
                    }
                    if let (true, Some(TokenTree::Ident(called))) = (is(at + 1, '.'), tokens.get(at + 2)) {
                        self.calls.insert((name.to_string(), called.to_string()));
                    }
                }
                _ => {}
            }
            let path = std::mem::take(&mut path);
            if path.contains("::") {
                self.paths.insert(path.trim_end_matches(':').to_owned());
            }
            at += 1;
        }
    }
}

impl Visit<'_> for Code {
    fn visit_item_mod(&mut self, item: &ItemMod) {
        let is_test = |meta: &Meta| meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test");
        if !item.attrs.iter().any(|attribute| attribute.path().is_ident("cfg") && is_test(&attribute.meta)) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &ItemUse) {
        self.import("", &item.tree, !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &syn::Path) {
        if path.segments.len() > 1 && path.leading_colon.is_none() {
            let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.paths.insert(names.join("::"));
        }
        visit::visit_path(self, path);
    }

    fn visit_ident(&mut self, name: &Ident) {
        self.words.insert(name.to_string());
    }

    fn visit_item_impl(&mut self, item: &ItemImpl) {
        if let Type::Path(of) = &*item.self_ty
            && let Some(of) = of.path.segments.last()
        {
            let name = |item: &ImplItem| match item {
                ImplItem::Fn(method) => Some((of.ident.to_string(), method.sig.ident.to_string())),
                _ => None,
            };
            self.methods.extend(item.items.iter().filter_map(name));
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_expr_method_call(&mut self, call: &ExprMethodCall) {
        if let Expr::Path(receiver) = &*call.receiver
            && let Some(receiver) = receiver.path.get_ident()
        {
            self.calls.insert((receiver.to_string(), call.method.to_string()));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, call: &Macro) {
        self.tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }
}
