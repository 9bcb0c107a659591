package nft

// EmptyComment is the value of a comment that is there and has no text, which nft writes as
// comment "". No other comment can contain a double quote. The value "" means no comment.
const EmptyComment = `""`

// ParseComment returns the value of a comment with the given text.
func ParseComment(text string) string {
	if text == "" {
		return EmptyComment
	}
	return text
}

// CommentText returns the text of a comment.
func CommentText(comment string) string {
	if comment == EmptyComment {
		return ""
	}
	return comment
}
