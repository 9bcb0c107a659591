// Package client is how a publisher speaks to weft's aggregator: it is what
// frontends, agents and the command line import, together with the wire
// package aggregator/api/v1, and nothing else of weft.
//
// Client is one connection with the unary calls (fragments.go has those about
// fragments, inspect.go those about the whole) and Watch. Session is a
// publisher's lasting presence: it sends snapshots and patches, waits for their
// acknowledgements, reconnects by itself (the first attempt is at once, the
// others at most half a second apart) and brings the aggregator back in step with
// a snapshot, again and again where that is refused for a reason that can pass.
//
// The package does not validate what it sends: rule text, elements and names
// are judged by the aggregator, whose answer names each offence. What can not be
// encoded at all is answered with ErrInvalid or ErrTooLarge, and disturbs nobody
// else on the session.
//
// # Concurrency
//
// Client and Session are safe for concurrent use. A Session runs one goroutine
// that owns its stream, and one that reads from it; they call the functions of
// SessionConfig. While there is no stream a Session holds one update of each
// fragment, however many are made.
//
// # Errors
//
// A refused update is a *RejectedError with every violation; its Error method
// is one line, and formatting it with %+v adds the offending lines with a caret
// under the token. The other conditions that a caller can act on are the
// sentinels in errors.go. Match with errors.Is and errors.As.
package client
