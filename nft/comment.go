package nft

// EmptyComment is a comment without text; "" means no comment.
const EmptyComment = `""`

// ParseComment returns a comment with the text.
func ParseComment(text string) string {
	if text == "" {
		return EmptyComment
	}
	return text
}

// CommentText is the inverse of ParseComment.
func CommentText(comment string) string {
	if comment == EmptyComment {
		return ""
	}
	return comment
}
