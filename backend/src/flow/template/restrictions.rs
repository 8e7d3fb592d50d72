//! Restrictions of templates, which are checked before compiling.
//!
//! The compiler recurses over expressions and blocks, looks at a chain of operators again for each of its parts, and
//! calculates constants. So tokens are counted by the engine's own lexer, which no text or comment deceives, and
//! constants that repeat a text or list are refused. Other templates are out of reach: there is nothing to include.

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Stmt};
use minijinja::machinery::{Token, parse, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;

use super::reason;
use crate::flow::limits::{MAX_TAG_TOKENS, MAX_TOKENS};

type Vetted = Result<(), String>;

/// Looks at a template. To be called on a large stack, like all that follows.
pub fn template(source: &str) -> Vetted {
    count(source)?;
    let parsed = parse(source, "template", SyntaxConfig::default()).map_err(|error| reason(&error))?;
    statement(&parsed)
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

fn statements(of: &[Stmt<'_>]) -> Vetted {
    of.iter().try_for_each(statement)
}

fn statement(of: &Stmt<'_>) -> Vetted {
    match of {
        Stmt::Template(of) => statements(&of.children),
        Stmt::EmitExpr(of) => expr(&of.expr),
        Stmt::EmitRaw(_) => Ok(()),
        Stmt::ForLoop(of) => {
            expr(&of.target)?;
            expr(&of.iter)?;
            of.filter_expr.iter().try_for_each(expr)?;
            statements(&of.body)?;
            statements(&of.else_body)
        }
        Stmt::IfCond(of) => {
            expr(&of.expr)?;
            statements(&of.true_body)?;
            statements(&of.false_body)
        }
        Stmt::WithBlock(of) => {
            of.assignments.iter().try_for_each(|(target, value)| expr(target).and_then(|()| expr(value)))?;
            statements(&of.body)
        }
        Stmt::Set(of) => expr(&of.target).and_then(|()| expr(&of.expr)),
        Stmt::SetBlock(of) => {
            expr(&of.target)?;
            of.filter.iter().try_for_each(expr)?;
            statements(&of.body)
        }
        Stmt::AutoEscape(of) => expr(&of.enabled).and_then(|()| statements(&of.body)),
        Stmt::FilterBlock(of) => expr(&of.filter).and_then(|()| statements(&of.body)),
        Stmt::Macro(of) => {
            of.args.iter().chain(&of.defaults).try_for_each(expr)?;
            statements(&of.body)
        }
        Stmt::CallBlock(of) => {
            expr(&of.call.expr)?;
            arguments(&of.call.args)?;
            of.macro_decl.args.iter().chain(&of.macro_decl.defaults).try_for_each(expr)?;
            statements(&of.macro_decl.body)
        }
        Stmt::Do(of) => expr(&of.call.expr).and_then(|()| arguments(&of.call.args)),
        Stmt::Block(_) | Stmt::Import(_) | Stmt::FromImport(_) | Stmt::Extends(_) | Stmt::Include(_) => {
            Err("blocks, imports and includes are not supported in templates".to_owned())
        }
    }
}

fn arguments(of: &[CallArg<'_>]) -> Vetted {
    of.iter().try_for_each(|arg| match arg {
        CallArg::Pos(of) | CallArg::Kwarg(_, of) => expr(of),
        CallArg::PosSplat(_) | CallArg::KwargSplat(_) => Err("write each argument separately, without `*`".to_owned()),
    })
}

fn expr(of: &Expr<'_>) -> Vetted {
    match of {
        Expr::Var(_) | Expr::Const(_) => Ok(()),
        Expr::Slice(of) => {
            expr(&of.expr)?;
            [&of.start, &of.stop, &of.step].into_iter().flatten().try_for_each(expr)
        }
        Expr::UnaryOp(of) => expr(&of.expr),
        Expr::BinOp(of) => {
            expr(&of.left)?;
            expr(&of.right)?;
            let is_list = |of: &Expr<'_>| of.as_const().is_some_and(|value| value.kind() != ValueKind::Number);
            if matches!(of.op, BinOpKind::Mul) && (is_list(&of.left) || is_list(&of.right)) {
                return Err("`*` is for numbers; it does not repeat a text or a list".to_owned());
            }
            Ok(())
        }
        Expr::Compare(of) => {
            expr(&of.expr)?;
            of.ops.iter().try_for_each(|op| expr(&op.expr))
        }
        Expr::IfExpr(of) => {
            expr(&of.test_expr)?;
            expr(&of.true_expr)?;
            of.false_expr.iter().try_for_each(expr)
        }
        Expr::Filter(of) => {
            of.expr.iter().try_for_each(expr)?;
            arguments(&of.args)
        }
        Expr::Test(of) => expr(&of.expr).and_then(|()| arguments(&of.args)),
        Expr::GetAttr(of) => expr(&of.expr),
        Expr::GetItem(of) => expr(&of.expr).and_then(|()| expr(&of.subscript_expr)),
        Expr::Call(of) => expr(&of.expr).and_then(|()| arguments(&of.args)),
        Expr::List(of) => of.items.iter().try_for_each(expr),
        Expr::Tuple(of) => of.items.iter().try_for_each(expr),
        Expr::Map(of) => of.keys.iter().chain(&of.values).try_for_each(expr),
    }
}
