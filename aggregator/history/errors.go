package history

import "errors"

var (
	ErrDisabled = errors.New("no history is recorded: weft has no state directory, or --history-entries is 0")
	// ErrForgotten means that a revision is older than the history.
	ErrForgotten = errors.New("revision is forgotten")
	// ErrNoRevision means that the revision does not exist yet.
	ErrNoRevision = errors.New("no such revision")
	// ErrTooLarge means that a reader asked for too much content at once.
	ErrTooLarge = errors.New("too much content")
	// ErrUnavailable means that the history could not be written or read.
	ErrUnavailable = errors.New("history is unavailable")
)
