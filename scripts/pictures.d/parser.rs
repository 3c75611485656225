//! Parses lists of expressions.

use crate::lexer::{Lexer, Token};

pub struct Parser<'a> {
    lexer: Lexer<'a>,
}

impl Parser<'_> {
    /// `[a, b, c]`
    pub fn list(&mut self) -> Result<Vec<Expr>, Error> {
        let mut items = Vec::new();
        self.expect(Token::OpenBracket)?;
        while !self.eat(Token::CloseBracket) {
            let item = self.expr()?;
            items.push(item);
        }
        Ok(items)
    }

    fn eat(&mut self, token: Token) -> bool {
        self.lexer.next_if(|next| *next == token).is_some()
    }
}
