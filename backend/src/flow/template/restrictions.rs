//! Restrictions of templates, which are checked before compiling.
//!
//! The compiler recurses over expressions and blocks, visits chains of operators repeatedly, and evaluates constants.
//! So tokens are counted by the engine's own lexer, which texts and comments cannot deceive, and constants that repeat
//! a text or list are refused. There are no other templates to include.
//!
//! The check also finds names that the engine's own search misses, because it does not visit slices, and what a template
//! uses by name: members, filters, tests and functions.

use std::collections::{BTreeSet, HashSet};

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Stmt};
use minijinja::machinery::{Token, parse, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;

use super::reason;
use crate::flow::MemberPath;
use crate::flow::limits::{MAX_TAG_TOKENS, MAX_TOKENS};

type Vetted = Result<(), String>;

/// What a template uses by name.
#[derive(Debug, Default)]
pub struct Uses {
    /// The names that it reads. Empty if it slices nothing, since the engine finds them then.
    pub names: HashSet<String>,
    /// The members that it reads, as paths from a name, except those that may be missing (`default`, `is defined`).
    pub paths: BTreeSet<MemberPath>,
    /// The filters that it applies.
    pub filters: BTreeSet<String>,
    /// The tests that it makes.
    pub tests: BTreeSet<String>,
    /// The functions that it calls, except its own macros.
    pub functions: BTreeSet<String>,
}

/// Checks a template. Returns what it uses. To be called on a large stack, like all functions below.
pub fn template(source: &str) -> Result<Uses, String> {
    count(source)?;
    let parsed = parse(source, "template", SyntaxConfig::default()).map_err(|error| reason(&error))?;
    let mut visited = Visited::default();
    visited.statement(&parsed)?;
    let Visited { read, bound, slices, mut uses, .. } = visited;
    if slices {
        uses.names = read.difference(&bound).map(|name| (*name).to_owned()).collect();
    }
    uses.paths.retain(|path| !bound.contains(path[0].as_str()));
    uses.functions.retain(|name| !bound.contains(name.as_str()));
    Ok(uses)
}

fn count(source: &str) -> Vetted {
    let (mut tag, mut all) = (0, 0);
    for token in tokenize(source, false, SyntaxConfig::default()) {
        let (token, _) = token.map_err(|error| reason(&error))?;
        match token {
            Token::TemplateData(_) => continue,
            Token::VariableStart | Token::BlockStart => tag = 0,
            _ => tag += 1,
        }
        all += 1;
        if tag > MAX_TAG_TOKENS {
            return Err(format!("one tag has more than {MAX_TAG_TOKENS} names, values and operators"));
        }
        if all > MAX_TOKENS {
            return Err(format!("it has more than {MAX_TOKENS} names, values and operators"));
        }
    }
    Ok(())
}

/// The findings in a template so far.
#[derive(Default)]
struct Visited<'a> {
    /// The names in expressions.
    read: HashSet<&'a str>,
    /// The names of the template's own variables.
    bound: HashSet<&'a str>,
    /// Whether the template slices something.
    slices: bool,
    /// Whether what is visited may be missing.
    optional: bool,
    uses: Uses,
}

impl<'a> Visited<'a> {
    /// Visits the target of an assignment.
    fn target(&mut self, of: &Expr<'a>) -> Vetted {
        match of {
            Expr::Var(of) => self.bound.extend([of.id]),
            Expr::List(of) => return of.items.iter().try_for_each(|of| self.target(of)),
            Expr::Tuple(of) => return of.items.iter().try_for_each(|of| self.target(of)),
            _ => {}
        }
        self.expr(of)
    }

