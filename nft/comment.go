package nft

// EmptyComment is a comment without text, which nft writes as comment "". The value "" means no
// comment.
const EmptyComment = `""`

// ParseComment returns the comment with the given text.
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
