package compile

import (
	"errors"

	"github.com/weft-proxy/weft/nft/syntax"
)

// Error is an error at a place of a rule's text: of its syntax or of its
// meaning. [syntax.Error.Excerpt] draws the caret.
type Error = syntax.Error

// ErrSyntax is wrapped by CompileRule's error about a text that does not parse.
// Its other errors are about what the text means.
var ErrSyntax = errors.New("parse rule")