    fn statements(&mut self, of: &[Stmt<'a>]) -> Vetted {
        of.iter().try_for_each(|of| self.statement(of))
    }

    fn statement(&mut self, of: &Stmt<'a>) -> Vetted {
        match of {
            Stmt::Template(of) => self.statements(&of.children),
            Stmt::EmitExpr(of) => self.expr(&of.expr),
            Stmt::EmitRaw(_) => Ok(()),
            Stmt::ForLoop(of) => {
                self.bound.insert("loop");
                self.target(&of.target)?;
                self.expr(&of.iter)?;
                of.filter_expr.iter().try_for_each(|of| self.expr(of))?;
                self.statements(&of.body)?;
                self.statements(&of.else_body)
            }
            Stmt::IfCond(of) => {
                self.expr(&of.expr)?;
                self.statements(&of.true_body)?;
                self.statements(&of.false_body)
            }
            Stmt::WithBlock(of) => {
                of.assignments
                    .iter()
                    .try_for_each(|(target, value)| self.target(target).and_then(|()| self.expr(value)))?;
                self.statements(&of.body)
            }
            Stmt::Set(of) => self.target(&of.target).and_then(|()| self.expr(&of.expr)),
            Stmt::SetBlock(of) => {
                self.target(&of.target)?;
                of.filter.iter().try_for_each(|of| self.expr(of))?;
                self.statements(&of.body)
            }
            Stmt::AutoEscape(of) => self.expr(&of.enabled).and_then(|()| self.statements(&of.body)),
            Stmt::FilterBlock(of) => self.expr(&of.filter).and_then(|()| self.statements(&of.body)),
            Stmt::Macro(of) => {
                self.bound.extend([of.name, "caller"]);
                of.args.iter().try_for_each(|of| self.target(of))?;
                of.defaults.iter().try_for_each(|of| self.expr(of))?;
                self.statements(&of.body)
            }
            Stmt::CallBlock(of) => {
                self.expr(&of.call.expr)?;
                self.arguments(&of.call.args)?;
                of.macro_decl.args.iter().try_for_each(|of| self.target(of))?;
                of.macro_decl.defaults.iter().try_for_each(|of| self.expr(of))?;
                self.statements(&of.macro_decl.body)
            }
            Stmt::Do(of) => self.expr(&of.call.expr).and_then(|()| self.arguments(&of.call.args)),
            Stmt::Block(_) | Stmt::Import(_) | Stmt::FromImport(_) | Stmt::Extends(_) | Stmt::Include(_) => {
                Err("blocks, imports and includes are not supported in templates".to_owned())
            }
        }
    }

    fn arguments(&mut self, of: &[CallArg<'a>]) -> Vetted {
        of.iter().try_for_each(|arg| match arg {
            CallArg::Pos(of) | CallArg::Kwarg(_, of) => self.expr(of),
            CallArg::PosSplat(_) | CallArg::KwargSplat(_) => {
                Err("write each argument separately, without `*`".to_owned())
            }
        })
    }

    /// Visits an expression; if it is optional, its members may be missing.
    fn perhaps(&mut self, of: &Expr<'a>, optional: bool) -> Vetted {
        let before = self.optional;
        self.optional |= optional;
        let visited = self.expr(of);
        self.optional = before;
        visited
    }

    fn member(&mut self, of: &Expr<'a>) {
        if !self.optional {
            self.uses.paths.extend(path(of));
        }
    }

    fn expr(&mut self, of: &Expr<'a>) -> Vetted {
        match of {
            Expr::Const(_) => Ok(()),
            Expr::Var(of) => {
                self.read.insert(of.id);
                Ok(())
            }
            Expr::Slice(of) => {
                self.slices = true;
                self.expr(&of.expr)?;
                [&of.start, &of.stop, &of.step].into_iter().flatten().try_for_each(|of| self.expr(of))
            }
            Expr::UnaryOp(of) => self.expr(&of.expr),
            Expr::BinOp(of) => {
                self.expr(&of.left)?;
                self.expr(&of.right)?;
                let is_list = |of: &Expr<'_>| of.as_const().is_some_and(|value| value.kind() != ValueKind::Number);
                if matches!(of.op, BinOpKind::Mul) && (is_list(&of.left) || is_list(&of.right)) {
                    return Err("`*` is for numbers; it does not repeat a text or a list".to_owned());
                }
                Ok(())
            }
            Expr::Compare(of) => {
                self.expr(&of.expr)?;
                of.ops.iter().try_for_each(|op| self.expr(&op.expr))
            }
            Expr::IfExpr(of) => {
                self.expr(&of.test_expr)?;
                self.expr(&of.true_expr)?;
                of.false_expr.iter().try_for_each(|of| self.expr(of))
            }
            Expr::Filter(of) => {
                self.uses.filters.insert(of.name.to_owned());
                of.expr.iter().try_for_each(|inner| self.perhaps(inner, matches!(of.name, "default" | "d")))?;
                self.arguments(&of.args)
            }
            Expr::Test(of) => {
                self.uses.tests.insert(of.name.to_owned());
                self.perhaps(&of.expr, matches!(of.name, "defined" | "undefined"))?;
                self.arguments(&of.args)
            }
            Expr::GetAttr(inner) => {
                self.member(of);
                self.expr(&inner.expr)
            }
            Expr::GetItem(inner) => {
                self.member(of);
                self.expr(&inner.expr).and_then(|()| self.expr(&inner.subscript_expr))
            }
            Expr::Call(of) => {
                if let Expr::Var(name) = &of.expr {
                    self.uses.functions.insert(name.id.to_owned());
                }
                self.expr(&of.expr).and_then(|()| self.arguments(&of.args))
            }
            Expr::List(of) => of.items.iter().try_for_each(|of| self.expr(of)),
            Expr::Tuple(of) => of.items.iter().try_for_each(|of| self.expr(of)),
            Expr::Map(of) => of.keys.iter().chain(&of.values).try_for_each(|of| self.expr(of)),
        }
    }
}

/// Returns the path that an expression reads: `name`, `name.field` or `name["field"]`, to any depth.
fn path(of: &Expr<'_>) -> Option<MemberPath> {
    let (inner, field) = match of {
        Expr::Var(of) => return Some(vec![of.id.to_owned()]),
        Expr::GetAttr(of) => (&of.expr, of.name.to_owned()),
        Expr::GetItem(of) => (&of.expr, of.subscript_expr.as_const()?.as_str()?.to_owned()),
        _ => return None,
    };
    let mut path = path(inner)?;
    path.push(field);
    Some(path)
}
